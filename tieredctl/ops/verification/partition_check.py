"""One partition: are the objects that its segments need listed, and do the segments make a log?

Columns have told which segments are complete, with the right sizes: only the others come here as objects.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np

from tieredctl.errors import TieredctlError
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderEpochs, LocalLog
from tieredctl.ops.metadata.state import stuck_finding
from tieredctl.ops.verification.asked_objects import AskedObjects
from tieredctl.ops.verification.lineage_check import EpochRanges, check_lineage
from tieredctl.ops.verification.object_check import AskedSegments, JudgedBy, check_finished, was_cleared
from tieredctl.ops.verification.small_parts import leader_epoch_contradiction
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.rlmm.cache import NOTHING_DELETED, DeletedOffsets, KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def check_segments(
    segments: Sequence[KnownSegment],
    listed: Mapping[str, Mapping[str, StoredObject]],
    unlisted: Container[str],
    by: JudgedBy,
    report: AskedSegments,
) -> None:
    """Asks about segments of a partition of which something is to be told, in their order. `listed` has their objects
    by segment id, then key; `unlisted` are the ids of those of which no object is listed. An object is only reported
    missing after the store was asked for it again."""
    finished = [one.metadata for one in segments if one.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]
    asked = AskedObjects(by.store, () if by.silence.is_final else _lacked(finished, listed, by), _prefix(finished, by))
    for segment in segments:
        metadata = segment.metadata
        if metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            check_finished(metadata, listed.get(metadata.segment_id, {}), by, asked, report)
        elif metadata.segment_id not in unlisted or not was_cleared(metadata, by):
            report.findings.append(stuck_finding(segment, by.clock.now_ms))


def _lacked(
    segments: Iterable[RemoteLogSegmentMetadata], listed: Mapping[str, Mapping[str, StoredObject]], by: JudgedBy
) -> list[str]:
    """The keys that `check_finished` asks for because no listed object has them."""
    keys: list[str] = []
    for segment in segments:
        there = listed.get(segment.segment_id, {})
        needed = list(by.layout.promised_objects(segment).values())
        transaction_index = by.layout.optional_objects(segment).get(Part.TRANSACTION_INDEX)
        if transaction_index is not None and by.transaction_indexes.has(segment):
            needed.append(transaction_index)
        keys += (key for key in needed if key not in there)
    return keys


def _prefix(segments: Sequence[RemoteLogSegmentMetadata], by: JudgedBy) -> str:
    return by.layout.partition_prefix(segments[0].topic_id_partition) if segments else ""


def lineage_findings(
    partition: TopicIdPartition, metadata: ReplayedMetadata, finished: Ints, by: JudgedBy, local: LocalLog | None
) -> list[Finding]:
    """Whether a partition's segments make a log; `finished` are the rows of those in COPY_SEGMENT_FINISHED."""
    if local is not None:
        return findings_along(partition, metadata, finished, local)
    ranges = EpochRanges.of(metadata, finished)
    lineage = _lineage(metadata, finished, ranges, by)
    return check_lineage(
        partition, ranges, lineage, None, copied=_unasked, deleted=lambda: metadata.deleted_offsets(partition)
    )


def findings_along(
    partition: TopicIdPartition, metadata: ReplayedMetadata | None, finished: Ints, local: LocalLog
) -> list[Finding]:
    """Whether a partition's segments and its local log make a log, along the leader epochs of the latter. `metadata` is
    None where it has nothing of the partition."""
    ranges = EpochRanges.said_by(()) if metadata is None else EpochRanges.of(metadata, finished)

    def deleted() -> DeletedOffsets:
        return NOTHING_DELETED if metadata is None else metadata.deleted_offsets(partition)

    def copied() -> int | None:
        none = RemoteLogMetadataCache()
        return (none if metadata is None else metadata.caches.get(partition, none)).highest_offset()

    return check_lineage(partition, ranges, local.leader_epochs, local, copied=copied, deleted=deleted)


def _unasked() -> None:
    """Does nothing: stands for a question that is not asked where no local log is known."""


def _lineage(metadata: ReplayedMetadata, finished: Ints, ranges: EpochRanges, by: JudgedBy) -> LeaderEpochs:
    """The lineage in which the segment with the highest leader epoch and end was written."""
    if not len(finished):
        return ()
    if by.silence.is_final:
        return ranges.joined()
    latest = _latest(metadata, finished, ranges)
    try:
        entries = leader_epoch_entries(by.layout.open_segment(by.store, latest).read(Part.LEADER_EPOCH))
    except TieredctlError as error:
        by.silence.note(error)
        entries = []
    if leader_epoch_contradiction(entries, latest):  # damaged, or missing, which is a finding of its own
        return ranges.joined()
    return [(entry.epoch, entry.start_offset) for entry in entries]


def _latest(metadata: ReplayedMetadata, finished: Ints, ranges: EpochRanges) -> RemoteLogSegmentMetadata:
    last_of_each = np.append(ranges.segments[1:] != ranges.segments[:-1], [True])
    epochs, ends = ranges.epochs[last_of_each], metadata.end_offsets(finished)
    highest = np.flatnonzero(epochs == epochs.max())
    farthest = highest[ends[highest] == ends[highest].max()]
    alike = [segment.metadata for _, segment in metadata.known(finished[farthest])]
    return min(alike, key=lambda one: (one.start_offset, one.segment_id))
