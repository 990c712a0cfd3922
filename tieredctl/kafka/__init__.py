"""Where metadata events and cluster facts come from. The only home of Kafka client libraries."""
