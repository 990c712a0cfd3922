"""A store's objects: keys byte by byte, with what they name, and with what distinguishes versions of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tieredctl.formats.arrow_columns import flag_array, number_array
from tieredctl.layouts.protocol import Layout
from tieredctl.ops.orphans.judged_bucket import OBJECT_SCHEMA
from tieredctl.ops.orphans.parted_keys import KeyRange, key_ranges
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import KeyFile, record_batches
from tieredctl.storage.protocol import ObjectStore
from tieredctl_spark.schemas import spark_schema

LISTED_SCHEMA = pa.schema(
    [*OBJECT_SCHEMA, ("topic", pa.string()), ("segmentId", pa.string()), ("isReserved", pa.bool_())]
)
"""Objects with what their keys name: null where the layout cannot say; and whether they are tieredctl's own.
`knownTopic` is null in all."""
_MOST_RANGES = 256
_MOST_TASKS = 64
"""What begins a task in Python takes longer than a page of a listing: several ranges are worth one."""
_AT_ONCE = 1 << 16


def listed_objects(session: SparkSession, store: ObjectStore, layout: Layout) -> DataFrame:
    """A row by LISTED_SCHEMA for each object. The store is listed on executors when this is computed, each time
    again."""
    ranges = key_ranges(store, _MOST_RANGES)
    rows = session.range(0, len(ranges), 1, min(len(ranges), _MOST_TASKS))

    def listed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield from listed_range(store, layout, ranges[number])

    return rows.mapInArrow(listed, spark_schema(LISTED_SCHEMA))


def listed_range(store: ObjectStore, layout: Layout, keys: KeyRange) -> Iterator[pa.RecordBatch]:
    """The objects of a range by LISTED_SCHEMA."""
    explainer = KeyExplainer(layout)
    for batch in record_batches(keys.objects(store), _AT_ONCE):
        yield explained_objects(batch, explainer)


def keys_of_file(session: SparkSession, file: Path, layout: Layout) -> DataFrame:
    """A row by LISTED_SCHEMA for each key of a file that executors have, too; one of them reads it. Raises
    TieredctlError as `KeyFile` does."""
    keys = KeyFile(file)

    def listed(once: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        explainer = KeyExplainer(layout)
        for _ in once:
            for batch in keys.batches():
                yield explained_objects(batch, explainer)

    return session.range(0, 1, 1, 1).mapInArrow(listed, spark_schema(LISTED_SCHEMA))


def explained_objects(found: pa.RecordBatch, explainer: KeyExplainer) -> pa.RecordBatch:
    """Objects by LISTING_SCHEMA with what their keys name, by LISTED_SCHEMA."""
    said = explainer.explain(found.column("key"))
    stems = number_array(said.stems)
    explained = said.explained
    names = flag_array(np.array([stem is not None for stem in explained], np.bool_)[said.stems])
    ids = said.named_segments.texts().take(number_array(said.names))
    columns = {
        **{name: found.column(name) for name in ("key", "size", "lastModifiedMs", "version")},
        "storageClass": found.column("storageClass").cast(pa.string()),
        "knownTopic": pa.nulls(len(found), pa.string()),
        "topic": pa.array([stem and stem.topic for stem in explained], pa.string()).take(stems),
        "topicId": pa.array([stem and stem.topic_id for stem in explained], pa.string()).take(stems),
        "partition": pa.array([stem and stem.partition for stem in explained], pa.int32()).take(stems),
        "segmentId": pc.if_else(names, ids, pa.scalar(None, pa.string())),
        "isReserved": are_reserved(found.column("key")),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in LISTED_SCHEMA.names], schema=LISTED_SCHEMA)
