"""Finds the object and the bytes in it that serve an offset, for a follower and for a consumer (KIP-1176)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.model.nearest import nearest_hint
from tieredctl.model.result_row import Column, JsonOnly, Main, ResultRow, Size, Wide
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.ops.wal.contents import KnownEvents
from tieredctl_proposals.ops.wal.line_of_leaders import starts_of_epochs
from tieredctl_proposals.ops.wal.object_check import object_finding
from tieredctl_proposals.wal.fetch import FetchedFrom, WalFetch, consumer_wal_fetch, follower_wal_fetch
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.reading import fetch_from_offset
from tieredctl_proposals.wal.replayed import KnownWalSegment

_FOLLOWER = "the leader answers its fetch without records, and it reads them from the object"
_CONSUMER = "it reads from a broker's disk; from the object while none has the offset, as after the leader is lost"


@dataclass(frozen=True, slots=True)
class ReaderRow(ResultRow):
    """What a reader gets, and from where."""

    reader: str
    source: FetchedFrom
    leader_epoch: Annotated[int | None, Column("EPOCH")]
    key: Main[str | None]
    start_file_position: Annotated[int | None, Column("SEGMENT-FROM")] = None
    end_file_position: Annotated[int | None, Column("TO")] = None
    batch_position: Annotated[int | None, Column("BATCH-AT")] = None
    batch_bytes: Size[int | None] = None
    segment_id: JsonOnly[str | None] = None
    start_offset: JsonOnly[int | None] = None
    end_offset: JsonOnly[int | None] = None
    how: Wide[str] = ""


@dataclass(frozen=True, slots=True)
class WalExplanation:
    """A row for each reader."""

    partition: TopicIdPartition
    rows: Sequence[ReaderRow]
    findings: Sequence[Finding]
    is_held: bool
    """Whether a combined object holds the offset."""


def explain_wal(
    store: ObjectStore, events: KnownEvents, topic: str, number: int, offset: int, topic_id: str | None
) -> WalExplanation:
    """By the events alone: as if the leader's log were what is uploaded, and for the consumer as if no disk had it.

    Raises TieredctlError `unknown-topic` for a partition without events, `ambiguous-topic` where several topics have
    that name.
    """
    partition = _named(events, topic, number, topic_id)
    wal = events.replayed.partition(partition)
    uploaded = [one for one in wal.segments.values() if one.is_readable]
    if not uploaded:
        nothing = WalFetch(FetchedFrom.OFFSET_OUT_OF_RANGE)
        return WalExplanation(partition, [_row("follower", nothing), _row("consumer", nothing)], [], False)
    log = _as_uploaded(uploaded)
    lost = LeaderLog(log.log_start_offset, log.end_offset, log.end_offset, log.leader_epochs)
    fetches = {
        "follower": follower_wal_fetch(log, wal, offset),
        "consumer": consumer_wal_fetch(lost, RemoteLogMetadataCache(), wal, offset),
    }
    findings: list[Finding] = []
    rows = []
    for reader, fetch in fetches.items():
        row = _row(reader, fetch)
        if fetch.wal is not None:
            row = _with_batch(row, store, fetch.wal, offset, findings if reader == "follower" else [])
        rows.append(row)
    return WalExplanation(partition, rows, findings, fetches["follower"].wal is not None)


def _named(events: KnownEvents, topic: str, number: int, topic_id: str | None) -> TopicIdPartition:
    matches = [
        one
        for one in events.replayed.partitions
        if (one.topic, one.partition) == (topic, number) and topic_id in (None, one.topic_id)
    ]
    if not matches:
        message = f"The events have nothing of {topic}-{number}."
        alike = nearest_hint(topic, {one.topic for one in events.replayed.partitions})
        hint = alike or "List what is there with `tieredctl wal inspect`."
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint=hint)
    if len(matches) > 1:
        ids = ", ".join(one.topic_id for one in matches)
        raise TieredctlError(ErrorCode.AMBIGUOUS_TOPIC, f"There are several topics {topic}: {ids}.")
    return matches[0]


def _as_uploaded(segments: Sequence[KnownWalSegment]) -> LeaderLog:
    """The log that the uploaded segments are of, by its latest leaders."""
    starts = starts_of_epochs(segments)
    epochs: list[tuple[int, int]] = []
    for epoch, first in sorted(starts.items(), reverse=True):
        if not epochs or first < epochs[-1][1]:
            epochs.append((epoch, first))
    latest = max(starts)
    ends = [one.metadata.end_offset for one in segments if one.metadata.segment_leader_epochs[-1][0] == latest]
    start, end = epochs[-1][1], max(ends) + 1
    return LeaderLog(start, start, end, tuple(reversed(epochs)))


def _with_batch(
    row: ReaderRow, store: ObjectStore, segment: KnownWalSegment, offset: int, findings: list[Finding]
) -> ReaderRow:
    """The row with the place of the batch that has the offset; a finding where it cannot be had."""
    try:
        fetched = read_again(
            store,
            lambda at: fetch_from_offset(at, segment, offset, 1),
            failing_by=(ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE),
        )
    except TieredctlError as error:
        key = object_key(segment.combined_segment_id)
        if error.code is ErrorCode.OBJECT_MISSING:
            evidence = {"key": key, "combinedSegmentId": segment.combined_segment_id}
            findings.append(Finding(ProposalCode.WAL_OBJECT_MISSING, key, "it is not there", evidence))
        elif error.code is ErrorCode.UNDECODABLE:
            findings.append(object_finding(key, segment.start_file_position, error.message, segment))
        else:
            raise
        return row
    return replace(row, batch_position=fetched.position, batch_bytes=len(fetched.data))


def _row(reader: str, fetch: WalFetch) -> ReaderRow:
    how = _FOLLOWER if reader == "follower" else _CONSUMER
    row, segment = ReaderRow(reader, fetch.source, fetch.leader_epoch, fetch.key, how=how), fetch.wal
    if segment is None:
        return row
    return replace(
        row,
        start_file_position=segment.start_file_position,
        end_file_position=segment.end_file_position,
        segment_id=segment.segment_id,
        start_offset=segment.metadata.start_offset,
        end_offset=segment.metadata.end_offset,
    )
