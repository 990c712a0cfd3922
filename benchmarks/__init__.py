"""Speed and memory, measured beside Kafka's own tools in one run: `make bench`."""
