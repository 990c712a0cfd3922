"""KIP-405's RemoteLogMetadataManager as a library: replay, states, per-partition cache, look-ups, the partitioner.

Behaves as Kafka 3.6 and later do, where the KIP's text and Kafka differ.
"""
