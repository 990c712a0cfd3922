"""Sources of metadata events and cluster facts. The only package that uses Kafka client libraries."""
