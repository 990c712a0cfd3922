"""What a partition's uploaded segments tell of its log: the line of its last leaders, and which offsets are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import partition_document
from tieredctl.rlmm.cache import KnownSegment
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.wal.replayed import KnownWalSegment

NO_END = 1 << 63
"""The end of the last leader epoch."""
_Segment = TypeVar("_Segment", bound=KnownSegment | KnownWalSegment)
"""A segment of either tier."""
Partitions = dict[TopicIdPartition, list[KnownWalSegment]]


def by_partition(segments: Sequence[KnownWalSegment]) -> Partitions:
    """The segments of each partition by rising offset, partitions by name."""
    partitions: Partitions = {}
    for segment in sorted(segments, key=_place):
        partitions.setdefault(segment.metadata.topic_id_partition, []).append(segment)
    return partitions


def last_line(segments: Sequence[_Segment]) -> list[_Segment]:
    """The segments of a partition that agree with every one of a later leader about where leader epochs begin and end.

    A segment with records that a later leader does not have is left out whole: that leader uploaded what it has of it
    again, and where in it the later leader begins, it does not tell.
    """
    firsts, lasts = dict[int, int](), dict[int, int]()
    kept = set[int]()
    for row in sorted(range(len(segments)), key=lambda row: -_last_epoch(segments[row])):
        ranges = segments[row].metadata.epoch_ranges()
        if all(_agrees(one, firsts, lasts) for one in ranges):
            kept.add(row)
            for epoch, first, last in ranges:
                firsts[epoch] = min(first, firsts.get(epoch, first))
                lasts[epoch] = max(last, lasts.get(epoch, last))
    return [segment for row, segment in enumerate(segments) if row in kept]


def gaps_in(lines: Partitions, uploaded: Partitions) -> list[Finding]:
    """Offsets that are missing in lines of leaders, from the first one on that was uploaded of each partition."""
    gaps = []
    for partition, segments in lines.items():
        end = uploaded[partition][0].metadata.start_offset - 1
        for segment in segments:
            if segment.metadata.start_offset > end + 1:
                gaps.append(offset_gap(partition, end + 1, segment.metadata.start_offset - 1))
            end = max(end, segment.metadata.end_offset)
    return gaps


def starts_of_epochs(segments: Sequence[KnownSegment | KnownWalSegment]) -> dict[int, int]:
    """The first offset of each leader epoch."""
    starts: dict[int, int] = {}
    for segment in segments:
        for epoch, offset in segment.metadata.segment_leader_epochs:
            starts[epoch] = min(offset, starts.get(epoch, offset))
    return starts


def ends_of_epochs(segments: Sequence[KnownWalSegment]) -> dict[int, int]:
    """The first offset of any later epoch, for each leader epoch."""
    starts = starts_of_epochs(segments)
    ends, end = {}, NO_END
    for epoch in sorted(starts, reverse=True):
        ends[epoch] = end
        end = min(end, starts[epoch])
    return ends


def _agrees(one: tuple[int, int, int], firsts: Mapping[int, int], lasts: Mapping[int, int]) -> bool:
    """Whether all of earlier epochs is before a range, and all of later ones after it."""
    epoch, first, last = one
    return all(last < begin for later, begin in firsts.items() if later > epoch) and all(
        end < first for earlier, end in lasts.items() if earlier < epoch
    )


def _last_epoch(segment: KnownSegment | KnownWalSegment) -> int:
    return max((epoch for epoch, _ in segment.metadata.segment_leader_epochs), default=-1)


def offset_gap(partition: TopicIdPartition, first: int, last: int) -> Finding:
    """No combined object has offsets from one up to and including another."""
    name = f"{partition.topic}-{partition.partition}"
    evidence = partition_document(partition) | {"startOffset": first, "endOffset": last}
    message = f"no combined object holds offsets {first} to {last}"
    about = PartitionSubject(partition, (first, last))
    return Finding(ProposalCode.WAL_OFFSET_GAP, name, message, evidence, about=about)


def _place(segment: KnownWalSegment) -> tuple[str, str, int, int, int]:
    partition = segment.metadata.topic_id_partition
    return (
        partition.topic,
        partition.topic_id,
        partition.partition,
        segment.metadata.start_offset,
        segment.metadata.end_offset,
    )
