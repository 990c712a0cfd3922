"""Tables as they are now: as a DataFrame, with pyarrow, or as the URLs of their files for other readers of Parquet.

`read_table(spark, "s3://lake/tiered", "segments").groupBy("topic").sum("segmentSizeInBytes")`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.nearest import nearest_hint
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.schemas import as_spark_reads, spark_schema
from tieredctl_spark.tables.kinds import DAY, TABLES, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.table_store import TablesPlace, demand_current
from tieredctl_spark.worker_failures import one_sentence

_MOST_TASKS = 256


def read_table(session: SparkSession, tables: str | TablesPlace, name: str) -> DataFrame:
    """A table of the newest version, with `day` as a date. Executors read its files by tieredctl's own stores, so that
    no package of Hadoop's is needed. Raises TieredctlError `path-missing` where no run ended."""
    place = _place(tables)
    kind, store = _kind(name), place.open()
    frame = files_frame(session, store, kind, demand_current(store).tables[name].files)
    return frame.withColumn(DAY, fn.to_date(DAY)) if kind.by_day else frame


def read_rows(tables: str | TablesPlace, name: str) -> pa.Table:
    """The same, whole, as an Arrow table; without Spark."""
    place = _place(tables)
    kind, store = _kind(name), place.open()
    return file_rows(store, kind, demand_current(store).tables[name].files)


def table_urls(tables: str | TablesPlace, name: str) -> list[str]:
    """Where the files of a table are, for other readers of Parquet."""
    place = _place(tables)
    kind, store = _kind(name), place.open()
    return [f"{store.url.rstrip('/')}/{one.path}" for one in demand_current(store).tables[kind.name].files]


def files_frame(
    session: SparkSession,
    store: ObjectStore,
    kind: TableKind,
    files: Sequence[DataFile],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """The rows of some files of a table, read when this is computed; with `columns`, these alone."""
    schema = kind.read_schema
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    read_as = as_spark_reads(_dates_as_text(wanted))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    table = _file_rows(store, kind, files[number], wanted.names)
                    yield from table.cast(read_as).to_batches()

    numbers = session.range(0, len(files), 1, max(1, min(len(files), _MOST_TASKS)))
    frame = numbers.mapInArrow(read, spark_schema(_dates_as_text(wanted)))
    dates = [field.name for field in wanted if pa.types.is_date(field.type)]
    return frame.withColumns({name: fn.to_date(name) for name in dates}) if dates else frame


def file_rows(store: ObjectStore, kind: TableKind, files: Iterable[DataFile]) -> pa.Table:
    """The rows of some files of a table, here."""
    read = [_file_rows(store, kind, one, kind.read_schema.names) for one in files]
    return pa.concat_tables([kind.read_schema.empty_table(), *read])


def _file_rows(store: ObjectStore, kind: TableKind, file: DataFile, columns: Sequence[str]) -> pa.Table:
    stored = [name for name in columns if name in kind.schema.names]
    # Whatever column is asked for, one is read: without any, the number of rows would be lost.
    table = pq.read_table(pa.BufferReader(store.read(file.path)), columns=stored or kind.schema.names[:1])
    if DAY in columns:
        table = table.append_column(DAY, pa.repeat(pa.scalar(file.day, pa.string()), len(table)))
    schema = pa.schema([kind.read_schema.field(name) for name in columns])
    return table.select(list(columns)).cast(schema)


def _dates_as_text(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(one.name, pa.string() if pa.types.is_date(one.type) else one.type) for one in schema])


def _place(tables: str | TablesPlace) -> TablesPlace:
    return tables if isinstance(tables, TablesPlace) else TablesPlace.given(tables, {})


def _kind(name: str) -> TableKind:
    if name not in TABLES:
        message = f"There is no table {name!r}; the pipeline's are {', '.join(TABLES)}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=nearest_hint(name, TABLES))
    return TABLES[name]
