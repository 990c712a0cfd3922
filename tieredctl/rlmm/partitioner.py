"""The partition of `__remote_log_metadata` that holds a user partition's events (RemoteLogMetadataTopicPartitioner)."""

from __future__ import annotations

from tieredctl.model.ids import uuid_bytes

_MASK = 0xFFFFFFFF
_SEED, _M, _R = 0x9747B28C, 0x5BD1E995, 24

DEFAULT_METADATA_PARTITIONS = 50
"""Kafka's default of remote.log.metadata.topic.num.partitions."""


def metadata_partition(topic_id: str, partition: int, metadata_partitions: int) -> int:
    """The metadata partition of a user partition. The topic's name has no influence, so it is stable per topic id."""
    return partition_hash(topic_id, partition) % metadata_partitions


def partition_hash(topic_id: str, partition: int) -> int:
    """The number whose remainder is the metadata partition: below 2^31."""
    data = uuid_bytes(topic_id)
    code = 1
    for half in (data[8:], data[:8]):  # the least significant half comes first
        number = int.from_bytes(half)
        code = code * 31 + (number ^ number >> 32) & _MASK
    code = code * 31 + partition & _MASK
    return murmur2(code.to_bytes(4)) & 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's murmur2 (Utils.murmur2), as an unsigned 32-bit number."""
    hashed = _SEED ^ len(data)
    whole = len(data) & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(data[position : position + 4], "little") * _M & _MASK
        word = (word ^ word >> _R) * _M & _MASK
        hashed = hashed * _M & _MASK ^ word
    if tail := data[whole:]:
        hashed = (hashed ^ int.from_bytes(tail, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15
