"""The data source `remote_log_metadata`: the events of `__remote_log_metadata` as a DataFrame, as in
`spark.read.format("remote_log_metadata").option("bootstrap-server", "broker:9092").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.metadata_shares import FINDING, METADATA_SCHEMA, Wanted, planned_shares, share_tables
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, PARTITION_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME = "remote_log_metadata"
_SELECTION = ("metadata-partition", *PARTITION_OPTIONS)
_STREAMS_SINCE = "4.2"
_MOST_ROWS = "max-rows-per-batch"


class RemoteLogMetadata(DataSource):
    """Options, as on the command line: one of `log-dir` (brokers' log directories, separated by commas),
    `bootstrap-server` (with `command-config`, a file of client properties), `export` (a file that `metadata export`
    wrote) and `metadata-source` (NAME:LOCATION, with `metadata-source-option.NAME`). For a stream also
    `max-rows-per-batch`, else also `as-of`: a time, or the last offset of each metadata partition as `0:12,1:40`.
    Executors read the files, or the topic, themselves.

    `metadata-partition` reads that one alone, and `topic`, `topic-id` and `partition` keep events about those.

    METADATA_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted, and
    without `finding` there are no rows of findings. Each metadata partition is a partition of the DataFrame, its rows
    in the order of the topic, its replicas merged; a large one is divided by offsets.

    Spark's filters are not pushed down, whatever `spark.sql.python.filterPushdown.enabled` says: Spark 4.3 would apply
    those of one query to every other query of the same DataFrame, and events would be missing. Options do the same.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(METADATA_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            options = SourceOptions(_NAME, self.options, (*METADATA_OPTIONS, AS_OF, *_SELECTION))
            columns = projection(_NAME, schema, METADATA_SCHEMA)
            return _Reader(options.metadata_place(), _wanted(options, columns), columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        try:
            from tieredctl_spark.metadata_stream import MetadataStreamReader
        except ModuleNotFoundError:  # PySpark's own pyspark.sql.streaming.datasource
            return _NoStream()
        with one_sentence():
            options = SourceOptions(_NAME, self.options, (*METADATA_OPTIONS, *_SELECTION, _MOST_ROWS))
            columns, most_rows = projection(_NAME, schema, METADATA_SCHEMA), options.number(_MOST_ROWS, least=1)
            return MetadataStreamReader(options.metadata_place(), _wanted(options, columns), columns, most_rows)


def _wanted(options: SourceOptions, columns: Projection) -> Wanted:
    return Wanted(FINDING in columns.names, options.number("metadata-partition"), options.selection())


class _Reader(DataSourceReader):
    def __init__(self, place: MetadataPlace, wanted: Wanted, columns: Projection) -> None:
        self._place = place
        self._wanted = wanted
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            return [InputPartition(share) for share in planned_shares(self._place, self._wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            for table in share_tables(self._place, partition.value, self._wanted):
                yield from self._columns.batches(table)


class _NoStream(DataSourceStreamReader):
    """Says that this release of PySpark has no such streams, whichever end it asks for first: PySpark 4.1 hides what
    `streamReader` itself raises."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._refuse()

    def latestOffset(self, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: N802 - as above; later releases give more
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise AssertionError(f"{partition} of a stream that never began")

    def _refuse(self) -> NoReturn:
        hint = "Read it in batches: spark.read instead of spark.readStream."
        message = f"A stream of {_NAME} needs PySpark {_STREAMS_SINCE} or later; this is {pyspark.__version__}. {hint}"
        with one_sentence():
            raise TieredctlError(ErrorCode.MISSING_EXTRA, message, hint=hint)
