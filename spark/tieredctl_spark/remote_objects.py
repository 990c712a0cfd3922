"""The data source `remote_objects`: what a store holds, as a DataFrame, as in
`spark.read.format("remote_objects").option("store", "s3://tiered/cluster-a").option("layout", "aiven").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import record_batches
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.arrow.object_table import OBJECT_TABLE_SCHEMA, object_table
from tieredctl_spark.parted_keys import KeyRange, key_ranges
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import STORE_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME = "remote_objects"
_BATCH_OBJECTS = 10_000
_MOST_PARTITIONS = 256
_PREFIX = "prefix"


class RemoteObjects(DataSource):
    """Options, as on the command line: `store`, its URL, with `store-option.NAME`; `layout`, by default the one that
    explains the store's first keys, with `layout-option.NAME`. `prefix` lists only keys that begin with it.

    OBJECT_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted.
    tieredctl's own objects are left out. Executors list the store themselves; each partition of the DataFrame is a
    range of its keys, found by probing. Filters are not pushed down, as in `remote_log_metadata`.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(OBJECT_TABLE_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            options = SourceOptions(_NAME, self.options, (*STORE_OPTIONS, _PREFIX))
            columns = projection(_NAME, schema, OBJECT_TABLE_SCHEMA)
            return _Reader(*options.store_place().open(), options.text(_PREFIX) or "", columns)


class _Reader(DataSourceReader):
    def __init__(self, store: ObjectStore, layout: Layout, prefix: str, columns: Projection) -> None:
        self._store = store
        self._layout = layout
        self._prefix = prefix
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence():
            return [InputPartition(keys) for keys in key_ranges(self._store, _MOST_PARTITIONS, self._prefix)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        keys: KeyRange = partition.value
        explainer = KeyExplainer(self._layout)
        with one_sentence():
            for listed in record_batches(keys.unreserved_objects(self._store), _BATCH_OBJECTS):
                yield from self._columns.batches(object_table(listed, explainer))
