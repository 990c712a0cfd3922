"""Speed and memory, measured together with Kafka's own tools in one run: `make bench`."""
