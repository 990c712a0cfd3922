"""What is true of all metadata that executors read: how far it may be believed, and which topics it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.coverage import MISSING, MetadataPlaces
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.judgement import Certainty
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.transforms.metadata_rows import events_in

_PLACE = ["topicId", "topic", "partition", "metadataPartition"]
_NO_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """Times in ms."""

    findings: list[Finding]
    certainty: Certainty
    first_events_ms: dict[str, int]
    """Each topic id that an event names, with the time of its earliest record."""
    last_timestamp_ms: int
    """Of the last record."""
    end_offsets: dict[int, int]
    """Up to where (exclusive) each metadata partition was read."""
    events: int


def metadata_facts(rows: DataFrame, stream: EventStream) -> MetadataFacts:
    """Of what `metadata_rows` made of all that a stream is of. Nothing larger than its topics comes to the driver."""
    source = stream.source
    events = events_in(rows)
    last_ms, count = rows.agg(fn.max("timestampMs"), fn.count("apiKey")).collect()[0]
    topics = events.groupBy("topicId").agg(fn.min("timestampMs")).collect()
    ends = {number: stream.end_offset(number) for number in source.metadata_partitions()}
    read = rows.where(fn.col("timestampMs").isNotNull()).groupBy("metadataPartition").agg(fn.max("metadataOffset"))
    ends |= {number: max(ends.get(number, 0), last + 1) for number, last in map(tuple, read.collect())}
    found = rows.where(fn.col("finding").isNotNull()).orderBy("metadataPartition", "metadataOffset")
    findings = [read_finding(row["finding"].asDict()) for row in found.select("finding").collect()]
    findings = [finding for finding in findings if finding.code is not MISSING]
    places = MetadataPlaces(divided=_divided(events) if source.partition_count is None else 0)
    coverage = places.coverage(source.metadata_partitions(), source.partition_count)
    missing = coverage.finding()
    findings = ([] if missing is None else [missing]) + findings
    certainty = Certainty(
        is_whole=all(finding.severity in (Severity.INFO, Severity.WARNING) for finding in findings),
        partitions_are_sure=coverage.is_certain,
        events_may_be_gone=any(finding.code is COMPACTED for finding in findings),
    )
    last_ms = _NO_TIMESTAMP_MS if last_ms is None else last_ms
    return MetadataFacts(findings, certainty, dict(map(tuple, topics)), last_ms, ends, count)


def _divided(events: DataFrame) -> int:
    """As MetadataPlaces has it, of all events."""
    parts = events.select(*_PLACE).distinct().mapInArrow(_divided_by, "divided long").collect()
    return gcd(*(part["divided"] for part in parts))


def _divided_by(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    places = MetadataPlaces()
    for batch in batches:
        for topic_id, topic, partition, number in zip(
            *(batch.column(name).to_pylist() for name in _PLACE), strict=True
        ):
            places.note(number, [TopicIdPartition(topic_id, topic, partition)])
    yield pa.RecordBatch.from_pydict({"divided": [abs(places.divided)]})
