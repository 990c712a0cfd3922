"""Tables as they are now, without Spark: as Arrow tables, or as URLs of files for other readers of Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.nearest import nearest_hint
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.tables.kinds import DAY, TABLES, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.table_store import TablesPlace, demand_current


def read_rows(tables: str | TablesPlace, name: str) -> pa.Table:
    """A table of the newest version. Raises TieredctlError `path-missing` where no run ended."""
    place = tables_place(tables)
    kind, store = kind_named(name), place.open()
    return file_rows(store, kind, demand_current(store).tables[name].files)


def table_urls(tables: str | TablesPlace, name: str) -> list[str]:
    """Where the files of a table are, for other readers of Parquet."""
    place = tables_place(tables)
    kind, store = kind_named(name), place.open()
    return [f"{store.url.rstrip('/')}/{one.path}" for one in demand_current(store).tables[kind.name].files]


def file_rows(store: ObjectStore, kind: TableKind, files: Iterable[DataFile]) -> pa.Table:
    """The rows of some files of a table, here."""
    read = [columns_of_file(store, kind, one, kind.read_schema.names) for one in files]
    return pa.concat_tables([kind.read_schema.empty_table(), *read])


def columns_of_file(store: ObjectStore, kind: TableKind, file: DataFile, columns: Sequence[str]) -> pa.Table:
    """Some columns of a file's rows, by `kind.read_schema`."""
    stored = [name for name in columns if name in kind.schema.names]
    # Whatever column is asked for, one is read: without any, the number of rows would be lost.
    table = pq.read_table(pa.BufferReader(store.read(file.path)), columns=stored or kind.schema.names[:1])
    if DAY in columns:
        table = table.append_column(DAY, pa.repeat(pa.scalar(file.day, pa.string()), len(table)))
    schema = pa.schema([kind.read_schema.field(name) for name in columns])
    return table.select(list(columns)).cast(schema)


def tables_place(tables: str | TablesPlace) -> TablesPlace:
    """The place, or the one of a URL or path."""
    return tables if isinstance(tables, TablesPlace) else TablesPlace.given(tables, {})


def kind_named(name: str) -> TableKind:
    """One of the pipeline's tables. Raises TieredctlError `usage` for another."""
    if name not in TABLES:
        message = f"There is no table {name!r}; the pipeline's are {', '.join(TABLES)}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=nearest_hint(name, TABLES))
    return TABLES[name]
