"""What is stored, by topic, partition, day of upload, broker and storage class, with its price:

    spark-submit --master … usage.py --log-dir DIR --store URL --layout local --output URL

Executors list the store, then read the metadata for who copied each segment. The output folder, in any file system that
Spark reaches, gets `usage` as Parquet, and at last `summary.json`. `listing` and `metadata` are what the job itself
works with. Exit code 0; 5 if the metadata could not be read in full, so that some brokers are not known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.config.file import storage_price
from tieredctl.errors import ExitCode
from tieredctl.formats.inventory_manifest import unusable
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.cluster.live_topics import live_topics
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.overlap import demand_any_object
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.run_metrics import run_metrics
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.metadata import METADATA_AND_STORE, demand_known_by_all
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.places import Remote
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.finding_rows import finding_table
from tieredctl_spark.job_arguments import job_parser, places_of, run_job, selection_of
from tieredctl_spark.kept_frames import Keep
from tieredctl_spark.listing_frames import listing_frame
from tieredctl_spark.metadata_pass import copies_in, read_events, read_segments
from tieredctl_spark.output_folder import OutputFolder, json_line
from tieredctl_spark.session import spark_session
from tieredctl_spark.transforms.sound_objects import ReadableSegments
from tieredctl_spark.transforms.usage import named_objects, storage_usage

_SUMMARY = "summary.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the job, and returns its exit code."""
    parser = job_parser("usage.py", "What is stored, and what it costs.")
    add = parser.add_argument
    add("--inventory", metavar="PATH-OR-URL", help="the manifest of the bucket's inventory, instead of listing it")
    add("--as-of", type=AsOf.given, metavar="OFFSET-FILE|TIME", help="the metadata at a point in the past")
    return run_job(parser, _run, arguments)


def _run(options: argparse.Namespace) -> ExitCode:
    metadata, store, topics = places_of(options, options.as_of)
    remote, price, now_ms = store.open(), storage_price(options.store), time.time_ns() // 1_000_000
    selection = selection_of(options)
    metadata.demand_usable()
    with spark_session({}) as session, spark_failures():
        output = OutputFolder(session, options.output)
        output.write_text(_SUMMARY, json_line({"kind": "Usage", "summary": {"success": False}}))
        listing = listing_frame(session, ListingPlace(inventory=options.inventory), store, remote).kept(output.keep)
        with metadata.open() as stream:
            events, facts = read_events(session, metadata, stream, output.keep)
            where = {"store": remote.store.url, **listing.described, "layout": remote.layout.name}
            source = {**stream.source.describe(), **where}
        objects = named_objects(listing, remote.layout)
        usage = output.keep(_selected(storage_usage(objects, copies_in(events), price), selection), "usage")
        totals = usage.agg(fn.sum("objects"), fn.sum("bytes"), fn.sum("monthlyCost")).collect()[0]
        if not totals[0]:
            if objects.isEmpty():
                if options.inventory:
                    raise unusable(f"The inventory has no object of {remote.store.url}.")
                _demand_any_object(session, ScanPlaces(metadata, store, topics), remote, output.keep, now_ms)
            demand_known_by_all(metadata, selection, METADATA_AND_STORE)
        classes = [row[0] for row in usage.select("storageClass").distinct().collect()]
        output.write_table("findings", finding_table(facts.findings))
        code = exit_code_of(facts.findings)
        document: Document = {
            "kind": "Usage",
            "apiVersion": "tieredctl/v1",
            "source": source | {"engine": "spark"},
            "summary": {
                "success": True,
                "listed": iso_8601(now_ms),
                "objects": totals[0] or 0,
                "bytes": totals[1] or 0,
                "monthlyCost": totals[2],
                "currency": price.currency if price else None,
                "classesWithoutPrice": price.without_price([one or "" for one in classes]) if price else [],
                "complete": facts.certainty.is_whole,
                **selection.document(),
                "exitCode": int(code),
            },
        }
        output.write_text(_SUMMARY, json_line(document))
    run_metrics.get().note(document["summary"], facts.findings)
    sys.stdout.write(json_line(document))
    return code


def _demand_any_object(
    session: SparkSession, places: ScanPlaces, remote: Remote[ObjectStore], keep: Keep, now_ms: int
) -> None:
    """Raises TieredctlError `no-overlap` for an empty store of which the metadata promises segments, as a scan does."""
    with places.metadata.open() as stream, places.asked_topics().open(now_ms) as topics:
        segments, facts = read_segments(session, places.metadata, stream, keep)
        live = live_topics(topics, facts.first_events_ms, stream.source, facts.last_timestamp_ms)
        promised = ReadableSegments.of(segments, facts.events, with_places=False).topics
        demand_any_object(remote.store, remote.layout, promised, live, now_ms)


def _selected(usage: DataFrame, selection: Selection) -> DataFrame:
    wanted: dict[str, tuple[str, ...] | tuple[int, ...]] = {
        "topic": selection.topics,
        "topicId": selection.topic_ids,
        "partition": selection.numbers,
    }
    for name, values in wanted.items():
        if values:
            usage = usage.where(fn.col(name).isin(*values))
    return usage


if __name__ == "__main__":
    sys.exit(main())
