"""Kafka's metadata quorum as a library (KIP-595, KIP-630): snapshots, what its log says of a cluster, retention."""
