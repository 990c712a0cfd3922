"""The data source `remote_log_metadata`: the events of `__remote_log_metadata` as a DataFrame, as in
`spark.read.format("remote_log_metadata").option("bootstrap-server", "broker:9092").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_shares import FILTER_COLUMNS, FINDING, METADATA_SCHEMA, planned_shares, share_tables
from tieredctl_spark.pushed_filters import FilteringReader, PushedFilters
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import METADATA_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME = "remote_log_metadata"
_MOST_ROWS = "max-rows-per-batch"


class RemoteLogMetadata(DataSource):
    """Options, as on the command line: one of `log-dir` (brokers' log directories, separated by commas),
    `bootstrap-server` (with `command-config`, a file of client properties), `export` (a file that `metadata export`
    wrote) and `metadata-source` (NAME:LOCATION, with `metadata-source-option.NAME`). For a stream also
    `max-rows-per-batch`. Executors read the files, or the topic, themselves.

    METADATA_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted, and
    without `finding` there are no rows of findings. Each metadata partition is a partition of the DataFrame, its rows
    in the order of the topic, its replicas merged; a large one is divided by offsets. Conditions on single columns are
    pushed down where `spark.sql.python.filterPushdown.enabled` is true: on `metadataPartition` and `metadataOffset`
    they spare reading, on `timestampMs` decoding, on others such as `topic` the way to the JVM.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(METADATA_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            place = SourceOptions(_NAME, self.options, METADATA_OPTIONS).metadata_place()
            return _Reader(place, projection(_NAME, schema, METADATA_SCHEMA))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from tieredctl_spark.metadata_stream import MetadataStreamReader

        with one_sentence():
            options = SourceOptions(_NAME, self.options, (*METADATA_OPTIONS, _MOST_ROWS))
            most_rows = options.number(_MOST_ROWS, least=1)
            columns = projection(_NAME, schema, METADATA_SCHEMA)
            return MetadataStreamReader(options.metadata_place(), columns, most_rows)


class _Reader(FilteringReader):
    def __init__(self, place: MetadataPlace, columns: Projection) -> None:
        super().__init__(PushedFilters(FILTER_COLUMNS))
        self._place = place
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            shares = planned_shares(self._place, self.filters, has_findings=FINDING in self._columns.names)
            return [InputPartition(share) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # what Spark makes of a plan without any share
            return
        with one_sentence():
            for table in share_tables(self._place, partition.value, self.filters):
                yield from self._columns.batches(table)
