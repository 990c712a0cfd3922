"""KRaft snapshots, `<end offset>-<epoch>.checkpoint` in `__cluster_metadata-0` (KIP-630, RecordsSnapshotReader).

A snapshot consists of record batches: the first is a control batch with the header, the last one with the footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import decode_control_record, encode_control_record
from tieredctl.formats.kraft_log import KraftLogRecord, demanded_records, sound_batches
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import (
    Attributes,
    BatchHeader,
    ControlType,
    Record,
    crc_matches,
    encode_batch,
    read_batch_header,
    read_control_type,
    read_records,
)


class SnapshotOrder:
    """Whether sound batches are in the order that a snapshot has: offsets from 0 without a gap, the header's batch
    first, the footer's last."""

    def __init__(self) -> None:
        self._following_offset: int | None = 0
        self._begun = False
        self._ended = False

    def next_batch(self, position: int, header: BatchHeader, batch: memoryview) -> DecodeError | None:
        """What is wrong with the order where the next batch comes, at a position of the file."""
        kind = _first_control_type(header, batch) if header.is_control else None
        fault, following = None, self._following_offset
        if not self._begun and kind != ControlType.SNAPSHOT_HEADER:
            fault = DecodeError("snapshot does not begin with a header", position)
        elif self._ended:
            fault = DecodeError("snapshot continues after its footer", position)
        elif following is not None and header.base_offset != following:
            fault = DecodeError(f"batch begins with offset {header.base_offset}, not {following}", position)
        self._begun = True
        self._ended = kind == ControlType.SNAPSHOT_FOOTER
        self._following_offset = header.last_offset + 1
        return fault

    def skip(self) -> None:
        """What comes next is damaged."""
        self._begun, self._ended, self._following_offset = True, False, None

    def end(self, size: int) -> DecodeError | None:
        """What is wrong where a snapshot of `size` bytes ends after the batches so far."""
        return None if self._ended else DecodeError("snapshot does not end with a footer", size)


def read_kraft_snapshot(chunks: Iterable[bytes], size: int) -> Iterator[KraftLogRecord]:
    """The records of a snapshot of `size` bytes that arrives in pieces.

    Raises DecodeError, with positions in the file, where a batch is damaged, offsets do not follow each other from 0,
    the first record is not a header, the last not a footer, or something follows the footer.
    """
    order = SnapshotOrder()
    for part in sound_batches(chunks, size):
        if isinstance(part, Damage):
            raise DecodeError(part.reason, part.position)
        position, header, batch = part
        fault = order.next_batch(position, header, batch)
        if fault is not None:
            raise fault
        yield from demanded_records(position, header, batch)
    fault = order.end(size)
    if fault is not None:
        raise fault


def begins_as_snapshot(head: bytes) -> bool:
    """Whether a file that begins with these bytes begins with a snapshot's header."""
    try:
        header = read_batch_header(head, 0, len(head))
    except DecodeError:
        return False
    if not header.is_control or header.size > len(head):
        return False
    return _first_control_type(header, memoryview(head)) == ControlType.SNAPSHOT_HEADER


def _first_control_type(header: BatchHeader, batch: memoryview) -> int | None:
    """The type of a batch's first control record; None where the batch has no record, or its first is not one."""
    try:
        first = next(read_records(batch, 0, header), None)
        return None if first is None else read_control_type(first)
    except DecodeError:
        return None


FIRST_BATCH_WITHIN = 1 << 16
"""The header's batch is far smaller; with KIP-853 it names all voters too."""


class SnapshotTimes(NamedTuple):
    """In ms: when the snapshot was begun to be written, and when the last record that it contains was."""

    written_ms: int
    last_contained_ms: int


def snapshot_times(beginning: bytes) -> SnapshotTimes | None:
    """The times in the first bytes of a snapshot; None where they do not begin with a sound header."""
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


_RECORDS_A_BATCH = 1_000


def encode_kraft_snapshot(
    values: Iterable[bytes],
    controls: Sequence[tuple[ControlType, Mapping[str, Any]]],
    *,
    epoch: int,
    last_contained_ms: int,
) -> Iterator[bytes]:
    """The batches of a snapshot: `values` are those of its records, and `controls` KRaft's version and voters, if they
    are in it. The epoch is that of the last record contained."""

    def control_batch(offset: int, records: Sequence[tuple[ControlType, Mapping[str, Any]]]) -> bytes:
        encoded = [
            encode_control_record(kind, fields, offset=offset + number, timestamp=last_contained_ms)
            for number, (kind, fields) in enumerate(records)
        ]
        return encode_batch(encoded, partition_leader_epoch=epoch, attributes=Attributes.CONTROL)

    header = (ControlType.SNAPSHOT_HEADER, {"Version": 0, "LastContainedLogTimestamp": last_contained_ms})
    yield control_batch(0, [header, *controls])
    offset, left = 1 + len(controls), iter(values)
    while some := list(islice(left, _RECORDS_A_BATCH)):
        records = [Record(offset + number, last_contained_ms, None, value) for number, value in enumerate(some)]
        yield encode_batch(records, partition_leader_epoch=epoch)
        offset += len(some)
    yield control_batch(offset, [(ControlType.SNAPSHOT_FOOTER, {"Version": 0})])
