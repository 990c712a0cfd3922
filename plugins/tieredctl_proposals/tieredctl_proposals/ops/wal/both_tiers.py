"""What a partition's local log has to be, by both tiers: its batches from combined objects (KIP-1176), and below them
the leader epochs of what is in remote storage (KIP-405)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.model.events import RemoteLogSegmentState
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
"""Those that remote storage has whole (COPY_SEGMENT_FINISHED)."""
NOTHING_REMOTE: RemoteSegments = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A partition's local log."""

    segments: Sequence[KnownWalSegment]
    """Of one line of leaders, by rising offset; none where everything is in remote storage."""
    start_offset: int
    """Where the log begins, and ends where there are no segments."""
    epochs: Sequence[EpochEntry] = ()
    """Leader epochs that begin below it."""


def remote_segments(stream: EventStream, selection: Selection) -> RemoteSegments:
    """Raises TieredctlError `metadata-incomplete` where any event is missing or cannot be read."""
    metadata = replayed(stream, selection)
    demand_whole(stream.findings)
    found: dict[TopicIdPartition, list[KnownSegment]] = {}
    for partition, segment in metadata.known(metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])):
        found.setdefault(partition, []).append(segment)
    return found


def local_parts(
    uploaded: Partitions, remote: RemoteSegments
) -> tuple[dict[TopicIdPartition, LocalPart], list[Finding]]:
    """The logs that partitions need which are in either tier, and what neither has of them.

    A log begins where its batches no longer have gaps: what is below it is read from remote storage. Where that
    reaches further than the combined objects, the log is empty and begins after it, so that a leader writes nothing
    over what is there.
    """
    parts: dict[TopicIdPartition, LocalPart] = {}
    findings: list[Finding] = []
    for partition in sorted({*uploaded, *remote}, key=lambda one: (one.topic, one.topic_id, one.partition)):
        part, found = _local_part(partition, uploaded.get(partition, []), remote.get(partition, ()))
        parts[partition] = part
        findings += found
    return parts, findings


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
