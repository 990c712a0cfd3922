"""The data source `tiered_segments`: every segment as it is, as a DataFrame, as in
`spark.read.format("tiered_segments").option("bootstrap-server", "broker:9092").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.ops.metadata.selection import Selection
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.segment_table import SEGMENT_TABLE_SCHEMA
from tieredctl_spark.replay_shares import planned_replays, replayed_tables
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, METADATA_PARTITION, PARTITION_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME = "tiered_segments"


class TieredSegments(DataSource):
    """Options: those of a batch of `remote_log_metadata`.

    SEGMENT_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted.
    The rows are those of `tieredctl metadata segments`: of each segment that a broker knows, by its own replay, which
    takes no event that Kafka would refuse. Executors read and replay whole metadata partitions, each a partition of
    the DataFrame; where a user partition may have events in several of them, or nothing tells, one task replays all.
    What is wrong with the metadata is in `tiered_findings`. Filters are not pushed down, as in `remote_log_metadata`.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(SEGMENT_TABLE_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            options = SourceOptions(
                _NAME, self.options, (*METADATA_OPTIONS, AS_OF, METADATA_PARTITION, *PARTITION_OPTIONS)
            )
            columns, number = projection(_NAME, schema, SEGMENT_TABLE_SCHEMA), options.number(METADATA_PARTITION)
            return _Reader(options.metadata_place(), options.selection(), number, columns)


class _Reader(DataSourceReader):
    def __init__(self, place: MetadataPlace, selection: Selection, number: int | None, columns: Projection) -> None:
        self._place = place
        self._selection = selection
        self._number = number
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            return [InputPartition(share) for share in planned_replays(self._place, self._number)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            for table in replayed_tables(self._place, partition.value, self._selection):
                yield from self._columns.batches(table)
