"""What a remote store has, read as Kafka reads it."""
