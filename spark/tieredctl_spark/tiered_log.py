"""The data source `tiered_log`: a topic's records straight from remote storage, as a DataFrame, as in
`spark.read.format("tiered_log").option("log-dir", "/data/kafka").option("store", "file:/remote")
.option("topic", "orders").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.records.arrow_records import DAMAGE
from tieredctl.records.request import Isolation, OnDamage, RecordRequest, most_unfolded, record_place
from tieredctl.wiring.records import topic_records
from tieredctl_spark.missing_streams import NoStream
from tieredctl_spark.record_rows import RECORD_TABLE_SCHEMA, LogQuery
from tieredctl_spark.record_shares import record_shares
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, PARTITION_OPTIONS, STORE_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME, _OFFSET = "tiered_log", "offset"
_FROM, _TO, _ISOLATION, _DAMAGE = "from", "to", "isolation", "damage"
_MOST_UNFOLDED = "max-batch-bytes"
_MOST_OFFSETS, _FAILS_ON_LOSS = "max-offsets-per-trigger", "fail-on-data-loss"
_PLACES = (*METADATA_OPTIONS, *STORE_OPTIONS, *PARTITION_OPTIONS, _FROM, _ISOLATION, _DAMAGE, _MOST_UNFOLDED)
_BATCH_OPTIONS = (*_PLACES, AS_OF, _TO)
_STREAM_OPTIONS = (*_PLACES, _MOST_OFFSETS, _FAILS_ON_LOSS)


class TieredLog(DataSource):
    """Options: those of `segment_batches`, without `segment-id`, of which `topic` must be given; `as-of`; and as on the
    command line of `tieredctl remote records`, `from`, `to`, `isolation`, `max-batch-bytes`, and `damage`, which is
    `fail` or `row`.

    RECORD_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted, and
    no others are made. Executors read records straight from the store; each partition of the DataFrame has those of
    about 256 MiB of one partition's log, in order. With `damage` `fail`, a read ends with the first record that cannot
    be read, or if the metadata is incomplete or damaged; with `row`, a row of its own says why. What retention deleted
    since the read was planned is not missing: it is passed over at a partition's beginning, and a gap further on.
    Filters are not pushed down, as in `remote_log_metadata`.

    A stream has neither `as-of` nor `to`, but as Spark's source for Kafka `max-offsets-per-trigger` and
    `fail-on-data-loss`; see RecordStreamReader.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(RECORD_TABLE_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            return _Reader(_query(SourceOptions(_NAME, self.options, _BATCH_OPTIONS), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        try:
            from tieredctl_spark.record_stream import RecordStreamReader
        except ModuleNotFoundError:  # PySpark's own pyspark.sql.streaming.datasource
            return NoStream(_NAME)
        with one_sentence():
            options = SourceOptions(_NAME, self.options, _STREAM_OPTIONS)
            query, most = _query(options, schema), options.number(_MOST_OFFSETS, least=1)
            return RecordStreamReader(query, most, fails_on_loss=options.flag(_FAILS_ON_LOSS, otherwise=True))


def _query(options: SourceOptions, schema: StructType) -> LogQuery:
    columns = projection(_NAME, schema, RECORD_TABLE_SCHEMA)
    if options.text("topic") is None:
        raise TieredctlError(ErrorCode.USAGE, f"{_NAME} reads one topic: the option topic does not name it.")
    places = options.metadata_place(), options.store_place()
    return LogQuery(*places, options.selection(), _request(options, columns), columns)


def _request(options: SourceOptions, columns: Projection) -> RecordRequest:
    isolation, on_damage = options.text(_ISOLATION), options.text(_DAMAGE)
    if isolation not in (None, *Isolation):
        raise TieredctlError(ErrorCode.USAGE, f"isolation {isolation!r} is none of {', '.join(Isolation)}.")
    if on_damage not in (None, OnDamage.FAIL, OnDamage.ROW):
        raise TieredctlError(ErrorCode.USAGE, f"damage {on_damage!r} is neither {OnDamage.FAIL} nor {OnDamage.ROW}.")
    return RecordRequest(
        record_place(_FROM, options.text(_FROM) or "earliest"),
        record_place(_TO, options.text(_TO) or "latest"),
        Isolation(isolation or Isolation.READ_UNCOMMITTED),
        OnDamage(on_damage or OnDamage.FAIL),
        tuple(name for name in columns.names if name != DAMAGE.name) or (_OFFSET,),
        most_unfolded=most_unfolded(_MOST_UNFOLDED, options.text(_MOST_UNFOLDED)),
    )


class _Reader(DataSourceReader):
    def __init__(self, query: LogQuery) -> None:
        self._query = query
        self._rows = query.rows()

    def partitions(self) -> Sequence[InputPartition]:
        query = self._query
        with one_sentence(), topic_records(query.metadata, query.store, query.selection) as topic:
            return [
                InputPartition(share)
                for partition in topic.partitions
                for share in record_shares(partition, *self._rows.remote, query.request, topic.findings)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from self._rows.batches(partition.value)
