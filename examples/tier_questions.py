"""Five questions about a cluster's tiered storage, answered by Spark from its metadata and its store.

    spark-submit examples/tier_questions.py --log-dir /var/lib/kafka --store s3://tiered/cluster-a

PySpark finds the data sources by itself where tieredctl-spark is installed. With `SPARK_REMOTE=sc://HOST:15002` in the
environment, `python examples/tier_questions.py …` asks a Spark Connect server.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

COPIED, COPYING = "COPY_SEGMENT_FINISHED", "COPY_SEGMENT_STARTED"


def biggest_topics(segments: DataFrame) -> DataFrame:
    """Which topics have most in remote storage?"""
    sums = [f.count("*").alias("segments"), f.sum("segmentSizeInBytes").alias("bytes")]
    return segments.where(f.col("state") == COPIED).groupBy("topic").agg(*sums).orderBy(f.desc("bytes"), "topic")


def upload_delays(segments: DataFrame) -> DataFrame:
    """How long after its last record was a segment's copy finished, in ms? Of those that are there."""
    delay = f.unix_millis("eventTimestamp") - f.unix_millis("maxTimestamp")
    quantiles = f.percentile_approx(delay, f.array(f.lit(0.5), f.lit(0.95), f.lit(0.99)), 10_000)
    copied = segments.where((f.col("state") == COPIED) & f.col("maxTimestamp").isNotNull())
    delays = copied.groupBy("topic").agg(quantiles.alias("p"), f.max(delay).alias("max"))
    named = (f.col("p")[number].alias(name) for number, name in enumerate(("p50", "p95", "p99")))
    return delays.select("topic", *named, "max").orderBy("topic")


def stuck_copies(segments: DataFrame, now: datetime, older_than: timedelta) -> DataFrame:
    """Which brokers began copies, and neither finished nor deleted them?"""
    stuck = segments.where((f.col("state") == COPYING) & (f.col("eventTimestamp") < now - older_than))
    sums = [f.count("*").alias("segments"), f.min("eventTimestamp").alias("oldest")]
    return stuck.groupBy("brokerId").agg(*sums).orderBy(f.desc("segments"), "brokerId")


def owner_of(key: str, objects: DataFrame, segments: DataFrame) -> DataFrame:
    """Which segment does an object belong to, and what became of it? No state: brokers know no such segment."""
    known = segments.select("segmentId", "startOffset", "endOffset", "state")
    found = objects.where(f.col("key") == key).select("key", "part", "topic", "partition", "segmentId")
    return found.join(known, "segmentId", "left")


def past_retention(segments: DataFrame, now: datetime, retention: timedelta) -> DataFrame:
    """How many bytes has each topic whose records are all older than a retention time?"""
    old = segments.where((f.col("state") == COPIED) & (f.col("maxTimestamp") < now - retention))
    sums = [f.count("*").alias("segments"), f.sum("segmentSizeInBytes").alias("bytes")]
    return old.groupBy("topic").agg(*sums).orderBy(f.desc("bytes"), "topic")


def answers(
    spark: SparkSession, metadata: Mapping[str, str], store: Mapping[str, str], key: str | None, retention_days: float
) -> dict[str, DataFrame]:
    """The answers, by question. Raises ValueError where some of the metadata cannot be read: every answer would be
    wrong by what it says."""
    findings = spark.read.format("tiered_findings").options(**metadata).load()
    problems = findings.where("severity in ('error', 'critical')").select("subject", "message").take(1)
    if problems:
        raise ValueError(f"{problems[0].subject}: {problems[0].message}")
    segments = spark.read.format("tiered_segments").options(**metadata).load().cache()
    newest_ms = segments.agg(f.max(f.unix_millis("eventTimestamp"))).first()[0] or 0
    now = datetime.fromtimestamp(newest_ms / 1_000, UTC)
    objects = spark.read.format("remote_objects").options(**store).load()
    key = key or objects.where("segmentId is not null").agg(f.min("key")).first()[0] or ""
    return {
        "Biggest tiered topics": biggest_topics(segments),
        "Upload delays (ms)": upload_delays(segments),
        "Copies that are stuck for an hour": stuck_copies(segments, now, timedelta(hours=1)),
        f"Owner of {key}": owner_of(key, objects, segments),
        f"Past {retention_days:g} days": past_retention(segments, now, timedelta(days=retention_days)),
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
