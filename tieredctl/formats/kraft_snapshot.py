"""KRaft snapshots, `<end offset>-<epoch>.checkpoint` in `__cluster_metadata-0` (KIP-630, RecordsSnapshotReader).

A snapshot consists of record batches: the first is a control batch with the header, the last one with the footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import ControlRecord
from tieredctl.formats.kraft_log import KraftLogRecord, decode_logged_record, sound_batches
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import BatchHeader, ControlType, read_records


def read_kraft_snapshot(chunks: Iterable[bytes], size: int) -> Iterator[KraftLogRecord]:
    """The records of a snapshot of `size` bytes that arrives in pieces.

    Raises DecodeError, with positions in the file, where a batch is damaged, offsets do not follow each other from 0,
    the first record is not a header, the last not a footer, or something follows the footer.
    """
    following_offset = 0
    last: KraftLogRecord | None = None
    for part in sound_batches(chunks, size):
        if isinstance(part, Damage):
            raise DecodeError(part.reason, part.position)
        position, header, batch = part
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


def _records(position: int, header: BatchHeader, batch: memoryview) -> Iterator[KraftLogRecord]:
    try:
        for record in read_records(batch, 0, header):
            yield decode_logged_record(position, header, record)
    except DecodeError as error:
        raise DecodeError(f"{error.reason}, in a record of the batch", position) from None


def _is_control(record: KraftLogRecord | None, kind: ControlType) -> bool:
    return record is not None and isinstance(record.content, ControlRecord) and record.content.type == kind
