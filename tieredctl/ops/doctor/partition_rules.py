"""What is stuck, lagging, left over or kept twice in a tiered partition, by its offsets and its metadata."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentsSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.quantities import size_text
from tieredctl.model.size_sum import SizeSum, known_sum
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import CopyLag, TopicSettings, copy_lag
from tieredctl.ops.documents import partition_document
from tieredctl.ops.metadata.state import failing_finding, stuck_among
from tieredctl.rlmm.cache import KnownSegment

_TOLERATED_SEGMENTS = 2
"""The active segment, and one that was just closed or is being removed."""
_NO_OFFSET_BEHIND = 1 << 63
_COUNTS_FINISHED_ONLY_SINCE = (3, 8)


def partition_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """The findings about every partition of every tiered topic; what is stuck, for every topic that the metadata
    knows."""
    late = stuck_among(cluster.unfinished, cluster.clock)
    yield from (*late.unknown, *late.found)
    yield from cluster.removed
    yield from cluster.gaps or ()
    yield from (failing_finding(one, cluster.clock.now_ms) for one in cluster.failing)
    for facts in cluster.partitions:
        settings = cluster.topics[facts.partition.topic]
        yield from _counted_unfinished(facts, settings, cluster.release)
        yield from _unexplained_start(facts, settings, cluster.clock)
        yield from _below_log_start(facts, cluster.clock)
        yield from _overlapping(facts, settings)
        if cluster.gaps is None:
            yield from _seam(facts)
        yield from _behind(facts, settings)
        yield from _not_reclaimed(facts, settings, cluster.clock)
        yield from _kept_twice(facts, settings)


def _age_ms(segment: KnownSegment, clock: Clock) -> int:
    return clock.now_ms - segment.entered_ms


def _counted_unfinished(facts: PartitionFacts, settings: TopicSettings, release: Release | None) -> Iterator[Finding]:
    if release is None or release.line >= _COUNTS_FINISHED_ONLY_SINCE or settings.number(names.RETENTION_BYTES) < 0:
        return
    started = facts.in_state(RemoteLogSegmentState.COPY_SEGMENT_STARTED)
    if started:
        size = SizeSum.of(segment.known_size for segment in started)
        copies = counted(len(started), "copy that never finished counts", "copies that never finished count")
        message = f"{copies} towards retention.bytes, with {size}"
        evidence = {"bytes": size.known, "segments": len(started)}
        yield _finding(FindingCode.RETENTION_COUNTS_UNFINISHED, facts, message, evidence)


def _unexplained_start(facts: PartitionFacts, settings: TopicSettings, clock: Clock) -> Iterator[Finding]:
    """Retention may have deleted the beginning before the topic was tiered. Where it cannot have, DeleteRecords did, or
    the metadata that says where it is was lost."""
    if not facts.is_start_unexplained:
        return
    expires_ms, first_ms = settings.number(names.RETENTION_MS), facts.first_record_ms
    is_young = first_ms is not None and first_ms >= 0 and clock.now_ms - first_ms < expires_ms / 2
    may_be_retention = settings.number(names.RETENTION_BYTES) >= 0 or (expires_ms >= 0 and not is_young)
    whose = "retention before it was tiered, or DeleteRecords," if may_be_retention else "DeleteRecords"
    message = (
        f"the log begins at offset {facts.earliest}, and the metadata has no event of it: {whose} removed what was "
        "below, or the events of its remote segments are lost"
    )
    evidence = {"logStartOffset": facts.earliest, "firstRecordMs": first_ms}
    severity = Severity.INFO if may_be_retention else None
    yield _finding(FindingCode.LOG_START_UNEXPLAINED, facts, message, evidence, severity)


def _below_log_start(facts: PartitionFacts, clock: Clock) -> Iterator[Finding]:
    log_start = facts.earliest
    deleting = [one for one in facts.segments if one.metadata.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED]
    # The leader raises the log start first, and then deletes one segment after the other.
    if log_start is None or any(_age_ms(one, clock) <= clock.older_than_ms for one in deleting):
        return
    below = [segment for segment in facts.finished if segment.end_offset < log_start]
    if below:
        size = SizeSum.of(segment.known_size for segment in below)
        message = f"{counted(len(below), 'segment')} ({size}) below the log start offset {log_start}"
        evidence = {"logStartOffset": log_start, "bytes": size.known, "segmentIds": [one.segment_id for one in below]}
        finding = _finding(FindingCode.SEGMENTS_BELOW_LOG_START, facts, message, evidence)
        yield replace(finding, about=SegmentsSubject(tuple(one.segment_id for one in below)))


def _overlapping(facts: PartitionFacts, settings: TopicSettings) -> Iterator[Finding]:
    losers = overlapped(facts)
    if losers:
        first, last = min(one.start_offset for one in losers), max(one.end_offset for one in losers)
        segments = counted(len(losers), "segment is", "segments are")
        message = f"{segments} overlapped by those of a later leader (offsets {first} to {last})"
        evidence = {
            "offsets": [first, last],
            "segmentIds": [one.segment_id for one in losers],
            "bytes": known_sum(one.known_size for one in losers),
            "deleteRecordsOffset": last + 1,
        }
        expires = settings.number(names.RETENTION_MS) >= 0 or settings.number(names.RETENTION_BYTES) >= 0
        when = "retention of the segments around them" if expires else f"only DeleteRecords to {last + 1}"
        severity = Severity.INFO if expires else None
        yield _finding(FindingCode.SEGMENTS_OVERLAP, facts, f"{message}; {when} removes them", evidence, severity)


def overlapped(facts: PartitionFacts) -> list[RemoteLogSegmentMetadata]:
    """Finished segments above the log start that share offsets with another one, and are of an earlier leader or
    displaced by the other's copy."""
    log_start = facts.earliest or 0
    segments = [one for one in facts.finished if one.end_offset >= log_start]
    segments.sort(key=lambda one: one.start_offset)
    if all(one.end_offset < following.start_offset for one, following in pairwise(segments)):
        return []
    segments = sorted(
        (one for one in facts.finished if one.end_offset >= log_start),
        key=lambda one: (one.segment_id in facts.displaced, -_last_epoch(one), -one.end_offset),
    )
    # Kept segments never overlap, so only their neighbours by offset can overlap another one.
    kept: list[tuple[int, int]] = []
    losers = []
    for segment in segments:
        place = bisect(kept, (segment.end_offset, _NO_OFFSET_BEHIND))
        if place and kept[place - 1][1] >= segment.start_offset:
            losers.append(segment)
        else:
            kept.insert(place, (segment.start_offset, segment.end_offset))
    return losers


def _last_epoch(segment: RemoteLogSegmentMetadata) -> int:
    return max((epoch for epoch, _ in segment.segment_leader_epochs), default=-1)


def _seam(facts: PartitionFacts) -> Iterator[Finding]:
    """Between the latest tiered offset, by the leader, and the start of its local log."""
    tiered, local = facts.tiered_end, facts.earliest_local
    if facts.latest_tiered is None or tiered is None or local is None or local <= tiered + 1:
        return
    message = f"offsets {tiered + 1} to {local - 1} are neither in a segment of the metadata nor in the local log"
    finding = _finding(FindingCode.LOCAL_REMOTE_GAP, facts, message, {"offsets": [tiered + 1, local - 1]})
    yield replace(finding, about=PartitionSubject(facts.partition, (tiered + 1, local - 1)))


class Untiered(NamedTuple):
    """What of a partition is in no remote segment yet, in bytes. Records differ in size, so they are estimates."""

    first: int
    """The first offset that is not tiered, on the leader's disk."""
    end: int
    """Where the log ends (exclusive)."""
    waits: int
    """Bytes that wait for the copy lag, as they should."""
    behind: int
    """The others, with the active segment."""
    lag: CopyLag | None


def untiered(facts: PartitionFacts, settings: TopicSettings, tiered_end: int | None) -> Untiered | None:
    """By the highest offset that is tiered; None where that is unknown, or there is nothing on the disk."""
    if facts.latest is None or facts.earliest_local is None:
        return None
    on_disk = facts.latest - facts.earliest_local
    first = max(facts.earliest_local, -1 if tiered_end is None else tiered_end + 1)
    waiting = facts.latest - first
    if facts.local_bytes is None or on_disk <= 0:
        return None
    size = facts.local_bytes * waiting // on_disk
    lag = copy_lag(settings)
    if lag is None:
        return Untiered(first, facts.latest, 0, size, None)
    if lag.ms > 0 and facts.first_young is None:
        return None  # how much waits for its age is unknown
    young = facts.latest - min(facts.latest, max(first, facts.first_young or 0))
    waits = lag.waiting(size, facts.local_bytes * young // on_disk)
    return Untiered(first, facts.latest, waits, size - waits, lag)


def is_behind(waiting: Untiered, settings: TopicSettings) -> bool:
    """Whether more waits than may: two segments are never too many."""
    return waiting.behind > _TOLERATED_SEGMENTS * settings.number(names.SEGMENT_BYTES)


def _behind(facts: PartitionFacts, settings: TopicSettings) -> Iterator[Finding]:
    waiting = None if settings.is_true(names.COPY_DISABLE) else untiered(facts, settings, facts.tiered_end)
    if waiting is None:
        return
    first, end, waits, size, lag = waiting
    if waits and lag is not None:
        message = f"about {size_text(waits)} waits for the copy lag, and is not in remote storage yet"
        yield _finding(
            FindingCode.COPY_LAG_WAITS, facts, message, {"bytes": waits, "lagMs": lag.ms, "lagBytes": lag.bytes}
        )
    if is_behind(waiting, settings):
        message = f"about {size_text(size)} from offset {first} on is not tiered, more than an active segment holds"
        yield _finding(FindingCode.TIERING_BEHIND, facts, message, {"offsets": [first, end - 1], "bytes": size})


def _not_reclaimed(facts: PartitionFacts, settings: TopicSettings, clock: Clock) -> Iterator[Finding]:
    lasting, limit = settings.local_retention_ms, settings.local_retention_bytes
    too_old = clock.now_ms - lasting - clock.older_than_ms
    expired = [one for one in facts.on_disk_too if lasting >= 0 and one.max_timestamp_ms < too_old]
    if expired:
        size = SizeSum.of(one.known_size for one in expired)
        segments = counted(len(expired), "tiered segment")
        message = f"{segments} ({size}) still on local disk, past the local retention of {lasting} ms"
        evidence = {"earliestLocal": facts.earliest_local, "latestTiered": facts.tiered_end, "bytes": size.known}
        yield _finding(FindingCode.LOCAL_DISK_NOT_RECLAIMED, facts, message, evidence)
    elif limit >= 0 and facts.local_bytes is not None and facts.on_disk_too:
        excess = facts.local_bytes - limit
        if excess > _TOLERATED_SEGMENTS * settings.number(names.SEGMENT_BYTES):
            too_much = f"{size_text(facts.local_bytes)} is local, {size_text(excess)} above local retention"
            message = f"{too_much}, and partly tiered already"
            evidence = {"earliestLocal": facts.earliest_local, "latestTiered": facts.tiered_end, "bytes": excess}
            yield _finding(FindingCode.LOCAL_DISK_NOT_RECLAIMED, facts, message, evidence)


def _kept_twice(facts: PartitionFacts, settings: TopicSettings) -> Iterator[Finding]:
    twice = SizeSum.of(segment.known_size for segment in facts.on_disk_too)
    if twice != SizeSum():
        message = f"{twice} is in remote storage and on the leader's disk"
        evidence: dict[str, object] = {"bytes": twice.known, "localBytes": facts.local_bytes}
        # Brokers that know the setting report it, with its default.
        if names.COPY_LAG_MS in settings.values and copy_lag(settings) is None:
            message += f"; {names.COPY_LAG_MS}=-1 keeps as much out of remote storage from now on"
            evidence["savedByCopyLag"] = twice.known
        yield _finding(FindingCode.KEPT_TWICE, facts, message, evidence)


def _finding(
    code: FindingCode,
    facts: PartitionFacts,
    message: str,
    evidence: Mapping[str, object],
    severity: Severity | None = None,
) -> Finding:
    partition = facts.partition
    evidence = {**partition_document(partition), **evidence}
    return Finding(code, f"{partition.topic}-{partition.partition}", message, evidence, severity)
