"""A partition over its offsets: which segments it has in which state, and what no segment holds.

Gaps and overlaps are those that `verify` reports: along the leader epochs of the log, or without it of the segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tieredctl.drawing.scale import NO_OFFSETS, OffsetRanges
from tieredctl.drawing.timeline import Part, PartRanges, Timeline
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderEpochs
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.documents import Document, epochs_document, partition_document
from tieredctl.ops.metadata.completeness import is_whole_for_partitions_here
from tieredctl.ops.verification.lineage_check import EpochRanges
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

if TYPE_CHECKING:
    from tieredctl.ops.cluster.snapshot import PartitionFacts

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_OTHER_STATES = {
    Part.COPYING: RemoteLogSegmentState.COPY_SEGMENT_STARTED,
    Part.DELETING: RemoteLogSegmentState.DELETE_SEGMENT_STARTED,
    Part.DELETED: RemoteLogSegmentState.DELETE_SEGMENT_FINISHED,
}


class KnownLog(NamedTuple):
    """What is known of a partition's log, by its leader or a broker's disk. It must be older than the metadata: what
    has left the disk since then could look missing."""

    leader_epochs: LeaderEpochs
    """Empty where they are not known: then those of the segments are taken."""
    local_start_offset: int
    log_start_offset: int | None
    end_offset: int | None
    """Exclusive; at least."""


class PartitionTimeline(NamedTuple):
    """A partition, and its offsets."""

    partition: TopicIdPartition
    timeline: Timeline
    bytes: SizeSum
    """The bytes of the logs of all segments that are in it."""


def partition_timelines(
    metadata: ReplayedMetadata,
    rows: Ints,
    logs: Mapping[TopicIdPartition, KnownLog] | None = None,
    *,
    is_complete: bool = True,
) -> Iterator[PartitionTimeline]:
    """The partitions that some rows are of, in their order. Unless the metadata `is_complete`, what no segment holds is
    unknown."""
    for number in dict.fromkeys(metadata.rows.partitions[rows].tolist()):
        partition = metadata.partitions[number]
        yield partition_timeline(metadata, partition, (logs or {}).get(partition), is_complete=is_complete)


def partition_timeline(
    metadata: ReplayedMetadata, partition: TopicIdPartition, log: KnownLog | None = None, *, is_complete: bool = True
) -> PartitionTimeline:
    """One partition, with all of its segments that the metadata remembers."""
    rows = metadata.rows_of(partition)
    states = metadata.rows.states[rows]
    finished = rows[states == _FINISHED]
    ranges = EpochRanges.of(metadata, finished)
    lineage = log.leader_epochs if log else ()
    epochs = lineage or EpochRanges.of(metadata, rows).joined()
    pieces = ranges.on(lineage or ranges.joined())
    copied = OffsetRanges(pieces.firsts, pieces.lasts)
    is_reached = np.zeros(len(finished), np.bool_)
    is_reached[pieces.segments] = True
    parts = {
        Part.COPIED: _copied(pieces),
        Part.UNREACHED: _segments(metadata, finished[~is_reached]),
        **{part: _segments(metadata, rows[states == state]) for part, state in _OTHER_STATES.items()},
        Part.OVERLAP: PartRanges(copied.repeated()),
        **_left_out(metadata, partition, copied, log, is_complete=is_complete),
        Part.LOCAL: PartRanges(_local(log)),
    }
    ranges_by_part = {part: part_ranges for part, part_ranges in parts.items() if len(part_ranges.ranges)}
    start, local, end = (log.log_start_offset, log.local_start_offset, log.end_offset) if log else (None, None, None)
    return PartitionTimeline(partition, Timeline(ranges_by_part, epochs, start, local, end), metadata.size_sum(rows))


def _copied(pieces: EpochRanges) -> PartRanges:
    new = np.append([True], pieces.segments[1:] != pieces.segments[:-1])[: len(pieces.segments)]
    return PartRanges(OffsetRanges(pieces.firsts, pieces.lasts), pieces.firsts[new], int(new.sum()))


def _segments(metadata: ReplayedMetadata, rows: Ints) -> PartRanges:
    firsts = metadata.start_offsets(rows)
    ranges = OffsetRanges(firsts, np.maximum(firsts, metadata.end_offsets(rows)))
    since_ms = int(metadata.entered_ms(rows).min()) if len(rows) else None
    return PartRanges(ranges, firsts, len(rows), since_ms)


def _local(log: KnownLog | None) -> OffsetRanges:
    if log is None or log.end_offset is None or log.end_offset <= log.local_start_offset:
        return NO_OFFSETS
    return OffsetRanges.of([(log.local_start_offset, log.end_offset - 1)])


def _left_out(
    metadata: ReplayedMetadata,
    partition: TopicIdPartition,
    copied: OffsetRanges,
    log: KnownLog | None,
    *,
    is_complete: bool,
) -> dict[Part, PartRanges]:
    """What no segment holds: a gap, or missing where the log is known not to have it either."""
    bounds = [(int(copied.firsts.min()), int(copied.lasts.max()))] if len(copied) else []
    gaps = copied.left_out(*bounds[0]) if bounds else NO_OFFSETS
    missing = NO_OFFSETS
    if log is not None:
        cache = metadata.caches.get(partition, RemoteLogMetadataCache())
        first = _first_needed(cache, log, bounds)
        missing = copied.left_out(first, log.local_start_offset - 1)
        gaps = gaps.within(max(log.local_start_offset, log.log_start_offset or 0), np.iinfo(np.int64).max)
    if not is_complete:
        return {Part.UNKNOWN: PartRanges(OffsetRanges.of([*missing.pairs(), *gaps.pairs()]))}
    return {Part.GAP: PartRanges(gaps), Part.MISSING: PartRanges(missing)}


def _first_needed(cache: RemoteLogMetadataCache, log: KnownLog, bounds: list[tuple[int, int]]) -> int:
    """The first offset that something must hold: that of the log, unless what was there was deleted: then the broker's
    checkpoint of log starts may be outdated."""
    start = log.log_start_offset
    if not bounds:
        reached = cache.highest_offset()
        if reached is None and start is None:
            return log.local_start_offset
        return max(_greatest([reached]), -1 if start is None else start - 1) + 1
    ((first, _),) = bounds
    if start is None or start >= first:
        return first if start is None else start
    return min(max(start, _greatest([cache.deleted.highest]) + 1), first)


def _greatest(offsets: Iterable[int | None]) -> int:
    """-1 where nothing is known."""
    return max((offset for offset in offsets if offset is not None), default=-1)


_NAMES = {
    Part.COPIED: "copied",
    Part.COPYING: "copying",
    Part.DELETING: "deleting",
    Part.DELETED: "deleted",
    Part.UNREACHED: "unreached",
    Part.OVERLAP: "overlaps",
    Part.UNKNOWN: "unknown",
    Part.GAP: "gaps",
    Part.MISSING: "missing",
}


def timeline_document(timeline: PartitionTimeline) -> Document:
    """A partition with the fields of `ranges_document`."""
    return partition_document(timeline.partition) | ranges_document(timeline.timeline)


def ranges_document(timeline: Timeline) -> Document:
    """Lists of [first, last] by what these offsets are, both inclusive and joined where they touch; null for what is
    not known of the log."""
    return {
        "logStartOffset": timeline.log_start_offset,
        "localLogStartOffset": timeline.local_start_offset,
        "endOffset": timeline.end_offset,
        "leaderEpochs": epochs_document(tuple(timeline.epochs)),
        **{name: [list(pair) for pair in timeline.of(part).joined().pairs()] for part, name in _NAMES.items()},
    }


MOST_DRAWN = 6


class FoundTimelines(NamedTuple):
    """Partitions with findings about their segments or offsets."""

    drawn: Sequence[PartitionTimeline] = ()
    left_out: Sequence[TopicIdPartition] = ()
    """Those that are not drawn, the gravest first."""


NOTHING_DRAWN = FoundTimelines()


def timelines_of_found(
    stores: Sequence[ReplayedMetadata],
    findings: Iterable[Finding],
    metadata_findings: Iterable[Finding],
    logs: Mapping[TopicIdPartition, KnownLog] | None = None,
) -> FoundTimelines:
    """Timelines of the partitions with findings that the metadata knows; `metadata_findings` tell what of it could not
    be read. The logs have to be older than the metadata."""
    is_complete = is_whole_for_partitions_here(metadata_findings)
    affected = [
        (metadata, partition)
        for partition in _gravest_first(findings)
        for metadata in stores
        if len(metadata.rows_of(partition))
    ]
    drawn = [
        partition_timeline(metadata, partition, (logs or {}).get(partition), is_complete=is_complete)
        for metadata, partition in affected[:MOST_DRAWN]
    ]
    return FoundTimelines(drawn, [partition for _, partition in affected[MOST_DRAWN:]])


def logs_of_leaders(parts: Iterable[PartitionFacts]) -> dict[TopicIdPartition, KnownLog]:
    """What leaders reported before the metadata was read. Their leader epochs are those of the segments."""
    return {
        one.partition: KnownLog((), one.earliest_local, one.earliest, one.latest)
        for one in parts
        if one.earliest_local is not None
    }


def _gravest_first(findings: Iterable[Finding]) -> list[TopicIdPartition]:
    gravest: dict[TopicIdPartition, int] = {}
    for finding in findings:
        if isinstance(finding.about, PartitionSubject):
            partition = finding.about.partition
            gravest[partition] = max(finding.severity, gravest.get(partition, finding.severity))
    return sorted(gravest, key=lambda partition: (-gravest[partition], partition))
