"""What is true of all metadata that executors read: how far it may be believed, and which topics it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.coverage import MISSING, MetadataPlaces
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.judgement import Certainty
from tieredctl.ops.orphans.object_columns import MetadataBegins
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.metadata_shares import FINDING, METADATA_SCHEMA, OFFSET, PARTITION
from tieredctl_spark.packed import Keep, Packed

_PLACE = ["topicId", "topic", "partition", PARTITION]
_PLACE_SCHEMA = pa.schema(
    {
        "topicId": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        PARTITION: pa.int32(),
        "isEvent": pa.bool_(),
        "records": pa.int64(),
        "firstMs": pa.int64(),
        "lastMs": pa.int64(),
        "firstOffset": pa.int64(),
        "lastOffset": pa.int64(),
        "beginMs": pa.int64(),
    }
)
"""Some records of a user partition in a metadata partition, events or not. `beginMs` is of the first by its offset."""
_FOUND_SCHEMA = pa.schema([METADATA_SCHEMA.field(name) for name in (PARTITION, OFFSET, FINDING)])
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
    begins: MetadataBegins
    end_offsets: dict[int, int]
    """Up to where (exclusive) each metadata partition was read."""
    events: int


def metadata_facts(rows: Packed, stream: EventStream, keep: Keep) -> MetadataFacts:
    """Of what `metadata_rows` made of all that a stream is of. Nothing larger than its topics comes to the driver."""
    source = stream.source
    places = keep(rows.through(_places, _PLACE_SCHEMA).rows(), "places")
    events = places.where("isEvent")
    topics = events.groupBy("topicId").agg(fn.min("firstMs"), fn.sum("records")).collect()
    begin_ms = fn.min_by("beginMs", "firstOffset")
    read = places.groupBy(PARTITION).agg(fn.max("lastOffset"), fn.max("lastMs"), begin_ms).collect()
    last_ms = max((row[2] for row in read), default=_NO_TIMESTAMP_MS)
    ends = {number: stream.end_offset(number) for number in source.metadata_partitions()}
    ends |= {row[0]: max(ends.get(row[0], 0), row[1] + 1) for row in read}
    found = rows.through(_found, _FOUND_SCHEMA).rows().collect()
    found.sort(key=lambda row: tuple((place is not None, place) for place in row[:2]))
    findings = [read_finding(row[FINDING].asDict()) for row in found]
    findings = [finding for finding in findings if finding.code is not MISSING]
    known = MetadataPlaces(divided=_divided(events) if source.partition_count is None else 0)
    coverage = known.coverage(source.metadata_partitions(), source.partition_count)
    missing = coverage.finding()
    findings = ([] if missing is None else [missing]) + findings
    certainty = Certainty(
        is_whole=is_whole(findings),
        partitions_are_sure=coverage.is_certain,
        events_may_be_gone=any(finding.code is COMPACTED for finding in findings),
    )
    first_ms, count = {row[0]: row[1] for row in topics}, sum(row[2] for row in topics)
    begins = MetadataBegins.of(coverage, {row[0]: row[3] for row in read})
    return MetadataFacts(findings, certainty, first_ms, last_ms, begins, ends, count)


def _places(rows: pa.Table) -> pa.Table:
    records = rows.filter(rows.column("timestampMs").is_valid())
    with_kind = records.append_column("isEvent", records.column("apiKey").is_valid())
    # Records of a metadata partition are in their order here, which threads would lose.
    times = [("timestampMs", "min"), ("timestampMs", "max"), (OFFSET, "min"), (OFFSET, "max"), ("timestampMs", "first")]
    groups = with_kind.group_by([*_PLACE, "isEvent"], use_threads=False).aggregate([([], "count_all"), *times])
    columns = [*_PLACE, "isEvent", "count_all", *("_".join(one) for one in times)]
    return pa.table(groups.select(columns).columns, schema=_PLACE_SCHEMA)


def _found(rows: pa.Table) -> pa.Table:
    return rows.filter(rows.column(FINDING).is_valid()).select(_FOUND_SCHEMA.names)


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
