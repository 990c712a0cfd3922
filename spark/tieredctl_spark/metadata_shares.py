"""What one task reads of `__remote_log_metadata`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.stretches import (
    METADATA_TOPIC,
    NO_END,
    OffsetRange,
    RecordChunk,
    cut_to,
    demand_held,
    held_offsets,
    log_findings,
    stretch_chunks,
    stretches,
)
from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA, record_table
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row

METADATA_SCHEMA = pa.schema([*(field.with_nullable(True) for field in RECORD_TABLE_SCHEMA), ("finding", FINDING_TYPE)])
"""A row for each record, as in `metadata export`: its value unchanged, and columns of its content, which are null where
it cannot be decoded. And a row for each finding, in which `finding` is not null; of the other columns only
`metadataPartition` and `metadataOffset` may be set there."""
FINDING, PARTITION, OFFSET = "finding", "metadataPartition", "metadataOffset"
_UNDECODABLE = FindingCode.EVENT_UNDECODABLE
_NO_OFFSETS = OffsetRange(0, 0)
MOST_OFFSETS = 500_000
"""So many events take about a second to decode, and a task some tenths of one to start."""


@dataclass(frozen=True, slots=True)
class Share:
    """Records of one metadata partition, and what is wrong with it. Without a metadata partition: what is wrong with
    the source as a whole."""

    metadata_partition: int | None
    first: int = 0
    end: int = NO_END
    """Offsets from `first` up to, not including, `end`."""
    has_records: bool = True
    has_event_findings: bool = True
    """The records among them that cannot be decoded."""
    has_log_findings: bool = True
    """What is wrong with the log."""
    is_exact: bool = False
    """Whether only records with these offsets belong to it, whatever else is found there; and only damage among them.
    A record whose offset was altered has no place in any such share."""
    metadata_topic_id: str | None = None
    """The topic that was planned for, if it is known."""
    planned: OffsetRange = _NO_OFFSETS
    """Those of its offsets that the log held then. Whoever reads a share may see another log."""

    @property
    def is_whole(self) -> bool:
        return (self.first, self.end) == (0, NO_END)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for."""

    has_findings: bool = True
    metadata_partition: int | None = None
    """None for all."""
    selection: Selection = Selection()
    """The user partitions that events are about. Findings are given whatever is selected: an event that cannot be read
    may be about any."""

    def records(self, table: pa.Table) -> pa.Table:
        """Those of a table of records."""
        wanted: dict[str, tuple[str, ...] | tuple[int, ...]] = {
            "topic": self.selection.topics,
            "topicId": self.selection.topic_ids,
            "partition": self.selection.numbers,
        }
        for name, values in wanted.items():
            if values:
                table = table.filter(pc.field(name).isin(list(values)))
        return table


EVERYTHING = Wanted()


def planned_shares(place: MetadataPlace, wanted: Wanted = EVERYTHING) -> list[Share]:
    """What to read so that every row that is wanted is there once. Raises TieredctlError."""
    has_findings, one = wanted.has_findings, wanted.metadata_partition
    with place.open(one) as stream:
        topic_id = stream.source.metadata_topic_id
        shares = [Share(None)] if has_findings and one is None else []
        for number in stream.source.metadata_partitions() if one is None else [one]:
            parts, held = stretches(stream.source, number, MOST_OFFSETS), held_offsets(stream.source, number)
            whole = Share(
                number,
                has_event_findings=has_findings,
                has_log_findings=has_findings,
                metadata_topic_id=topic_id,
                planned=held,
            )
            if len(parts) == 1:
                shares.append(whole)
                continue
            if has_findings:
                shares.append(replace(whole, has_records=False, has_event_findings=False))
            for first, end in parts:
                planned = OffsetRange(max(first, held.start), min(end, held.end))
                shares.append(replace(whole, first=first, end=end, has_log_findings=False, planned=planned))
    return shares


def share_tables(place: MetadataPlace, share: Share, wanted: Wanted = EVERYTHING) -> Iterator[pa.Table]:
    """The rows of a share that are wanted, by METADATA_SCHEMA. Raises TieredctlError as `share_chunks` does."""
    findings: list[Finding] = []
    for stream, number, chunk in share_chunks(place, share, findings):
        yield wanted.records(_record_table(stream, number, chunk))
    if wanted.has_findings:
        yield _finding_table(findings)


def share_chunks(
    place: MetadataPlace, share: Share, findings: list[Finding]
) -> Iterator[tuple[EventStream, int, RecordChunk]]:
    """The records of a share, with the stream that decodes them and their metadata partition. Adds its findings once
    all are decoded. Raises TieredctlError, `world-changed` where the topic was deleted and recreated since it was
    planned, and `unreadable` where less of it is here than was planned."""
    with place.open(share.metadata_partition) as stream:
        demand_same_topic(stream.source.metadata_topic_id, share.metadata_topic_id)
        number = share.metadata_partition
        if number is None:
            findings += [finding for finding in stream.findings if not isinstance(finding.about, MetadataSubject)]
            return
        demand_held(stream.source, number, share.planned, was_read=False)
        if share.has_records:
            yield from ((stream, number, chunk) for chunk in _chunks(stream, share) if len(chunk))
            findings += [finding for finding in _of_partitions(stream.findings) if _belongs(finding, share)]
        else:
            findings += _of_partitions(log_findings(stream))
        demand_held(stream.source, number, share.planned, was_read=True)


def demand_same_topic(found: str | None, expected: str | None) -> None:
    """Raises TieredctlError `world-changed` where both ids are known and differ."""
    if None not in (found, expected) and found != expected:
        message = f"{METADATA_TOPIC} was deleted and recreated: its id is {found} now, and was {expected}."
        raise TieredctlError(ErrorCode.WORLD_CHANGED, message)


def _chunks(stream: EventStream, share: Share) -> Iterator[RecordChunk]:
    if share.metadata_partition is None or share.is_whole:
        yield from (chunk for _, chunk in stream.chunks())
        return
    number = share.metadata_partition
    chunks = stretch_chunks(stream.source, number, share.first, share.end)
    if not share.is_exact:
        yield from (stream.cut(number, chunk) for chunk in chunks)
        return
    offsets = OffsetRange(share.first, share.end)
    damage: list[Finding] = []
    yield from cut_to(chunks, offsets, damage)
    stream.findings = [*(one for one in stream.findings if one.code is _UNDECODABLE), *damage]


def _record_table(stream: EventStream, metadata_partition: int, chunk: RecordChunk) -> pa.Table:
    table = record_table(stream, metadata_partition, chunk)
    return pa.table([*table.columns, pa.nulls(len(table), FINDING_TYPE)], schema=METADATA_SCHEMA)


def _of_partitions(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if isinstance(finding.about, MetadataSubject)]


def _belongs(finding: Finding, share: Share) -> bool:
    if finding.code is _UNDECODABLE:
        return share.has_event_findings
    return share.has_log_findings


def _finding_table(findings: Iterable[Finding]) -> pa.Table:
    return pa.Table.from_pylist([finding_columns(finding) for finding in findings], METADATA_SCHEMA)


def finding_columns(finding: Finding) -> dict[str, Any]:
    """A row of a finding: the record or the metadata partition that it is about, and FINDING."""
    columns: dict[str, Any] = {FINDING: finding_row(finding)}
    if isinstance(finding.about, MetadataSubject):
        columns |= {PARTITION: finding.about.metadata_partition, OFFSET: finding.about.metadata_offset}
    return columns
