"""The data source `tiered_findings`: what is wrong with `__remote_log_metadata`, as a DataFrame, as in
`spark.read.format("tiered_findings").option("bootstrap-server", "broker:9092").load()`.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from tieredctl_spark.arrow.event_table import FINDING_TABLE_SCHEMA, finding_table
from tieredctl_spark.metadata_reading import RowKind
from tieredctl_spark.schemas import spark_schema

_ROWS = RowKind("tiered_findings", FINDING_TABLE_SCHEMA, has_findings=True, table=finding_table)


class TieredFindings(DataSource):
    """Options: those of `remote_log_metadata`, of a batch and of a stream. Findings are given whatever topic or
    partition is chosen: an event that cannot be decoded may be about any.

    FINDING_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted.
    All records are read and decoded to find them.
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
