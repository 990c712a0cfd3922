"""Five questions about a cluster's tiered storage, answered by Spark from its metadata and its store.

    spark-submit examples/tier_questions.py --log-dir /var/lib/kafka --store s3://tiered/cluster-a

PySpark finds the data sources by itself where tieredctl-spark is installed. With `SPARK_REMOTE=sc://HOST:15002` in the
environment, `python examples/tier_questions.py …` asks a Spark Connect server.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

DAY_MS = 86_400_000
COPIED, COPYING = "COPY_SEGMENT_FINISHED", "COPY_SEGMENT_STARTED"


def segments_of(events: DataFrame) -> DataFrame:
    """A row for each segment, with its last state. All events of a segment are in one metadata partition."""
    is_start = f.col("type") == "RemoteLogSegmentMetadata"
    said = ["topic", "partition", "startOffset", "endOffset", "maxTimestampMs", "segmentSizeInBytes", "brokerId"]
    return (
        events.where("segmentId is not null")
        .groupBy("segmentId")
        .agg(
            *(f.first(f.when(is_start, f.col(name)), ignorenulls=True).alias(name) for name in said),
            f.max_by("state", "metadataOffset").alias("state"),
            f.max("eventTimestampMs").alias("lastEventMs"),
            f.min(f.when(f.col("state") == COPIED, f.col("eventTimestampMs"))).alias("copiedMs"),
        )
    )


def biggest_topics(segments: DataFrame) -> DataFrame:
    """Which topics have most in remote storage?"""
    sums = [f.count("*").alias("segments"), f.sum("segmentSizeInBytes").alias("bytes")]
    return segments.where(f.col("state") == COPIED).groupBy("topic").agg(*sums).orderBy(f.desc("bytes"), "topic")


def upload_delays(segments: DataFrame) -> DataFrame:
    """How long after its last record was a segment's copy finished, in ms?"""
    delay = f.col("copiedMs") - f.col("maxTimestampMs")
    quantiles = f.percentile_approx(delay, f.array(f.lit(0.5), f.lit(0.95), f.lit(0.99)), 10_000)
    delays = (
        segments.where("copiedMs is not null").groupBy("topic").agg(quantiles.alias("p"), f.max(delay).alias("max"))
    )
    named = (f.col("p")[number].alias(name) for number, name in enumerate(("p50", "p95", "p99")))
    return delays.select("topic", *named, "max").orderBy("topic")


def stuck_copies(segments: DataFrame, now_ms: int, older_than_ms: int) -> DataFrame:
    """Which brokers began copies, and neither finished nor deleted them?"""
    stuck = segments.where((f.col("state") == COPYING) & (f.col("lastEventMs") < now_ms - older_than_ms))
    sums = [f.count("*").alias("segments"), f.min("lastEventMs").alias("oldestMs")]
    return stuck.groupBy("brokerId").agg(*sums).orderBy(f.desc("segments"), "brokerId")


def owner_of(key: str, objects: DataFrame, segments: DataFrame) -> DataFrame:
    """Which segment does an object belong to, and what became of it? No state: the metadata does not know it."""
    known = segments.select("segmentId", "startOffset", "endOffset", "state")
    found = objects.where(f.col("key") == key).select("key", "part", "topic", "partition", "segmentId")
    return found.join(known, "segmentId", "left")


def past_retention(segments: DataFrame, now_ms: int, retention_ms: int) -> DataFrame:
    """How many bytes has each topic whose records are all older than a retention time?"""
    old = segments.where((f.col("state") == COPIED) & (f.col("maxTimestampMs") < now_ms - retention_ms))
    sums = [f.count("*").alias("segments"), f.sum("segmentSizeInBytes").alias("bytes")]
    return old.groupBy("topic").agg(*sums).orderBy(f.desc("bytes"), "topic")


def answers(
    spark: SparkSession, metadata: Mapping[str, str], store: Mapping[str, str], key: str | None, retention_days: float
) -> dict[str, DataFrame]:
    """The answers, by question. Raises ValueError where some of the metadata cannot be read: every answer would be
    wrong by what it says."""
    events = spark.read.format("remote_log_metadata").options(**metadata).load()
    problems = (
        events.where("finding.severity in ('error', 'critical')").select("finding.subject", "finding.message").take(1)
    )
    if problems:
        raise ValueError(f"{problems[0].subject}: {problems[0].message}")
    segments = segments_of(events.where("finding is null")).cache()
    now_ms = segments.agg(f.max("lastEventMs")).first()[0] or 0
    objects = spark.read.format("remote_objects").options(**store).load()
    key = key or objects.where("segmentId is not null").agg(f.min("key")).first()[0] or ""
    return {
        "Biggest tiered topics": biggest_topics(segments),
        "Upload delays (ms)": upload_delays(segments),
        "Copies that are stuck for an hour": stuck_copies(segments, now_ms, 3_600_000),
        f"Owner of {key}": owner_of(key, objects, segments),
        f"Past {retention_days:g} days": past_retention(segments, now_ms, int(retention_days * DAY_MS)),
    }


def main() -> None:
    """Prints the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("log-dir", "bootstrap-server", "command-config", "export", "layout", "key"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--store", required=True)
    parser.add_argument("--layout-option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--retention-days", type=float, default=7)
    given = parser.parse_args()
    metadata = {name: getattr(given, name) for name in ("log_dir", "bootstrap_server", "command_config", "export")}
    store = {"store": given.store, "layout": given.layout}
    store |= {f"layout-option.{name}": value for name, _, value in (one.partition("=") for one in given.layout_option)}
    spark = SparkSession.builder.getOrCreate()
    for question, frame in answers(
        spark,
        {name.replace("_", "-"): value for name, value in metadata.items() if value is not None},
        {name: value for name, value in store.items() if value is not None},
        given.key,
        given.retention_days,
    ).items():
        sys.stdout.write(f"{question}\n")
        for row in frame.toArrow().to_pylist():
            sys.stdout.write("  " + ", ".join(f"{name} {value}" for name, value in row.items()) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
