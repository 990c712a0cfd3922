"""Tables as they are now, as DataFrames.

`read_table(spark, "s3://lake/tiered", "segments").groupBy("topic").sum("segmentSizeInBytes")`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.kept_frames import task_rows
from tieredctl_spark.tables.files import columns_of_file, kind_named, table_files, tables_place
from tieredctl_spark.tables.kinds import DAY, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.table_store import TablesPlace

_MOST_TASKS = 256


def read_table(session: SparkSession, tables: str | TablesPlace, name: str) -> DataFrame:
    """A table of the newest version, with `day` as a date. Executors read its files by tieredctl's own stores, so that
    no package of Hadoop's is needed. Raises TieredctlError `path-missing` where no run ended."""
    place = tables_place(tables)
    kind, store = kind_named(name), place.open()
    frame = files_frame(session, store, kind, table_files(store, kind))
    return frame.withColumn(DAY, fn.to_date(DAY)) if kind.by_day else frame


def files_frame(
    session: SparkSession,
    store: ObjectStore,
    kind: TableKind,
    files: Sequence[DataFile],
    columns: Sequence[str] | None = None,
    where: pc.Expression | None = None,
) -> DataFrame:
    """The rows of some files of a table, read when this is computed; with `columns`, these alone, and `where` they are
    meant."""
    schema = kind.read_schema
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])

    def read(number: int) -> Iterator[pa.Table]:
        return columns_of_file(store, kind, files[number], wanted.names, where)

    return task_rows(session, len(files), read, wanted, _MOST_TASKS)
