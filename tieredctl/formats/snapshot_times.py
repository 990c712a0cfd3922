"""When a KRaft snapshot was written, and how far it goes: by its first batch."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import decode_control_record
from tieredctl.formats.record_batches import ControlType, crc_matches, read_batch_header, read_records

FIRST_BATCH_WITHIN = 1 << 16
"""The header's batch is far smaller; with KIP-853 it names all voters too."""


class SnapshotTimes(NamedTuple):
    """In ms: when the snapshot was begun to be written, and when the last record that it contains was."""

    written_ms: int
    last_contained_ms: int


def snapshot_times(beginning: bytes) -> SnapshotTimes | None:
    """Of the first bytes of a snapshot; None where they do not begin with a sound header."""
    try:
        header = read_batch_header(beginning, 0, len(beginning))
        if header.base_offset or header.size > len(beginning) or not crc_matches(beginning, 0, header):
            return None
        first = next(read_records(beginning, 0, header), None)
        control = None if first is None or not header.is_control else decode_control_record(first)
    except DecodeError:
        return None
    if control is None or control.type != ControlType.SNAPSHOT_HEADER or control.fields is None:
        return None
    return SnapshotTimes(header.base_timestamp, control.fields["LastContainedLogTimestamp"])


def first_record_ms(beginning: bytes) -> int | None:
    """When the first batch of a log was written (ms); None where there is no sound header of one."""
    try:
        return read_batch_header(beginning, 0, len(beginning)).base_timestamp
    except DecodeError:
        return None
