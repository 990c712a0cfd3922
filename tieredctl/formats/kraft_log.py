"""Segments of `__cluster_metadata-0`, the controllers' log (KIP-595, KIP-631)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import ControlRecord, decode_control_record
from tieredctl.formats.kraft_records import KraftRecord, decode_kraft_record
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import BatchHeader, Record, read_records
from tieredctl.formats.varints import Buffer


class KraftLogRecord(NamedTuple):
    """A record of the metadata log, or of a snapshot, where offsets count from 0 in the file and the timestamp is when
    the snapshot was written. Times are milliseconds; `batch_position` is a byte of the file."""

    offset: int
    epoch: int
    """The leader's when it appended the record."""
    timestamp: int
    batch_position: int
    content: ControlRecord | KraftRecord


def batch_records(position: int, header: BatchHeader, batch: Buffer) -> Iterator[KraftLogRecord | Damage]:
    """The records of a sound batch at a position of the file; for each that cannot be decoded, a damage."""
    try:
        for record in read_records(batch, 0, header):
            try:
                yield _decoded(position, header, record)
            except DecodeError as error:
                yield undecodable(position, header, error)
    except DecodeError as error:
        yield undecodable(position, header, error)


def demanded_records(position: int, header: BatchHeader, batch: Buffer) -> Iterator[KraftLogRecord]:
    """The records of a sound batch at a position of the file. Raises DecodeError, with that position, for one that
    cannot be decoded."""
    for record in batch_records(position, header, batch):
        if isinstance(record, Damage):
            raise DecodeError(record.reason, record.position)
        yield record


def sound_batches(
    chunks: Iterable[bytes], size: int, base_offset: int | None = None
) -> Iterator[tuple[int, BatchHeader, memoryview] | Damage]:
    """The position in the file, header and bytes of each sound batch, and the damage between them."""
    for part in scan_log(chunks, size, OneByOne(), base_offset):
        if isinstance(part, Damage):
            yield part
            continue
        view = memoryview(part.buffer)
        for position, header in zip(part.positions, part.headers, strict=True):
            yield part.file_position + position, header, view[position : position + header.size]


def _decoded(position: int, header: BatchHeader, record: Record) -> KraftLogRecord:
    """A record of the batch at a position of the file. Raises DecodeError."""
    content = decode_control_record(record) if header.is_control else decode_kraft_record(record.value or b"")
    return KraftLogRecord(record.offset, header.partition_leader_epoch, record.timestamp, position, content)


def undecodable(position: int, header: BatchHeader, error: DecodeError) -> Damage:
    """The damage that a record which cannot be decoded makes of the sound batch at a position of the file."""
    return Damage(position, position + header.size, f"{error.reason}, in a record of the batch", header)
