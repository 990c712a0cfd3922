"""KRaft snapshots, `<end offset>-<epoch>.checkpoint` in `__cluster_metadata-0` (KIP-630, RecordsSnapshotReader).

A snapshot consists of record batches: the first is a control batch with the header, the last one with the footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import ControlRecord, decode_control_record
from tieredctl.formats.kraft_records import KraftRecord, decode_kraft_record
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import BatchHeader, ControlType, read_records


class KraftSnapshotRecord(NamedTuple):
    """A record of a snapshot. `offset` counts from 0 in the snapshot; `batch_position` is a byte of the file;
    the timestamp (ms) is when the snapshot was written."""

    offset: int
    timestamp: int
    batch_position: int
    content: ControlRecord | KraftRecord


def read_kraft_snapshot(chunks: Iterable[bytes], size: int) -> Iterator[KraftSnapshotRecord]:
    """The records of a snapshot of `size` bytes that arrives in pieces.

    Raises DecodeError, with positions in the file, where a batch is damaged, offsets do not follow each other from 0,
    the first record is not a header, the last not a footer, or something follows the footer.
    """
    following_offset = 0
    last: KraftSnapshotRecord | None = None
    for position, header, batch in _sound_batches(chunks, size):
        if _is_control(last, ControlType.SNAPSHOT_FOOTER):
            raise DecodeError("snapshot continues after its footer", position)
        if header.base_offset != following_offset:
            raise DecodeError(f"batch begins with offset {header.base_offset}, not {following_offset}", position)
        following_offset = header.last_offset + 1
        for record in _records(position, header, batch):
            if last is None and not _is_control(record, ControlType.SNAPSHOT_HEADER):
                raise DecodeError("snapshot does not begin with a header", position)
            yield record
            last = record
    if not _is_control(last, ControlType.SNAPSHOT_FOOTER):
        raise DecodeError("snapshot does not end with a footer", size)


def _sound_batches(chunks: Iterable[bytes], size: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """The position in the file, header and bytes of each batch."""
    for part in scan_log(chunks, size, OneByOne()):
        if isinstance(part, Damage):
            raise DecodeError(part.reason, part.position)
        for position, header in zip(part.positions, part.headers, strict=True):
            yield part.file_position + position, header, memoryview(part.buffer)[position : position + header.size]


def _records(position: int, header: BatchHeader, batch: memoryview) -> Iterator[KraftSnapshotRecord]:
    try:
        for record in read_records(batch, 0, header):
            content = decode_control_record(record) if header.is_control else decode_kraft_record(record.value or b"")
            yield KraftSnapshotRecord(record.offset, record.timestamp, position, content)
    except DecodeError as error:
        raise DecodeError(f"{error.reason}, in a record of the batch", position) from None


def _is_control(record: KraftSnapshotRecord | None, kind: ControlType) -> bool:
    return record is not None and isinstance(record.content, ControlRecord) and record.content.type == kind
