"""Reads one replica of one metadata partition from its folder in a broker's log directory, the broker up or down."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from errno import EINVAL
from itertools import pairwise
from pathlib import Path
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.log_scan import Damage, LogBlock, OneByOne, scan_log
from tieredctl.formats.record_batches import LOG_OVERHEAD, BatchHeader, read_records
from tieredctl.kafka.source import MetadataRecord, RecordChunk, chunk_of
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding

COLUMNS_FROM = 1 << 20
"""Bytes from which on a file is read as columns: below, importing numpy costs more than it saves."""
MOST_ROWS = 1 << 16
"""Records of a batch from which on they are read as columns alone, however small the file."""
_CHUNK_BYTES = 1 << 22
_SEGMENT_FILE = re.compile(r"^(\d{20})\.log$")
_PASSING_FILE = re.compile(r"^\d{20}\.log\.(deleted|swap|cleaned)$")


class PartitionLog:
    """A replica's segment files, as they are when this is made. Every file is read up to the size it then has."""

    def __init__(self, folder: Path, metadata_partition: int, log_start_offset: int = 0) -> None:
        """`log_start_offset` is what the broker's checkpoint says, below which records are gone for consumers."""
        self.folder = folder
        self.metadata_partition = metadata_partition
        self._log_start_offset = log_start_offset
        self._files: list[tuple[int, Path, int]] = []
        self._modified_ns: list[int] = []
        self._passed_over: list[Path] = []
        self._end_offset = 0
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if match := _SEGMENT_FILE.match(entry.name):
                if not entry.is_file():
                    raise OSError(EINVAL, f"{entry.name} is not a regular file")
                status = entry.stat()
                self._files.append((int(match[1]), Path(entry.path), status.st_size))
                self._modified_ns.append(status.st_mtime_ns)
            elif _PASSING_FILE.match(entry.name):
                self._passed_over.append(Path(entry.path))

    @property
    def start_offset(self) -> int:
        """The first offset that this replica can still hold."""
        return max(self._log_start_offset, self._files[0][0] if self._files else 0)

    @property
    def end_offset(self) -> int:
        """Behind the last offset of all that was read so far, records that a compaction removed included."""
        return max(self._end_offset, self._files[-1][0] if self._files else 0)

    def findings(self) -> list[Finding]:
        return [passed_over(path, "Kafka is deleting or replacing this file") for path in self._passed_over]

    def state(self) -> object:
        """What differs as soon as this would be read otherwise."""
        return self.folder, self._log_start_offset, self._files, self._modified_ns, self._passed_over

    def chunks(self, from_offset: int = 0) -> Iterator[RecordChunk]:
        """Records by rising offset, with what is damaged as findings. Files that end below `from_offset` are left out;
        others are read whole."""
        last_offset = self.start_offset - 1
        following = [base_offset for base_offset, _, _ in self._files[1:]]
        for index, (_, path, size) in enumerate(self._files):
            appended_to = index == len(self._files) - 1
            if not appended_to and following[index] <= from_offset:
                continue
            for chunk in self._file_chunks(path, size, appended_to):
                self._demand_order(chunk, last_offset, path)
                if len(chunk):
                    last_offset = max(last_offset, int(chunk.offsets[-1]))
                yield chunk

    def _file_chunks(self, path: Path, size: int, appended_to: bool) -> Iterator[RecordChunk]:
        with path.open("rb") as file:
            pieces = _pieces(file.fileno(), size)
            parts = (
                self._column_chunks(pieces, size, path)
                if size >= COLUMNS_FROM
                else self._row_chunks(pieces, size, path)
            )
            for part in parts:
                if isinstance(part, RecordChunk):
                    yield part
                elif not (part.torn and appended_to):
                    yield chunk_of((), [self._corrupt(path, part.position, part.header, part.reason)])

    def _row_chunks(self, pieces: Iterator[bytes], size: int, path: Path) -> Iterator[RecordChunk | Damage]:
        for part in scan_log(pieces, size, OneByOne()):
            if isinstance(part, Damage):
                yield part
                continue
            self._end_offset = max(self._end_offset, *(header.last_offset + 1 for header in part.headers))
            if sum(header.records_count for header in part.headers) > MOST_ROWS:
                yield from self._column_chunks_of(_as_columns(part), path)
            else:
                yield self._row_chunk(part, path)

    def _column_chunks(self, pieces: Iterator[bytes], size: int, path: Path) -> Iterator[RecordChunk | Damage]:
        from tieredctl.formats.batch_columns import AsColumns

        for part in scan_log(pieces, size, AsColumns()):
            if isinstance(part, Damage):
                yield part
                continue
            ends = part.headers["baseOffset"] + part.headers["lastOffsetDelta"]
            self._end_offset = max(self._end_offset, int(ends.max(initial=-1)) + 1)
            yield from self._column_chunks_of(part, path)

    def _column_chunks_of(self, block: LogBlock[Any], path: Path) -> Iterator[RecordChunk]:
        from tieredctl.formats.record_columns import record_values

        for stretch, records in record_values(block.buffer, block.positions, block.headers):
            if records is None:
                yield self._row_chunk(_as_rows(block, stretch), path)
                continue
            visible = slice(int(records.offsets.searchsorted(self._log_start_offset)), None)
            yield RecordChunk(
                records.buffer,
                records.offsets[visible],
                records.timestamps[visible],
                records.starts[visible],
                records.ends[visible],
                tombstone_keys=records.tombstone_keys(),
            )

    def _row_chunk(self, block: LogBlock[list[BatchHeader]], path: Path) -> RecordChunk:
        records: list[MetadataRecord] = []
        findings: list[Finding] = []
        for position, header in zip(block.positions, block.headers, strict=True):
            if header.is_control:
                continue
            try:
                if header.records_count > MOST_ROWS:
                    raise DecodeError(f"not all of {header.records_count} records are events", 0)
                found = [
                    (r.offset, r.timestamp, r.value, r.key if r.value is None else None)
                    for r in read_records(block.buffer, int(position), header)
                ]
            except DecodeError as error:
                findings.append(self._corrupt(path, block.file_position + int(position), header, error.reason))
                continue
            records += (MetadataRecord(*row) for row in found if row[0] >= self._log_start_offset)
        return chunk_of(records, findings)

    def _corrupt(self, path: Path, position: int, header: BatchHeader | None, reason: str) -> Finding:
        evidence: dict[str, object] = {
            "metadataPartition": self.metadata_partition,
            "file": str(path),
            "position": position,
        }
        if header:
            evidence["offsets"] = [header.base_offset, header.last_offset]
        return Finding(
            FindingCode.BATCH_CORRUPT, f"{path}@{position}", f"{reason}; the log was read on behind it", evidence
        )

    def _demand_order(self, chunk: RecordChunk, last_offset: int, path: Path) -> None:
        offsets = [last_offset, *map(int, chunk.offsets[:1]), *map(int, chunk.offsets[-1:])]
        if offsets == sorted(offsets) and _rises(chunk.offsets):
            return
        evidence = {"metadataPartition": self.metadata_partition, "file": str(path), "offsets": offsets[1:]}
        message = f"offsets do not rise behind {last_offset}: a batch's base offset was altered"
        chunk.findings.append(Finding(FindingCode.OFFSETS_OUT_OF_ORDER, str(path), message, evidence))


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


def passed_over(path: Path, why: str) -> Finding:
    """What is said of a file or folder that is not read on purpose."""
    return Finding(FindingCode.FOLDER_PASSED_OVER, str(path), f"passed over: {why}", {"file": str(path)})


def _rises(offsets: Sequence[int]) -> bool:
    return (
        all(before < after for before, after in pairwise(offsets))
        if isinstance(offsets, list)
        else _column_rises(offsets)
    )


def _column_rises(offsets: Any) -> bool:
    return bool((offsets[1:] > offsets[:-1]).all())


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    """The file up to the size that it had, whatever a broker does to it meanwhile."""
    position = 0
    while position < size:
        piece = os.pread(descriptor, min(_CHUNK_BYTES, size - position), position)
        if not piece:
            return
        position += len(piece)
        yield piece
