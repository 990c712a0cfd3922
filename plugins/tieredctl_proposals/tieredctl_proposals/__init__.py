"""What proposals would bring to Kafka, on real data: WAL tiering (KIP-1176), the diskless coordinator (KIP-1164)."""
