"""Committed offsets as records of `__consumer_offsets` (OffsetCommitKey version 1, OffsetCommitValue version 3).

Every release since 2.1 reads these versions.
"""

from __future__ import annotations

import struct

from tieredctl.formats.record_batches import Record

_KEY_VERSION, _VALUE_VERSION = 1, 3
_NO_LEADER_EPOCH = -1
_INT32_SIGN = 1 << 31


def committed_offset_record(
    group: str, topic: str, partition: int, committed: int, *, offset: int, timestamp: int
) -> Record:
    """The record at an offset of the log by which a group goes on with a partition at `committed`."""
    key = struct.pack(">h", _KEY_VERSION) + _text(group) + _text(topic) + struct.pack(">i", partition)
    value = struct.pack(">hqi", _VALUE_VERSION, committed, _NO_LEADER_EPOCH) + _text("") + struct.pack(">q", timestamp)
    return Record(offset, timestamp, key, value)


def group_partition(group: str, partitions: int) -> int:
    """The partition of `__consumer_offsets` that has a group (GroupCoordinator.partitionFor)."""
    units = group.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    as_int = code - (1 << 32) if code & _INT32_SIGN else code
    return (0 if as_int == -_INT32_SIGN else abs(as_int)) % partitions


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack(">h", len(data)) + data
