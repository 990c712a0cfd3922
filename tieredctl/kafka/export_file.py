"""Reads what `metadata export` wrote: a `MetadataSource` that needs neither a broker nor its disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.metadata_export import (
    HEADER_KEY,
    METADATA_OFFSET,
    METADATA_PARTITION,
    RECORD_COLUMNS,
    TIMESTAMP_MS,
    TOMBSTONE_KEY,
    VALUE,
    AnotherFileError,
    ExportedPartition,
    ExportHeader,
    read_header,
    read_record_line,
)
from tieredctl.formats.record_chunks import NO_VALUE, MetadataRecord, RecordChunk, chunk_of
from tieredctl.model.findings import Finding
from tieredctl.ports.metadata_source import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET_MAGIC = b"PAR1"
_LONGEST_LINE = 1 << 26
_CHUNK_BYTES = 1 << 22


class ExportFile:
    """An export in either form, Parquet or JSON lines. Answers as the exported source did."""

    def __init__(self, path: Path) -> None:
        """Raises TieredctlError if the file cannot be read or is not an export."""
        self._path = path
        self._rows = _opened(path)
        self._partitions = {partition.metadata_partition: partition for partition in self._rows.header.partitions}

    @property
    def cluster_id(self) -> str | None:
        cluster_id = self._rows.header.source.get("clusterId")
        return cluster_id if isinstance(cluster_id, str) else None

    @property
    def metadata_topic_id(self) -> str | None:
        topic_id = self._rows.header.source.get("metadataTopicId")
        return topic_id if isinstance(topic_id, str) else None

    @property
    def partition_count(self) -> int | None:
        count = self._rows.header.source.get("topicPartitions")
        return count if isinstance(count, int) else None

    def describe(self) -> dict[str, object]:
        return {
            "kind": "export",
            "export": str(self._path),
            "clusterId": self.cluster_id,
            "metadataTopicId": self.metadata_topic_id,
            "metadataPartitions": len(self._partitions),
            "topicPartitions": self.partition_count,
            "endOffsets": {str(number): partition.end_offset for number, partition in sorted(self._partitions.items())},
            "exported": dict(self._rows.header.source),
        }

    def metadata_partitions(self) -> list[int]:
        return sorted(self._partitions)

    def findings(self) -> list[Finding]:
        return list(self._rows.header.findings)

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        partition = self._partitions.get(metadata_partition)
        return OffsetRange(partition.start_offset, partition.end_offset) if partition else OffsetRange(0, 0)

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        partition = self._partitions.get(metadata_partition)
        if partition is None:
            return
        count = 0
        for chunk in self._rows.chunks(partition):
            count += len(chunk)
            yield chunk.starting_at(from_offset)
        if count != partition.records:
            reason = f"it has {count} of the {partition.records} records of partition {metadata_partition}"
            raise _damaged(self._path, reason)

    def advance(self) -> bool:
        """An export never changes."""
        return False

    def close(self) -> None:
        self._rows.close()


class _Rows(Protocol):
    """One form of the file."""

    header: ExportHeader

    def chunks(self, partition: ExportedPartition) -> Iterator[RecordChunk]: ...

    def close(self) -> None: ...


def _opened(path: Path) -> _Rows:
    try:
        if not path.is_file() and path.exists():
            raise _damaged(path, "it is not a regular file")
        with path.open("rb") as file:
            magic = file.read(len(_PARQUET_MAGIC))
            return _ParquetRows(path) if magic == _PARQUET_MAGIC else _LineRows(path)
    except AnotherFileError as error:
        hint = "Give a file that `tieredctl metadata export` wrote."
        raise TieredctlError(ErrorCode.USAGE, _unreadable(path, error.reason), hint=hint) from None
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read.") from None
    except OSError as error:
        raise _damaged(path, str(error.strerror)) from None


def _damaged(path: Path, reason: str) -> TieredctlError:
    hint = "Export again with `tieredctl metadata export`."
    return TieredctlError(ErrorCode.UNREADABLE, _unreadable(path, reason), hint=hint)


def _unreadable(path: Path, reason: str) -> str:
    return f"{path} cannot be read as an export: {reason}."


class _LineRows:
    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            line = file.readline(_LONGEST_LINE)
        self._body_position = len(line)
        try:
            self.header = read_header(line)
        except AnotherFileError:
            raise
        except DecodeError as error:
            raise _damaged(path, error.reason) from None

    def chunks(self, partition: ExportedPartition) -> Iterator[RecordChunk]:
        if partition.lines is None:
            raise _damaged(self._path, "its header does not say where the lines are")
        left, crc = partition.lines.length, 0
        with self._path.open("rb") as file:
            file.seek(self._body_position + partition.lines.position)
            while left > 0:
                data = self._whole_lines(file, left)
                left, crc = left - len(data), crc32c(data, crc)
                yield self._chunk(data, partition)
        if crc != partition.lines.crc32c:
            raise _damaged(self._path, f"the lines of partition {partition.metadata_partition} were altered")

    def close(self) -> None:
        """It is open only while it is read."""

    def _whole_lines(self, file: BinaryIO, most: int) -> bytes:
        data = file.read(min(_CHUNK_BYTES, most))
        if not data.endswith(b"\n") and len(data) < most:
            data += file.readline(min(_LONGEST_LINE, most - len(data)))
        if not data.endswith(b"\n"):
            raise _damaged(self._path, "it is cut short")
        return data

    def _chunk(self, data: bytes, partition: ExportedPartition) -> RecordChunk:
        try:
            records = [read_record_line(line) for line in data.splitlines()]
        except DecodeError as error:
            raise _damaged(self._path, error.reason) from None
        if any(record.metadata_partition != partition.metadata_partition for record in records):
            raise _damaged(
                self._path, f"it has another partition's lines among those of {partition.metadata_partition}"
            )
        return chunk_of(MetadataRecord(*record[1:]) for record in records)


class _ParquetRows:
    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        try:
            self._file = pq.ParquetFile(path, page_checksum_verification=True)
            self.header = read_header((self._file.metadata.metadata or {}).get(HEADER_KEY, b"{}"))
            self._row_groups = self._row_groups_by_partition()
        except AnotherFileError:
            raise
        except DecodeError as error:
            raise _damaged(path, error.reason) from None
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise _damaged(path, _message(error)) from None

    def _row_groups_by_partition(self) -> dict[int, list[int]]:
        column = self._file.schema_arrow.names.index(METADATA_PARTITION)
        row_groups: dict[int, list[int]] = {}
        for index in range(self._file.num_row_groups):
            statistics = self._file.metadata.row_group(index).column(column).statistics
            if statistics is None or not statistics.has_min_max or statistics.min != statistics.max:
                raise _damaged(self._path, f"row group {index} does not hold one metadata partition")
            row_groups.setdefault(statistics.min, []).append(index)
        return row_groups

    def chunks(self, partition: ExportedPartition) -> Iterator[RecordChunk]:
        import pyarrow as pa

        for index in self._row_groups.get(partition.metadata_partition, ()):
            try:
                table = self._file.read_row_group(index, columns=[*RECORD_COLUMNS, TOMBSTONE_KEY])
                chunk = _table_chunk(table)
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                raise _damaged(self._path, _message(error)) from None
            yield chunk

    def close(self) -> None:
        self._file.close()


def _table_chunk(table: pa.Table) -> RecordChunk:
    import numpy as np
    import pyarrow as pa

    from tieredctl.formats.arrow_columns import contents, numbers_in

    values = table.column(VALUE).cast(pa.binary()).combine_chunks()
    data, edges = contents(values)
    starts: Any = np.where(numbers_in(values.is_null().cast(pa.int8())), NO_VALUE, edges[:-1])
    offsets, timestamps = (_integers(table, name) for name in (METADATA_OFFSET, TIMESTAMP_MS))
    keys = _tombstone_keys(table, offsets)
    return RecordChunk(data.tobytes(), offsets, timestamps, starts, edges[1:], tombstone_keys=keys)


def _tombstone_keys(table: pa.Table, offsets: Any) -> dict[int, bytes]:
    if TOMBSTONE_KEY not in table.column_names or table.column(TOMBSTONE_KEY).null_count == len(table):
        return {}
    keys = table.column(TOMBSTONE_KEY).to_pylist()
    return {offset: key for offset, key in zip(offsets.tolist(), keys, strict=True) if key is not None}


def _integers(table: pa.Table, name: str) -> Any:
    import pyarrow as pa

    from tieredctl.formats.arrow_columns import numbers_in

    column = table.column(name).cast(pa.int64())
    if column.null_count:
        raise ValueError(f"{name} is missing in places")
    return numbers_in(column.combine_chunks())


def _message(error: Exception) -> str:
    """A library's message about a damaged file, if it is fit to be shown."""
    line = str(error).partition("\n")[0].strip(" .")
    return line if " " in line and line.isprintable() else "it is damaged"
