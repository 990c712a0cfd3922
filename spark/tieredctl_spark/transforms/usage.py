"""How much is stored, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.prices import StoragePrice
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ports.layout import Layout
from tieredctl_spark.arrow.object_table import OBJECT_TABLE_SCHEMA, object_table
from tieredctl_spark.listing_frames import Batches, ListingFrame

_NAMED_SCHEMA = pa.schema(
    [
        *(OBJECT_TABLE_SCHEMA.field(name) for name in ("topic", "topicId", "partition", "segmentId", "storageClass")),
        ("size", pa.int64()),
        ("lastModifiedMs", pa.int64()),
    ]
)
_GIB = 1 << 30
_DAY_MS = 86_400_000
_GROUP = ["topic", "topicId", "partition", "day", "brokerId", "storageClass"]


def named_objects(listing: ListingFrame, layout: Layout) -> DataFrame:
    """The objects of a listing without tieredctl's own, with what their keys name: null where the layout cannot say."""

    def named(batches: Batches) -> Iterator[pa.Table]:
        explainer = KeyExplainer(layout)
        for batch in batches:
            others = batch.filter(pc.invert(are_reserved(batch.column("key"))))
            told = object_table(others, explainer).select(_NAMED_SCHEMA.names[:-1])
            yield told.append_column("lastModifiedMs", others.column("lastModifiedMs")).cast(_NAMED_SCHEMA)

    return listing.through(named, _NAMED_SCHEMA)


def storage_usage(objects: DataFrame, copies: DataFrame, price: StoragePrice | None) -> DataFrame:
    """Objects and bytes by topic, partition, day (UTC) of the last modification, the broker that copied the segment,
    and storage class, with the price of a month. `objects` are as `named_objects` gives them, `copies` as
    `copies_in` does.

    Null is what is not known: the topic of an object whose key no layout explains, the broker of one whose segment
    metadata does not name, or names for several partitions, and the price if there is none.
    """
    # Of several events about one copy the last: it is who copied what is there.
    copied = copies.groupBy("segmentId").agg(
        fn.max_by("brokerId", "metadataOffset").alias("brokerId"),
        fn.min("topicId").alias("ownerId"),
        (fn.min(_owner()) == fn.max(_owner())).alias("isOfOne"),
        fn.min("partition").alias("ownerPartition"),
    )
    owned = copied.where("isOfOne").drop("isOfOne")
    agrees = (fn.col("ownerId") == fn.col("topicId")) & (fn.col("ownerPartition") == fn.col("partition"))
    # By arithmetic: what Spark calls a day depends on the session's time zone.
    days = fn.floor(fn.col("lastModifiedMs") / _DAY_MS).cast("int")
    day = fn.date_add(fn.lit(date(1970, 1, 1)), days)
    placed = objects.join(owned, "segmentId", "left").select(
        "topic",
        "topicId",
        "partition",
        day.alias("day"),
        fn.when(agrees, fn.col("brokerId")).alias("brokerId"),
        fn.coalesce("storageClass", fn.lit("")).alias("storageClass"),
        "size",
    )
    usage = placed.groupBy(*_GROUP).agg(fn.count("*").alias("objects"), fn.sum("size").alias("bytes"))
    return usage.withColumn("monthlyCost", _cost(price))


def _owner() -> Column:
    return fn.struct("topicId", "partition")


def _cost(price: StoragePrice | None) -> Column:
    if price is None:
        return fn.lit(None).cast("double")
    of_class = fn.lit(price.per_gib_month)
    for name, per_gib_month in price.class_prices.items():
        of_class = fn.when(fn.col("storageClass") == name, per_gib_month).otherwise(of_class)
    return fn.col("bytes") * of_class / _GIB
