"""The transforms of `orphans scan --engine spark`: `python -m benchmarks.spark_orphans LOG-DIR INVENTORY ORPHANS`.

Metadata is read and replayed, and every object of an inventory is judged, as by the job. No store is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from tieredctl_spark.arrow.judged_bucket import AskedTopics, JudgedBy
from tieredctl_spark.listing_frames import kept_by_executors
from tieredctl_spark.metadata_facts import metadata_facts
from tieredctl_spark.packed import Packed, packed_rows
from tieredctl_spark.transforms.buckets import bucket_count
from tieredctl_spark.transforms.listed_objects import LISTED_SCHEMA, explained_objects, listed_counts
from tieredctl_spark.transforms.metadata_rows import events_in, metadata_rows
from tieredctl_spark.transforms.object_verdicts import object_verdicts, segment_states

from benchmarks.large_store import TAKEN_MS
from benchmarks.spark_sessions import small_session
from tieredctl.layouts.registry import layout_named
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ports.layout import Layout
from tieredctl.wiring.places import MetadataPlace

_DAY_MS = 86_400_000


def main() -> None:
    """Counts the orphans."""
    log_dir, inventory, orphans = sys.argv[1:]
    with small_session() as session:
        found = found_orphans(session, MetadataPlace((Path(log_dir),)), inventory, layout_named("local"))
    assert found == int(orphans), found


def found_orphans(session: SparkSession, place: MetadataPlace, inventory: str, layout: Layout) -> int:
    """How many objects of an inventory in Parquet are orphans by the metadata of a place."""
    objects = _listed(session, inventory, layout).kept(kept_by_executors, "listing")
    with place.open() as stream:
        rows = metadata_rows(session, place).kept(kept_by_executors, "metadata")
        facts = metadata_facts(rows, stream, kept_by_executors)
    segments = segment_states(events_in(rows), bucket_count(2 * facts.events)).kept(kept_by_executors, "segments")
    by = JudgedBy(
        layout=layout,
        now_ms=TAKEN_MS,
        min_age_ms=_DAY_MS,
        last_timestamp_ms=facts.last_timestamp_ms,
        certainty=facts.certainty,
        live_topics=AskedTopics(dict.fromkeys(facts.first_events_ms, True)),
        named_topics=frozenset(facts.first_events_ms),
        begins=facts.begins,
        end_offsets=facts.end_offsets,
        listed=frozenset({ObjectStatus.ORPHAN}),
    )
    listed = listed_counts(objects).objects
    verdicts = object_verdicts(segments, objects, by, bucket_count(listed + facts.events))
    orphaned = verdicts.where(fn.col("status") == ObjectStatus.ORPHAN.value)
    return int(orphaned.agg(fn.sum("objects")).collect()[0][0] or 0)


def _listed(session: SparkSession, inventory: str, layout: Layout) -> Packed:
    """An S3 Inventory in Parquet by LISTED_SCHEMA."""
    rows = session.read.parquet(inventory).select(
        fn.col("key").cast("binary"),
        "size",
        fn.unix_millis("last_modified_date").alias("lastModifiedMs"),
        fn.col("e_tag").alias("version"),
        fn.col("storage_class").alias("storageClass"),
    )

    explainer = KeyExplainer(layout)

    def explained(listing: pa.Table) -> pa.Table:
        return pa.Table.from_batches([explained_objects(one, explainer) for one in listing.to_batches()], LISTED_SCHEMA)

    return packed_rows(rows, LISTED_SCHEMA, explained)


if __name__ == "__main__":
    main()
