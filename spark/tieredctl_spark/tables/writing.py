"""Files of tables, written where their rows are: on executors, or on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from tieredctl.ports.object_store import WritableObjectStore
from tieredctl_spark.tables.kinds import PROVENANCE, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.stored_bytes import demand_stored
from tieredctl_spark.tables.table_store import data_file_key

MOST_STORED_BYTES = 16 << 20
"""The most stored bytes of a file of a table that grows without bound."""
_CODEC = "zstd"
_BYTES_IN_GROUP = 1 << 21
_ROWS_IN_FILE = 1 << 20
_BYTES_IN_FILE = 1 << 27
"""In memory, before compression: about a quarter of that, or less, is stored."""


@dataclass(frozen=True, slots=True)
class TableWriter:
    """Writes files of a run. Can be pickled. A file that is written twice, by two attempts at one task, is two files,
    of which the manifest names the one that its task reported."""

    store: WritableObjectStore
    version: int
    """The one that the run will make."""
    run_id: str
    cluster_id: str | None
    day: str
    """The run's, as YYYY-MM-DD in UTC."""

    def write(self, kind: TableKind, rows: pa.Table, day: str | None = None) -> DataFile:
        """Rows by `kind.columns` in one file, in the run's day unless another is given."""
        day = (day or self.day) if kind.by_day else None
        return self.write_unchanged(kind, self._whole(kind, rows), day)

    def _whole(self, kind: TableKind, rows: pa.Table) -> pa.Table:
        """Rows by `kind.columns` with what says which run wrote them."""
        own = {"clusterId": self.cluster_id, "runId": self.run_id, "schemaVersion": kind.schema_version}
        same = [pa.repeat(pa.scalar(own[field.name], field.type), len(rows)) for field in PROVENANCE]
        columns = rows.select(kind.columns.names).cast(kind.columns).columns
        return pa.table([*columns, *same], schema=kind.schema)

    def write_unchanged(self, kind: TableKind, rows: pa.Table, day: str | None) -> DataFile:
        """Rows by `kind.schema`, which say themselves which run wrote them."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows.cast(kind.schema), sink, compression=_CODEC, write_page_checksum=True)
        return self._stored(kind, len(rows), sink.getvalue().to_pybytes(), day)

    def write_grown(self, kind: TableKind, tables: Iterable[pa.Table]) -> Iterator[DataFile]:
        """Writes tables by `kind.columns`, of any size together, in files of about MOST_STORED_BYTES: in memory are one
        of these and a group of its rows."""
        groups = gathered(tables, _BYTES_IN_GROUP)
        for first in groups:
            with TemporaryFile() as sink:  # what grows in memory is copied there again and again
                rows = self._write_groups(kind, chain([first], groups), sink)
                sink.seek(0)
                file = self._stored(kind, rows, sink.read(), None)
            yield file

    def _write_groups(self, kind: TableKind, groups: Iterable[pa.Table], sink: IO[bytes]) -> int:
        """Writes groups until the file is large enough; how many rows that are."""
        rows = 0
        with pq.ParquetWriter(sink, kind.schema, compression=_CODEC, write_page_checksum=True) as file:
            for group in groups:
                file.write_table(self._whole(kind, group))
                rows += len(group)
                pa.default_memory_pool().release_unused()  # it keeps what was freed, and a task has little
                if sink.tell() >= MOST_STORED_BYTES:
                    break
        return rows

    def _stored(self, kind: TableKind, rows: int, data: bytes, day: str | None) -> DataFile:
        key = data_file_key(kind, self.version, self.run_id, day)
        demand_stored(self.store, self.store.write(key, data), data)
        return DataFile(key, rows, len(data), day)

    def write_gathered(self, kind: TableKind, tables: Iterable[pa.Table]) -> Iterator[DataFile]:
        """Writes many small tables by `kind.columns`, in as few files as memory allows."""
        return (self.write(kind, rows) for rows in gathered(tables))


def gathered(tables: Iterable[pa.Table], most_bytes: int = _BYTES_IN_FILE) -> Iterator[pa.Table]:
    """Small tables joined, in as few as memory allows; without any that is empty."""
    some: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        some.append(table)
        rows, size = rows + len(table), size + table.nbytes
        if rows >= _ROWS_IN_FILE or size >= most_bytes:
            yield pa.concat_tables(some)
            some, rows, size = [], 0, 0
    if any(map(len, some)):
        yield pa.concat_tables(some)
