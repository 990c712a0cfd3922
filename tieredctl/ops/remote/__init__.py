"""The content of a remote store, read as Kafka reads it."""
