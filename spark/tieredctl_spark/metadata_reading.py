"""What the data sources that read `__remote_log_metadata` record by record have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_rows import MetadataRows
from tieredctl_spark.metadata_shares import Wanted, planned_shares
from tieredctl_spark.schemas import projection
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, METADATA_PARTITION, PARTITION_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_SELECTION = (METADATA_PARTITION, *PARTITION_OPTIONS)
_STREAMS_SINCE = "4.2"
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
        """Of a batch, by the options that were given and the schema that was asked for."""
        with one_sentence():
            options = SourceOptions(self.source, given, (*METADATA_OPTIONS, AS_OF, *_SELECTION))
            return _Reader(options.metadata_place(), self._rows(options, schema))

    def stream_reader(self, given: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
        """The same of a stream."""
        try:
            from tieredctl_spark.metadata_stream import MetadataStreamReader
        except ModuleNotFoundError:  # PySpark's own pyspark.sql.streaming.datasource
            return _NoStream(self.source)
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


class _NoStream(DataSourceStreamReader):
    """Says that this release of PySpark has no such streams, whichever end it asks for first: PySpark 4.1 hides what
    `streamReader` itself raises."""

    def __init__(self, source: str) -> None:
        self._source = source

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._refuse()

    def latestOffset(self, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: N802 - as above; later releases give more
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise AssertionError(f"{partition} of a stream that never began")

    def _refuse(self) -> NoReturn:
        hint = "Read it in batches: spark.read instead of spark.readStream."
        message = f"A stream of {self._source} needs PySpark {_STREAMS_SINCE} or later; this is {pyspark.__version__}."
        with one_sentence():
            raise TieredctlError(ErrorCode.MISSING_EXTRA, f"{message} {hint}", hint=hint)
