"""The data source `remote_log_metadata`: the events of `__remote_log_metadata` as a DataFrame, as in
`spark.read.format("remote_log_metadata").option("bootstrap-server", "broker:9092").load()`.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from tieredctl_spark.arrow.event_table import EVENT_TABLE_SCHEMA, event_table
from tieredctl_spark.metadata_reading import RowKind
from tieredctl_spark.schemas import spark_schema

_ROWS = RowKind("remote_log_metadata", EVENT_TABLE_SCHEMA, has_findings=False, table=event_table)


class RemoteLogMetadata(DataSource):
    """Options, as on the command line: one of `log-dir` (brokers' log directories, separated by commas),
    `bootstrap-server` (with `command-config`, a file of client properties), `export` (a file that `metadata export`
    wrote) and `metadata-source` (NAME:LOCATION, with `metadata-source-option.NAME`). For a stream also
    `max-rows-per-batch`, else also `as-of`: a time, or the last offset of each metadata partition as `0:12,1:40`.
    Executors read the files, or the topic, themselves.

    `metadata-partition` reads that one alone, and `topic`, `topic-id` and `partition` keep events about those.

    EVENT_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted. What
    is wrong with the metadata is in `tiered_findings`. Each metadata partition is a partition of the DataFrame, its
    rows in the order of the topic, its replicas merged; a large one is divided by offsets.

    Spark's filters are not pushed down, whatever `spark.sql.python.filterPushdown.enabled` says: Spark 4.3 would apply
    those of one query to every other query of the same DataFrame, and events would be missing. Options do the same.
    """

    @classmethod
    def name(cls) -> str:
        return _ROWS.source

    def schema(self) -> StructType:
        return spark_schema(_ROWS.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _ROWS.reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _ROWS.stream_reader(self.options, schema)
