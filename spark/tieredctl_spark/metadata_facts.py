"""What is true of all metadata that executors read: how far it may be believed, and which partitions it names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.coverage import MISSING, MetadataCoverage, MetadataPlaces
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.stretches import MetadataSource
from tieredctl.ops.orphans.judgement import Certainty
from tieredctl.ops.orphans.object_columns import MetadataBegins
from tieredctl_spark.arrow.metadata_rows import ABOUT
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.metadata_shares import FINDING, OFFSET, PARTITION

_NO_TIMESTAMP_MS = -1


@dataclass(frozen=True, slots=True)
class MetadataFacts:
    """Times in ms. As `ReadStream`, a reading that can be compared with a later one."""

    source: MetadataSource
    coverage: MetadataCoverage
    findings: list[Finding]
    certainty: Certainty
    partitions: dict[TopicIdPartition, bool]
    """Each user partition that an event names, and whether one tells of its removal."""
    first_events_ms: dict[str, int]
    """Each topic id that an event names, with the time of its earliest record."""
    last_timestamp_ms: int
    """The time of the last record."""
    begins: MetadataBegins
    end_offsets: dict[int, int]
    """Up to where (exclusive) each metadata partition was read."""
    events: int
    """How many there are."""

    def lacking(self, lost: list[Finding]) -> MetadataFacts:
        """Once a later reading lacked some of it."""
        certainty = replace(self.certainty, is_whole=self.certainty.is_whole and is_whole(lost))
        return replace(self, findings=[*self.findings, *lost], certainty=certainty)

    def end_offset(self, metadata_partition: int) -> int:
        """The end offset of one of them."""
        return self.end_offsets[metadata_partition]


def metadata_facts(told: pa.Table, stream: EventStream) -> MetadataFacts:
    """The facts in the rows that tasks gave besides segments or events, of all that a stream is of: some for each
    partition."""
    source = stream.source
    findings = _findings(told)
    logs, named = _logs(told), _named(told)
    ends = {number: stream.end_offset(number) for number in source.metadata_partitions()}
    begins: dict[int, tuple[int, int]] = {}
    last_ms = _NO_TIMESTAMP_MS
    for number, log in zip(logs.column(PARTITION).to_pylist(), logs.column(ABOUT).to_pylist(), strict=True):
        ends[number] = max(ends.get(number, 0), log["lastOffset"] + 1)
        last_ms = max(last_ms, log["lastMs"])
        begin = log["firstOffset"], log["firstMs"]
        begins[number] = min(begin, begins.get(number, begin))
    places, partitions, firsts_ms = MetadataPlaces(), dict[TopicIdPartition, bool](), dict[str, int]()
    for row in named.select(["topicId", "topic", "partition", PARTITION, ABOUT]).to_pylist():
        partition, said = TopicIdPartition(row["topicId"], row["topic"], row["partition"]), row[ABOUT]
        places.note(row[PARTITION], [partition])
        partitions[partition] = partitions.get(partition, False) or said["isRemoved"]
        firsts_ms[partition.topic_id] = min(said["firstMs"], firsts_ms.get(partition.topic_id, said["firstMs"]))
    coverage = places.coverage(source.metadata_partitions(), source.partition_count)
    missing = coverage.finding()
    findings = ([] if missing is None else [missing]) + findings
    certainty = Certainty(
        is_whole=is_whole(findings),
        partitions_are_sure=coverage.is_certain,
        events_may_be_gone=any(finding.code is COMPACTED for finding in findings),
    )
    first_records_ms = {number: first_ms for number, (_, first_ms) in begins.items()}
    known = MetadataBegins.of(coverage, first_records_ms)
    return MetadataFacts(
        source, coverage, findings, certainty, partitions, firsts_ms, last_ms, known, ends, events_told(told)
    )


def events_told(told: pa.Table) -> int:
    """How many events there are."""
    return pc.sum(pc.struct_field(_named(told).column(ABOUT), "records")).as_py() or 0


def are_apart(told: pa.Table) -> bool:
    """Whether events about a user partition were read by several tasks that each replayed theirs alone, as where the
    number of metadata partitions was changed."""
    rows = _named(told)
    homes = rows.append_column("home", pc.struct_field(rows.column(ABOUT), "home"))
    homes = homes.group_by(["topicId", "topic", "partition"]).aggregate([("home", "count_distinct")])
    return bool(pc.any(pc.greater(homes.column("home_count_distinct"), 1)).as_py())


def _named(told: pa.Table) -> pa.Table:
    """The rows about user partitions."""
    return told.filter(pc.and_(pc.is_valid(told.column(ABOUT)), pc.is_valid(told.column("topicId"))))


def _logs(told: pa.Table) -> pa.Table:
    """The rows about metadata partitions."""
    return told.filter(pc.and_(pc.is_valid(told.column(ABOUT)), pc.is_null(told.column("topicId"))))


def _findings(told: pa.Table) -> list[Finding]:
    rows: Iterable[dict[str, object]] = told.filter(pc.is_valid(told.column(FINDING))).to_pylist()
    found = sorted(rows, key=lambda row: tuple((row[name] is not None, row[name]) for name in (PARTITION, OFFSET)))
    findings = [read_finding(row[FINDING]) for row in found]  # type: ignore[arg-type]
    return [finding for finding in findings if finding.code is not MISSING]
