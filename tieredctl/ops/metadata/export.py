"""`metadata export`: the records of `__remote_log_metadata` in one file, of which `--export` gives the same answers."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.metadata_export import (
    HEADER_KEY,
    ExportedPartition,
    ExportedRecord,
    ExportHeader,
    LinesExtent,
    encode_header,
    encode_record_line,
)
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.documents import Document, event_document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.process.replaced_file import CountedBytes, replaced_file

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROW_GROUP_RECORDS = 1 << 16
_COPY_BYTES = 1 << 20
_FOUND_AGAIN = (FindingCode.EVENT_UNDECODABLE, FindingCode.METADATA_PARTITION_MISSING)
"""What reading the export finds again, so that it would be reported twice if the header had it too."""


class Export(NamedTuple):
    """What was written: a row a metadata partition, and the file's size in bytes."""

    rows: list[Document]
    size: int


def export_metadata(
    stream: EventStream, path: Path, *, force: bool, dry_run: bool = False, is_last: bool = True
) -> Export:
    """Writes all that a stream holds, as Parquet (`.parquet`) or JSON lines (`.jsonl`).

    The file is there whole or not at all; an existing one is only replaced with `force`. Memory follows a row group.
    Raises TieredctlError where it cannot be written. A dry run does all of that without the file. `is_last` as
    `replaced_file` has it.
    """
    open_writer = _WRITERS.get(path.suffix)
    if open_writer is None:
        hint = f"Name it *{' or *'.join(_WRITERS)}."
        raise TieredctlError(ErrorCode.USAGE, f"The name of {path} does not show its format.", hint=hint)
    with replaced_file(path, force=force, dry_run=dry_run, is_last=is_last) as file:
        with open_writer(file) as writer:
            partitions = _write(stream, writer)
        size = file.tell()
    return Export([_row(partition) for partition in partitions], size)


def _write(stream: EventStream, writer: _Writer) -> list[ExportedPartition]:
    counts = Counter[int]()
    for metadata_partition, chunk in stream.chunks():
        counts[metadata_partition] += len(chunk)
        writer.write(stream, metadata_partition, chunk)
    partitions = [
        ExportedPartition(number, stream.start_offset(number), stream.source.offset_range(number).end, counts[number])
        for number in stream.source.metadata_partitions()
    ]
    findings = [finding for finding in stream.findings if finding.code not in _FOUND_AGAIN]
    writer.finish(ExportHeader(stream.source.describe(), partitions, findings))
    return partitions


def _row(partition: ExportedPartition) -> Document:
    return {
        "metadataPartition": partition.metadata_partition,
        "startOffset": partition.start_offset,
        "endOffset": partition.end_offset,
        "records": partition.records,
    }


class _Writer(Protocol):
    """One form of an export."""

    def write(self, stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> None:
        """Adds records; those of one metadata partition come together."""
        ...

    def finish(self, header: ExportHeader) -> None: ...


class _ParquetWriter:
    def __init__(self, file: pq.ParquetWriter) -> None:
        self._file = file
        self._pending: list[pa.Table] = []
        self._metadata_partition: int | None = None

    def write(self, stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> None:
        from tieredctl.ops.metadata.table import record_table

        if metadata_partition != self._metadata_partition:
            self._write_pending()
            self._metadata_partition = metadata_partition
        self._pending.append(record_table(stream, metadata_partition, chunk))
        if sum(map(len, self._pending)) >= _ROW_GROUP_RECORDS:
            self._write_pending()

    def _write_pending(self) -> None:
        import pyarrow as pa

        if any(map(len, self._pending)):
            self._file.write_table(pa.concat_tables(self._pending), row_group_size=_ROW_GROUP_RECORDS)
        self._pending = []

    def finish(self, header: ExportHeader) -> None:
        self._write_pending()
        self._file.add_key_value_metadata({HEADER_KEY: encode_header(header)})


@contextmanager
def _parquet_writer(file: BinaryIO) -> Iterator[_Writer]:
    import pyarrow.parquet as pq

    from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA

    with pq.ParquetWriter(file, RECORD_TABLE_SCHEMA, compression="zstd", write_page_checksum=True) as parquet:
        yield _ParquetWriter(parquet)


class _LinesWriter:
    """Writes the lines to another file first: the header's content is only known after the last of them."""

    def __init__(self, file: BinaryIO, body: BinaryIO) -> None:
        self._file = file
        self._body = body
        self._extents: dict[int, LinesExtent] = {}

    def write(self, stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> None:
        lines = b"".join(_lines(stream, metadata_partition, chunk))
        position, length, crc = self._extents.get(metadata_partition, LinesExtent(self._body.tell(), 0, 0))
        self._extents[metadata_partition] = LinesExtent(position, length + len(lines), crc32c(lines, crc))
        self._body.write(lines)

    def finish(self, header: ExportHeader) -> None:
        partitions = self._placed(header.partitions)
        self._file.write(encode_header(header._replace(partitions=partitions)) + b"\n")
        if self._body is self._file:
            return
        self._body.seek(0)
        shutil.copyfileobj(self._body, self._file, _COPY_BYTES)

    def _placed(self, partitions: Sequence[ExportedPartition]) -> list[ExportedPartition]:
        nowhere = LinesExtent(0, 0, 0)
        return [
            partition._replace(lines=self._extents.get(partition.metadata_partition, nowhere))
            for partition in partitions
        ]


def _lines(stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> Iterator[bytes]:
    for row, record in enumerate(chunk.records()):
        decoded = next(map(event_document, stream.decode(metadata_partition, chunk, [row])), {})
        yield encode_record_line(ExportedRecord(metadata_partition, *record), decoded)


@contextmanager
def _lines_writer(file: BinaryIO) -> Iterator[_Writer]:
    if isinstance(file, CountedBytes):  # which counts the lines in whatever order they come
        yield _LinesWriter(file, file)
        return
    with TemporaryFile(dir=Path(file.name).parent) as body:
        yield _LinesWriter(file, body)


_WRITERS: dict[str, Callable[[BinaryIO], AbstractContextManager[_Writer]]] = {
    ".parquet": _parquet_writer,
    ".jsonl": _lines_writer,
}
