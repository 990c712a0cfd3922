"""Turns sound batches, from a broker's file or its answer, into chunks of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.log_scan import Damage, LogBlock, OneByOne, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD, BatchHeader, Record, read_records
from tieredctl.formats.record_chunks import Column, MetadataRecord, RecordChunk, chunk_of
from tieredctl.model.findings import Finding

COLUMNS_FROM = 1 << 20
"""Logs of at least this many bytes are read as columns: for smaller ones, importing numpy costs more than it saves."""
MOST_ROWS = 1 << 16
"""Batches with more records are read only as columns, however small the log."""
UNFOLDED_AT_ONCE = 1 << 25
"""Bytes of records that a chunk may have before the next batch is unfolded: a small log may unfold a thousandfold."""


def log_blocks(pieces: Iterable[bytes], size: int) -> Iterator[LogBlock[Any] | Damage]:
    """Sound batches and damage of a log of `size` bytes, in order; headers as rows, or as columns."""
    if size < COLUMNS_FROM:
        return scan_log(pieces, size, OneByOne())
    from tieredctl.formats.batch_columns import AsColumns

    return scan_log(pieces, size, AsColumns())


def end_offset(block: LogBlock[Any]) -> int:
    """The offset after the highest in its batches."""
    if isinstance(block.headers, list):
        return 1 + int(max(header.last_offset for header in block.headers))
    return int((block.headers["baseOffset"] + block.headers["lastOffsetDelta"]).max()) + 1


@dataclass(frozen=True, slots=True)
class BlockReader:
    """Reads the records of sound batches."""

    first_offset: int
    """Consumers no longer get records below it."""
    corrupt: Callable[[int, BatchHeader, str], Finding]
    """Makes the finding about a batch that cannot be read: (its position, its header, why)."""

    def chunks(self, block: LogBlock[Any]) -> Iterator[RecordChunk]:
        """In the order of the log. A batch that cannot be read is a finding, and reading resumes after it."""
        if not isinstance(block.headers, list):
            yield from self._column_chunks(block)
        elif sum(header.records_count for header in block.headers) > MOST_ROWS:
            yield from self._column_chunks(_as_columns(block))
        else:
            yield from self._row_chunks(block)

    def _column_chunks(self, block: LogBlock[Any]) -> Iterator[RecordChunk]:
        from tieredctl.formats.record_columns import record_values

        for stretch, records in record_values(block.buffer, block.positions, block.headers):
            if records is None:
                yield from self._row_chunks(_as_rows(block, stretch))
                continue
            visible = slice(int(records.offsets.searchsorted(self.first_offset)), None)
            yield RecordChunk(
                records.buffer,
                records.offsets[visible],
                records.timestamps[visible],
                records.starts[visible],
                records.ends[visible],
                unkeyed=int((~records.keyed[visible]).sum()),
                last_unkeyed=_last(records.offsets[visible][~records.keyed[visible]]),
                tombstone_keys=records.tombstone_keys(),
            )

    def _row_chunks(self, block: LogBlock[list[BatchHeader]]) -> Iterator[RecordChunk]:
        rows = _Rows()
        for position, header in zip(block.positions, block.headers, strict=True):
            if header.is_control:
                continue
            try:
                if header.records_count > MOST_ROWS:
                    raise DecodeError(f"not all of {header.records_count} records are events", 0)
                records = list(read_records(block.buffer, int(position), header))
            except DecodeError as error:
                rows.findings.append(self.corrupt(block.file_position + int(position), header, error.reason))
                continue
            rows.take(one for one in records if one.offset >= self.first_offset)
            del records
            if rows.bytes > UNFOLDED_AT_ONCE:
                yield rows.chunk()
                rows = _Rows()
        yield rows.chunk()


@dataclass(slots=True)
class _Rows:
    """Records of some batches, until they are made into a chunk."""

    records: list[MetadataRecord] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unkeyed: list[int] = field(default_factory=list)
    bytes: int = 0

    def take(self, records: Iterable[Record]) -> None:
        for one in records:
            key = one.key if one.value is None else None
            self.records.append(MetadataRecord(one.offset, one.timestamp, one.value, key))
            self.bytes += len(one.value or b"") + len(key or b"")
            if one.key is None:
                self.unkeyed.append(one.offset)

    def chunk(self) -> RecordChunk:
        chunk = chunk_of(self.records, self.findings)
        chunk.unkeyed, chunk.last_unkeyed = len(self.unkeyed), _last(self.unkeyed)
        return chunk


def odd_offsets(chunk: RecordChunk, last_offset: int) -> tuple[int, int] | None:
    """A chunk's first and last offset, if its offsets do not ascend from the last offset before it."""
    if not len(chunk) or (last_offset < chunk.offsets[0] and _rises(chunk.offsets)):
        return None
    return int(chunk.offsets[0]), int(chunk.offsets[-1])


def _as_columns(block: LogBlock[list[BatchHeader]]) -> LogBlock[Any]:
    from tieredctl.formats.batch_columns import AsColumns

    headers, _ = AsColumns().check(block.buffer, block.positions, block.positions[-1] + block.headers[-1].size)
    return LogBlock(block.buffer, block.file_position, block.positions, headers)


def _as_rows(block: LogBlock[Any], stretch: slice) -> LogBlock[list[BatchHeader]]:
    """Some batches of a block."""
    positions = block.positions[stretch]
    end = positions[-1] + int(block.headers["batchLength"][stretch][-1]) + LOG_OVERHEAD
    headers, _ = OneByOne().check(block.buffer, positions, end)
    return LogBlock(block.buffer, block.file_position, positions, headers)


def _rises(offsets: Sequence[int]) -> bool:
    if isinstance(offsets, list):
        return all(before < after for before, after in pairwise(offsets))
    return _column_rises(offsets)


def _column_rises(offsets: Any) -> bool:
    return bool((offsets[1:] > offsets[:-1]).all())


def _last(offsets: Column) -> int | None:
    return int(offsets[-1]) if len(offsets) else None
