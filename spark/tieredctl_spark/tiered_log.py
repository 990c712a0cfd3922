"""The data source `tiered_log`: a topic's records straight from remote storage, as a DataFrame, as in
`spark.read.format("tiered_log").option("log-dir", "/data/kafka").option("store", "file:/remote")
.option("topic", "orders").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.arrow_records import DAMAGE, RECORD_SCHEMA, damage_row
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.request import Isolation, OnDamage, RecordRequest, record_place
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records
from tieredctl_spark.arrow.instants import INSTANT, instants
from tieredctl_spark.record_shares import RecordShare, record_shares
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import AS_OF, METADATA_OPTIONS, PARTITION_OPTIONS, STORE_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME, _TIMESTAMP, _OFFSET = "tiered_log", "timestamp", "offset"
_FROM, _TO, _ISOLATION, _DAMAGE = "from", "to", "isolation", "damage"
_OPTIONS = (*METADATA_OPTIONS, AS_OF, *STORE_OPTIONS, *PARTITION_OPTIONS, _FROM, _TO, _ISOLATION, _DAMAGE)
_TYPES = {_TIMESTAMP: INSTANT, "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))}
RECORD_TABLE_SCHEMA = pa.schema(
    [(field.name, _TYPES.get(field.name, field.type)) for field in [*RECORD_SCHEMA, DAMAGE]]
)
"""A row for each record, as a consumer gets it: RECORD_SCHEMA, its `timestamp` null where the record has none. `damage`
is null but in a row that stands for offsets that cannot be read. Spark takes every column that a schema names for one
that may be null: so all may."""


class TieredLog(DataSource):
    """Options: those of `segment_batches`, without `segment-id`, of which `topic` must be given; `as-of`; and as on the
    command line of `tieredctl remote records`, `from`, `to`, `isolation`, and `damage`, which is `fail` or `row`.

    RECORD_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted, and
    no others are made. Executors read records straight from the store; each partition of the DataFrame has those of
    about 256 MiB of one partition's log, in order. With `damage` `fail`, a read ends with the first record that cannot
    be read, or if the metadata is incomplete or damaged; with `row`, a row of its own says why. Filters are not pushed
    down, as in `remote_log_metadata`.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(RECORD_TABLE_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            options = SourceOptions(_NAME, self.options, _OPTIONS)
            columns = projection(_NAME, schema, RECORD_TABLE_SCHEMA)
            if options.text("topic") is None:
                raise TieredctlError(ErrorCode.USAGE, f"{_NAME} reads one topic: the option topic does not name it.")
            return _Reader(
                options.metadata_place(),
                options.store_place(),
                options.selection(),
                _request(options, columns),
                columns,
            )


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
    )


class _Reader(DataSourceReader):
    def __init__(
        self,
        metadata: MetadataPlace,
        store: StorePlace,
        selection: Selection,
        request: RecordRequest,
        columns: Projection,
    ) -> None:
        self._metadata = metadata
        self._store = store
        self._remote = store.open()
        self._selection = selection
        self._request = request
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence(), topic_records(self._metadata, self._store, self._selection) as topic:
            return [
                InputPartition(share)
                for partition in topic.partitions
                for share in record_shares(partition, *self._remote, self._request, topic.findings)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        share: RecordShare = partition.value
        with one_sentence():
            for batch in self._batches(share):
                yield from self._columns.batches(_table(batch))

    def _batches(self, share: RecordShare) -> Iterator[pa.RecordBatch]:
        records = PartitionRecords(share.remote, *self._remote, share.request)
        for finding in share.findings:
            reason = f"{finding.code}: {finding.message}"
            start = share.request.start
            assert isinstance(start, int)
            yield damage_row(records.schema, share.remote.partition, None, start, reason)
        yield from records


def _table(batch: pa.RecordBatch) -> pa.Table:
    """With times as tables of data sources have them, and the column of damage."""
    table = pa.Table.from_batches([batch])
    at = table.schema.get_field_index(_TIMESTAMP)
    if at >= 0:
        table = table.set_column(at, _TIMESTAMP, instants(table.column(at)))
    if DAMAGE.name in table.column_names:
        return table
    return table.append_column(DAMAGE, pa.nulls(len(table), DAMAGE.type))
