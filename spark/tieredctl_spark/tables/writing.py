"""Files of tables, written where their rows are: on executors, or on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tieredctl.ports.object_store import WritableObjectStore
from tieredctl_spark.tables.kinds import PROVENANCE, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.table_store import data_file_key

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
        own = {"clusterId": self.cluster_id, "runId": self.run_id, "schemaVersion": kind.schema_version}
        same = [pa.repeat(pa.scalar(own[field.name], field.type), len(rows)) for field in PROVENANCE]
        columns = rows.select(kind.columns.names).cast(kind.columns).columns
        return self.write_unchanged(kind, pa.table([*columns, *same], schema=kind.schema), day)

    def write_unchanged(self, kind: TableKind, rows: pa.Table, day: str | None) -> DataFile:
        """Rows by `kind.schema`, which say themselves which run wrote them."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows.cast(kind.schema), sink, compression="zstd")
        key, data = data_file_key(kind, self.version, self.run_id, day), sink.getvalue().to_pybytes()
        self.store.write(key, data)
        return DataFile(key, len(rows), len(data), day)

    def write_gathered(self, kind: TableKind, tables: Iterable[pa.Table]) -> Iterator[DataFile]:
        """Writes many small tables by `kind.columns`, in as few files as memory allows."""
        return (self.write(kind, rows) for rows in gathered(tables))


def gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Small tables joined, in as few as memory allows; without any that is empty."""
    some: list[pa.Table] = []
    for table in tables:
        some.append(table)
        if sum(map(len, some)) >= _ROWS_IN_FILE or sum(one.nbytes for one in some) >= _BYTES_IN_FILE:
            yield pa.concat_tables(some)
            some = []
    if any(map(len, some)):
        yield pa.concat_tables(some)
