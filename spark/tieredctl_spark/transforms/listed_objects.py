"""A store's objects: keys byte by byte, with what they name, and with what distinguishes versions of an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from tieredctl.formats.arrow_columns import flag_array, number_array
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import KeyFile, record_batches
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.arrow.judged_bucket import OBJECT_SCHEMA
from tieredctl_spark.packed import Packed, packed_parts
from tieredctl_spark.parted_keys import key_ranges

LISTED_SCHEMA = pa.schema(
    [*OBJECT_SCHEMA, ("topic", pa.string()), ("segmentId", pa.string()), ("isReserved", pa.bool_())]
)
"""Objects with what their keys name: null where the layout cannot say; and whether they are tieredctl's own.
`knownTopic` is null in all."""
_TOPIC_SCHEMA = pa.schema(
    {"topicId": pa.string(), "isReserved": pa.bool_(), "objects": pa.int64(), "bytes": pa.int64()}
)
_MOST_RANGES = 256
_MOST_TASKS = 64
"""What begins a task in Python takes longer than a page of a listing: several ranges are worth one."""
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class ListedCounts:
    """Of a listing: all objects, those of tieredctl's own with their bytes, and the topic ids that keys of others
    name."""

    objects: int
    reserved: int
    reserved_bytes: int
    topic_ids: frozenset[str]


def listed_objects(session: SparkSession, store: ObjectStore, layout: Layout) -> Packed:
    """A row by LISTED_SCHEMA for each object. The store is listed on executors when this is computed, each time
    again."""
    ranges = key_ranges(store, _MOST_RANGES)

    def listed(number: int) -> Iterator[pa.Table]:
        return _explained(record_batches(ranges[number].objects(store), _AT_ONCE), layout)

    return packed_parts(session, len(ranges), listed, LISTED_SCHEMA, _MOST_TASKS)


def unreserved(objects: Packed) -> Packed:
    """All but tieredctl's own."""
    return objects.through(_unreserved, objects.schema)


def listed_counts(objects: Packed) -> ListedCounts:
    """Of all that are listed."""
    groups = objects.through(_by_topic, _TOPIC_SCHEMA).rows().groupBy("topicId", "isReserved")
    rows = groups.agg(fn.sum("objects").alias("objects"), fn.sum("bytes").alias("bytes")).collect()
    own = [row for row in rows if row["isReserved"]]
    return ListedCounts(
        sum(row["objects"] for row in rows),
        sum(row["objects"] for row in own),
        sum(row["bytes"] for row in own),
        frozenset(row["topicId"] for row in rows if not row["isReserved"] and row["topicId"] is not None),
    )


def _unreserved(objects: pa.Table) -> pa.Table:
    return objects.filter(pc.invert(objects.column("isReserved")))


def _by_topic(objects: pa.Table) -> pa.Table:
    groups = objects.group_by(["topicId", "isReserved"]).aggregate([([], "count_all"), ("size", "sum")])
    return pa.table(groups.select(["topicId", "isReserved", "count_all", "size_sum"]).columns, schema=_TOPIC_SCHEMA)


def keys_of_file(session: SparkSession, file: Path, layout: Layout) -> Packed:
    """A row by LISTED_SCHEMA for each key of a file that executors have, too; one of them reads it. Raises
    TieredctlError as `KeyFile` does."""
    keys = KeyFile(file)

    def listed(_: int) -> Iterator[pa.Table]:
        return _explained(keys.batches(), layout)

    return packed_parts(session, 1, listed, LISTED_SCHEMA, 1)


def _explained(found: Iterable[pa.RecordBatch], layout: Layout) -> Iterator[pa.Table]:
    explainer = KeyExplainer(layout)
    return (pa.Table.from_batches([explained_objects(batch, explainer)]) for batch in found)


def explained_objects(found: pa.RecordBatch, explainer: KeyExplainer) -> pa.RecordBatch:
    """Objects by LISTING_SCHEMA with what their keys name, by LISTED_SCHEMA."""
    said = explainer.explain(found.column("key"))
    stems = number_array(said.stems)
    explained = said.explained
    names = flag_array(np.array([stem is not None for stem in explained], np.bool_)[said.stems])
    ids = said.named_segments.text_array().take(number_array(said.names))
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
