"""What the data sources that read `__remote_log_metadata` record by record have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_rows import MetadataRows
from tieredctl_spark.metadata_shares import Wanted, planned_shares
from tieredctl_spark.missing_streams import NoStream
from tieredctl_spark.schemas import projection
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, METADATA_PARTITION, PARTITION_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_SELECTION = (METADATA_PARTITION, *PARTITION_OPTIONS)
_MOST_ROWS = "max-rows-per-batch"


@dataclass(frozen=True, slots=True)
class RowKind:
    """The rows of a data source."""

    source: str
    schema: pa.Schema
    has_findings: bool
    table: Callable[[pa.Table], pa.Table]
    """Makes them of rows by METADATA_SCHEMA."""

    def reader(self, given: Mapping[str, str], schema: StructType) -> DataSourceReader:
        """The reader of a batch, by the options that were given and the schema that was asked for."""
        with one_sentence():
            options = SourceOptions(self.source, given, (*METADATA_OPTIONS, AS_OF, *_SELECTION))
            return _Reader(options.metadata_place(), self._rows(options, schema))

    def stream_reader(self, given: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
        """The same of a stream."""
        try:
            from tieredctl_spark.metadata_stream import MetadataStreamReader
        except ModuleNotFoundError:  # PySpark's own pyspark.sql.streaming.datasource
            return NoStream(self.source)
        with one_sentence():
            options = SourceOptions(self.source, given, (*METADATA_OPTIONS, *_SELECTION, _MOST_ROWS))
            rows, most_rows = self._rows(options, schema), options.number(_MOST_ROWS, least=1)
            return MetadataStreamReader(options.metadata_place(), rows, most_rows)

    def _rows(self, options: SourceOptions, schema: StructType) -> MetadataRows:
        wanted = Wanted(self.has_findings, options.number(METADATA_PARTITION), options.selection())
        return MetadataRows(self.table, wanted, projection(self.source, schema, self.schema))


class _Reader(DataSourceReader):
    def __init__(self, place: MetadataPlace, rows: MetadataRows) -> None:
        self._place = place
        self._rows = rows

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            return [InputPartition(share) for share in planned_shares(self._place, self._rows.wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from self._rows.batches(self._place, partition.value)
