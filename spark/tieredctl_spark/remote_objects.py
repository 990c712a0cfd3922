"""The data source `remote_objects`: what a store holds, as a DataFrame, as in
`spark.read.format("remote_objects").option("store", "file:/remote").option("layout", "local").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.protocol import AUTO, Layout
from tieredctl.ops.remote.inventory import ListedObject, object_document
from tieredctl.storage.protocol import ObjectStore, StoredObject
from tieredctl.wiring.places import StorePlace
from tieredctl_spark.key_ranges import key_ranges
from tieredctl_spark.schemas import as_spark_reads, spark_schema

OBJECT_SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "size": pa.int64(),
        "lastModified": pa.timestamp("us", "UTC"),
        "segmentId": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "part": pa.string(),
        "storageClass": pa.string(),
    }
)
"""A row for each object, as in `remote ls`; null where the layout cannot say, and for a time that is not a date."""

_BATCH_SCHEMA = as_spark_reads(OBJECT_SCHEMA)
_BATCH_OBJECTS = 10_000
_MOST_PARTITIONS = 256
_STORE_OPTION, _LAYOUT_OPTION = "storeoption.", "layoutoption."


class RemoteObjects(DataSource):
    """Options: `store`, its URL; `layout`, by default the one that explains the store's first keys; and for each of
    their own options `storeOption.NAME` and `layoutOption.NAME` (Spark makes NAME lower case).

    Executors list the store themselves; each partition of the DataFrame is a range of its keys.
    """

    @classmethod
    def name(cls) -> str:
        return "remote_objects"

    def schema(self) -> StructType:
        return spark_schema(OBJECT_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark passes the schema that it got from here
        url = self.options.get("store")
        if url is None:
            raise TieredctlError(ErrorCode.NO_STORE, "The option store does not name a store.")
        options, layout_options = (_named(self.options, prefix) for prefix in (_STORE_OPTION, _LAYOUT_OPTION))
        place = StorePlace(url, options, self.options.get("layout", AUTO), layout_options)
        return _Reader(*place.open())


def _named(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


class _Reader(DataSourceReader):
    def __init__(self, store: ObjectStore, layout: Layout) -> None:
        self._store = store
        self._layout = layout

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(keys) for keys in key_ranges(self._store, _MOST_PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        objects: Iterator[StoredObject] = partition.value.objects(self._store)
        while listed := list(islice(objects, _BATCH_OBJECTS)):
            rows = [_row(ListedObject(stored, self._layout.explain(stored.key))) for stored in listed]
            yield pa.RecordBatch.from_pylist(rows, _BATCH_SCHEMA)


def _row(listed: ListedObject) -> dict[str, Any]:
    row = object_document(listed) | {"storageClass": listed.stored.storage_class}
    row["key"] = _text(listed.stored.key)
    if row["lastModified"] is not None:
        row["lastModified"] = listed.stored.last_modified_ms * 1_000
    return row


def _text(key: str) -> str:
    r"""A key; bytes of it that are not UTF-8 as `\udcff`, since Arrow cannot represent them."""
    return key.encode("utf-8", "backslashreplace").decode("utf-8")
