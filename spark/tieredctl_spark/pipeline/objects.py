"""What the store holds becomes tables: sums by topic, never a row for each object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import record_batches
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.places import Remote
from tieredctl_spark.arrow.object_table import object_table
from tieredctl_spark.kept_frames import task_rows
from tieredctl_spark.parted_keys import key_ranges
from tieredctl_spark.pipeline.retention import DAY_MS
from tieredctl_spark.tables.kinds import OBJECTS_DAILY, ORPHANS_DAILY

_NAMES = ["topic", "topicId", "part", "storageClass"]
_AGES = (1, 7, 30, 90)
_MOST_RANGES = 256
_BATCH_OBJECTS = 1 << 16


class Stored(NamedTuple):
    """How much a listing has."""

    objects: int
    bytes: int


def stored_objects(session: SparkSession, remote: Remote[ObjectStore], scanned: Stored) -> pa.Table:
    """By `OBJECTS_DAILY.columns`, what the store holds besides tieredctl's own. Executors list it.

    Where that is not what a scan listed before, it is listed again, and of two listings that both differ the one with
    more counts: a listing may lack what is there, and a store may have changed since the scan."""
    found = _listed(session, remote.store, KeyExplainer(remote.layout))
    if _stored(found) == scanned:
        return found
    again = _listed(session, remote.store.reconnected(), KeyExplainer(remote.layout))
    return max(found, again, key=lambda one: (_stored(one) == scanned, _stored(one)))


def _stored(sums: pa.Table) -> Stored:
    return Stored(*(pc.sum(sums.column(name)).as_py() or 0 for name in Stored._fields))


def _listed(session: SparkSession, store: ObjectStore, explainer: KeyExplainer) -> pa.Table:
    ranges = key_ranges(store, _MOST_RANGES)

    def listed(number: int) -> Iterator[pa.Table]:
        for objects in record_batches(ranges[number].unreserved_objects(store), _BATCH_OBJECTS):
            yield _sums(object_table(objects, explainer))

    totals = task_rows(session, len(ranges), listed, OBJECTS_DAILY.columns).groupBy(*_NAMES)
    sums = (fn.sum(name).alias(name) for name in ("objects", "bytes"))
    return totals.agg(*sums).orderBy(*_NAMES).toArrow().cast(OBJECTS_DAILY.columns)


def _sums(objects: pa.Table) -> pa.Table:
    groups = objects.group_by(_NAMES).aggregate([([], "count_all"), ("size", "sum")])
    return groups.select([*_NAMES, "count_all", "size_sum"]).rename_columns(OBJECTS_DAILY.columns.names)


def orphaned_objects(verdicts: DataFrame, now_ms: int) -> pa.Table:
    """By `ORPHANS_DAILY.columns`, what of it is orphaned by a scan's verdicts."""
    names = ["topic", "topicId", "cause", "storageClass", "atLeastDays"]
    days = fn.floor((fn.lit(now_ms) - fn.col("newestMs")) / DAY_MS)
    at_least = fn.when(days.isNotNull(), 0)
    for age in _AGES:
        at_least = fn.when(days >= age, age).otherwise(at_least)
    orphans = verdicts.where(fn.col("status") == ObjectStatus.ORPHAN.value)
    named = orphans.withColumn("atLeastDays", at_least.cast("int"))
    # What a store does not tell is null here, as everywhere in the tables.
    named = named.withColumn("storageClass", fn.nullif("storageClass", fn.lit("")))
    sums = (fn.sum(name).alias(name) for name in ("objects", "bytes"))
    return named.groupBy(*names).agg(*sums).orderBy(*names).toArrow().cast(ORPHANS_DAILY.columns)
