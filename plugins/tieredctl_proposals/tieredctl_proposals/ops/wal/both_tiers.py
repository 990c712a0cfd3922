"""What a partition's local log has to be, by both tiers: its batches from combined objects (KIP-1176), and below them
the leader epochs of what is in remote storage (KIP-405)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import MappingProxyType

from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import partition_document
from tieredctl.ops.metadata.completeness import demand_whole
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.rlmm.cache import KnownSegment
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.ops.wal.line_of_leaders import Partitions, last_line, offset_gap, starts_of_epochs
from tieredctl_proposals.wal.leadership import joined_ranges
from tieredctl_proposals.wal.replayed import KnownWalSegment

RemoteSegments = Mapping[TopicIdPartition, Sequence[KnownSegment]]
"""Those that remote storage has whole (COPY_SEGMENT_FINISHED), or had, where those are asked for too."""
NOTHING_REMOTE: RemoteSegments = MappingProxyType({})
_WHOLE = (RemoteLogSegmentState.COPY_SEGMENT_FINISHED,)
_WHOLE_ONCE = (
    *_WHOLE,
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED,
    RemoteLogSegmentState.DELETE_SEGMENT_FINISHED,
)


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A partition's local log."""

    segments: Sequence[KnownWalSegment]
    """The segments of one line of leaders, by rising offset; none where everything is in remote storage."""
    start_offset: int
    """Where the log begins, and ends where there are no segments."""
    epochs: Sequence[EpochEntry] = ()
    """Leader epochs that begin below it."""


def remote_segments(stream: EventStream, selection: Selection, *, with_deleted: bool = False) -> RemoteSegments:
    """What remote storage has, or also what was deleted of it. Raises TieredctlError `metadata-incomplete` where any
    event is missing or cannot be read."""
    metadata = replayed(stream, selection, keep_deleted=with_deleted)
    demand_whole(stream.findings)
    states, deleted = _WHOLE_ONCE if with_deleted else _WHOLE, cache(metadata.deleted_offsets)
    whole_segments: dict[TopicIdPartition, list[KnownSegment]] = {}
    for partition, segment in metadata.known(metadata.in_states(states)):
        removal = metadata.partition_deletes.get(partition)
        one = segment.metadata
        # A copy that never ended is deleted too: its records were, and are, elsewhere.
        was_whole = _is_there(segment) or not any(deleted(partition).not_among(one.start_offset, one.end_offset))
        if was_whole and removal is not RemotePartitionDeleteState.DELETE_PARTITION_FINISHED:
            whole_segments.setdefault(partition, []).append(segment)
    return whole_segments


def local_parts(
    uploaded: Partitions, remote: RemoteSegments
) -> tuple[dict[TopicIdPartition, LocalPart], list[Finding]]:
    """The logs that partitions need which are, or were, in either tier, and what neither has of them.

    A log begins where its batches no longer have gaps: what is below it is read from remote storage, or was deleted.
    Where that reaches further than the combined objects, the log is empty and begins after it, so that a leader writes
    nothing over what is there, and gives no offset twice.
    """
    parts: dict[TopicIdPartition, LocalPart] = {}
    findings: list[Finding] = []
    there = {*uploaded, *(one for one, segments in remote.items() if any(map(_is_there, segments)))}
    # Events do not tell whether a topic was deleted, or all of it by retention: its name may be of another one now.
    names = {one.topic for one in there}
    gone = {one for one in remote if one not in there and (one.topic not in names or _is_of(one, there))}
    for partition in sorted(there | gone, key=lambda one: (one.topic, one.topic_id, one.partition)):
        part, doubts = _local_part(partition, uploaded.get(partition, []), remote.get(partition, ()))
        parts[partition] = part
        findings += [] if partition in gone else doubts
    return parts, findings


def _is_there(segment: KnownSegment) -> bool:
    return segment.metadata.state in _WHOLE


def _is_of(partition: TopicIdPartition, others: Collection[TopicIdPartition]) -> bool:
    return any(partition.topic_id == other.topic_id for other in others)


def _local_part(
    partition: TopicIdPartition, uploaded: Sequence[KnownWalSegment], remote: Sequence[KnownSegment]
) -> tuple[LocalPart, list[Finding]]:
    both: list[KnownWalSegment | KnownSegment] = [*remote, *uploaded]
    line = last_line(both)
    tiered = [one for one in line if isinstance(one, KnownSegment)]
    local = [one for one in line if isinstance(one, KnownWalSegment)]
    tiered_end = max((one.metadata.end_offset for one in tiered), default=-1)
    ranges = joined_ranges((one.metadata.start_offset, one.metadata.end_offset) for one in local)
    if not ranges or ranges[-1][1] < tiered_end:
        start = tiered_end + 1
        return LocalPart([], start, _below(start, line)), [_nothing_after(partition, start)]
    # Within a local log, a reader passes over what is missing: what remote storage has of that is below the log.
    begins = next((first for first, last in ranges if last > tiered_end), ranges[-1][0])
    kept = [one for one in local if one.metadata.end_offset >= begins]
    after = joined_ranges((one.metadata.start_offset, one.metadata.end_offset) for one in kept)
    lowest = min((one.metadata.start_offset for one in uploaded), default=begins)
    reached = tiered_end if tiered else min(lowest, begins) - 1
    gaps = [offset_gap(partition, reached + 1, begins - 1)] if begins > reached + 1 else []
    for (_, last), (first, _) in pairwise(after):
        gaps.append(offset_gap(partition, last + 1, first - 1))
    return LocalPart(kept, begins, _below(begins, line)), gaps


def _below(start: int, line: Sequence[KnownWalSegment | KnownSegment]) -> list[EpochEntry]:
    return [EpochEntry(epoch, first) for epoch, first in sorted(starts_of_epochs(line).items()) if first < start]


def _nothing_after(partition: TopicIdPartition, start: int) -> Finding:
    message = f"remote storage ends before offset {start}, and no combined object goes on from there: "
    message += "without a log, a broker would begin it at 0 and write over what is there"
    about = PartitionSubject(partition, (start, start))
    evidence = partition_document(partition) | {"startOffset": start}
    return Finding(
        ProposalCode.WAL_OFFSET_GAP, f"{partition.topic}-{partition.partition}", message, evidence, about=about
    )
