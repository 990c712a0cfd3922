"""Tables as they are now, without Spark: as Arrow tables, or as URLs of files for other readers of Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.nearest import nearest_hint
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.tables.due import due_documents
from tieredctl_spark.tables.kinds import BACKFILL_TABLES, DAY, LEDGER_TABLES, TABLES, TableKind
from tieredctl_spark.tables.manifest import DataFile, Manifest, State, TableState
from tieredctl_spark.tables.table_store import TablesPlace, current_tables, demand_current

_UNDECODABLE = (pa.ArrowException, OSError)
_FORMAT = ds.ParquetFileFormat(
    default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
)


class ReadableTables(Protocol):
    """All tables as the last run left them."""

    @property
    def manifest(self) -> Manifest: ...

    def newest(self, kind: TableKind, days: int) -> pa.Table:
        """The rows of so many days, the last that there are; of other tables, all. `day` is YYYY-MM-DD."""
        ...

    def due(self, now_ms: int) -> list[Document]:
        """A row for each task that is due besides news: what it is, why, and the command if the next run leaves it."""
        ...


@dataclass(frozen=True, slots=True)
class FolderNow:
    """`ReadableTables` in a folder."""

    store: ObjectStore
    manifest: Manifest

    @classmethod
    def opened(cls, place: TablesPlace) -> FolderNow:
        """Raises TieredctlError `path-missing` where no run ended."""
        store = place.open()
        return cls(store, demand_current(store))

    def newest(self, kind: TableKind, days: int) -> pa.Table:
        files = folder_files(self.manifest.tables, kind.name)
        shown = sorted({one.day for one in files if one.day is not None})[-days:]
        return file_rows(self.store, kind, [one for one in files if one.day in (None, *shown)])

    def due(self, now_ms: int) -> list[Document]:
        return due_documents(self.manifest, now_ms)


def read_rows(tables: str | TablesPlace, name: str) -> pa.Table:
    """A table of the newest version. Raises TieredctlError `path-missing` where no run ended."""
    place = tables_place(tables)
    kind, store = kind_named(name), place.open()
    return file_rows(store, kind, table_files(store, kind))


def table_urls(tables: str | TablesPlace, name: str) -> list[str]:
    """Where the files of a table are, for other readers of Parquet."""
    place = tables_place(tables)
    kind, store = kind_named(name), place.open()
    return [f"{store.url.rstrip('/')}/{one.path}" for one in table_files(store, kind)]


def folder_files(tables: Mapping[str, State], name: str) -> tuple[DataFile, ...]:
    """The files of a table in a folder."""
    state = tables.get(name)
    return state.files if isinstance(state, TableState) else ()


def file_rows(store: ObjectStore, kind: TableKind, files: Iterable[DataFile]) -> pa.Table:
    """The rows of some files of a table, here."""
    read = (table for one in files for table in columns_of_file(store, kind, one, kind.read_schema.names))
    return pa.concat_tables([kind.read_schema.empty_table(), *read])


def columns_of_file(
    store: ObjectStore, kind: TableKind, file: DataFile, columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.Table]:
    """Some columns of a file's rows, by `kind.read_schema`, a group of rows at a time; of those that are meant
    alone. What an earlier tieredctl did not write is null. Raises TieredctlError `unreadable` for a file that is not
    what its manifest names."""
    told = 0
    try:
        for table in _columns(_whole(store, file), kind, file, columns, where):
            yield table
            told += 1
        return
    except _UNDECODABLE:  # by one answer, which may be altered on the way
        again = _columns(_whole(store.reconnected(), file), kind, file, columns, where)
    try:
        yield from islice(again, told, None)
    except _UNDECODABLE as error:
        raise _other(store, file, f"cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _whole(store: ObjectStore, file: DataFile) -> bytes:
    """A file's bytes, read again where one answer has not as many as its manifest gives."""
    missing = (ErrorCode.OBJECT_MISSING,)
    data = read_again(store, lambda at: at.read(file.path), missing, is_sound=lambda read: len(read) == file.bytes)
    if len(data) != file.bytes:
        raise _other(store, file, f"has {counted(len(data), 'byte')}, but its manifest gives {file.bytes}")
    return data


def _other(store: ObjectStore, file: DataFile, what: str) -> TieredctlError:
    hint = "Run it again; if it stays so, restore the file."
    return TieredctlError(ErrorCode.UNREADABLE, f"{store.url.rstrip('/')}/{file.path} {what}.", hint=hint)


def _columns(
    data: bytes, kind: TableKind, file: DataFile, columns: Sequence[str], where: pc.Expression | None
) -> Iterator[pa.Table]:
    schema = pa.schema([kind.read_schema.field(name) for name in columns])
    whole = _FORMAT.make_fragment(pa.BufferReader(data))
    written = [name for name in kind.schema.names if name in whole.physical_schema.names]
    # Whatever column is asked for, one is read: without any, the number of rows would be lost.
    read = [name for name in columns if name in written] or written[:1]
    unwritten = [one for one in schema if one.name in kind.schema.names and one.name not in written]
    for group in whole.split_by_row_group(where):
        table = group.to_table(columns=read, filter=where)
        if DAY in columns:
            table = table.append_column(DAY, pa.repeat(pa.scalar(file.day, pa.string()), len(table)))
        for one in unwritten:
            table = table.append_column(one, pa.nulls(len(table), one.type))
        yield table.select(list(columns)).cast(schema)


def tables_place(tables: str | TablesPlace) -> TablesPlace:
    """The place, or the one of a URL or path."""
    return tables if isinstance(tables, TablesPlace) else TablesPlace.given(tables, {})


def kind_named(name: str) -> TableKind:
    """A table of a pipeline, a backfill or a verification ledger. Raises TieredctlError `usage` for another."""
    kinds = TABLES | BACKFILL_TABLES | LEDGER_TABLES
    if name not in kinds:
        pipeline, backfill, ledger = (", ".join(some) for some in (TABLES, BACKFILL_TABLES, LEDGER_TABLES))
        message = f"There is no table {name!r}; a pipeline's are {pipeline}; a backfill's are {backfill}"
        message = f"{message}; a ledger's is {ledger}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=nearest_hint(name, kinds))
    return kinds[name]


def table_files(store: ObjectStore, kind: TableKind) -> Sequence[DataFile]:
    """The files of a table in the newest version. Raises TieredctlError `path-missing` where it is not there."""
    tables = current_tables(store)
    if kind.name not in tables:
        hint = f"There are {', '.join(tables)}."
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no table {kind.name} in {store.url}.", hint=hint)
    return folder_files(tables, kind.name)
