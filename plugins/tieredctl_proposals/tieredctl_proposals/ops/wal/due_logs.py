"""Finds the brokers' logs that have something a store lacks, and what of earlier leaders they take the place of.

A log that may have lost something is not told from one that never had it. So what the store has beyond a log is only
given up for a later leader's log that was read to its end and agrees with its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.documents import partition_document
from tieredctl.rlmm.cache import KnownSegment
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.ops.wal.both_tiers import RemoteSegments
from tieredctl_proposals.ops.wal.contents import KnownEvents
from tieredctl_proposals.ops.wal.line_of_leaders import offset_gap
from tieredctl_proposals.ops.wal.local_batches import LocalActiveLog, LocalBatch, latest_epoch
from tieredctl_proposals.wal.leadership import joined_ranges, segments_beyond, uploaded_ranges
from tieredctl_proposals.wal.replayed import KnownWalSegment, WalPartition


@dataclass(frozen=True, slots=True)
class DueLog:
    """A log of which something may be due for upload."""

    log: LocalActiveLog
    leader: LeaderLog
    uploaded: Sequence[tuple[int, int]]
    """Offsets of its line of leaders that the store has or had, or remote storage has, inclusive."""
    kept: Sequence[RemoteLogSegmentMetadata]
    """All that the store has or had, without what is beyond."""
    beyond: Sequence[KnownWalSegment]
    """What earlier leaders uploaded, and this log does not have."""
    tiered: Sequence[tuple[int, int]] = ()
    """Offsets of its line of leaders that remote storage has (KIP-405), inclusive."""

    def batches(self) -> Iterator[LocalBatch]:
        """The batches that neither tier has. Streams."""
        base = self.leader.local_log_start_offset
        first = next((last + 1 for first, last in self.uploaded if first <= base <= last), base)
        for batch in self.log.batches(first):
            offsets = batch.header.base_offset, batch.header.last_offset
            if not any(first <= offsets[0] and offsets[1] <= last for first, last in self.uploaded):
                yield batch

    def has_between(self, earlier: LocalBatch, later: LocalBatch) -> bool:
        """Whether the store has something of what is between two batches."""
        return any(earlier.header.last_offset < first < later.header.base_offset for first, _ in self.uploaded)

    def gaps_beside(self, added: Sequence[tuple[int, int]]) -> list[Finding]:
        """Offsets that both tiers lack next to ranges which were added."""
        had = [(one.start_offset, one.end_offset) for one in self.kept]
        ranges = joined_ranges([*had, *self.tiered, *added])
        firsts, lasts = {first for first, _ in added}, {last for _, last in added}
        return [
            offset_gap(self.log.partition, last + 1, first - 1)
            for (_, last), (first, _) in pairwise(ranges)
            if first in firsts or last in lasts
        ]


def due_logs(
    events: KnownEvents, logs: Sequence[LocalActiveLog], findings: list[Finding], remote: RemoteSegments
) -> list[DueLog]:
    """The logs that something may be uploaded of; why not of the others, and what is wrong with any, are findings."""
    due, segments = [], dict[object, list[KnownWalSegment]]()
    for segment in events.segments():
        if segment.is_readable or segment.is_cleaned:
            segments.setdefault(segment.metadata.topic_id_partition, []).append(segment)
    for log in logs:
        one = _due_log(log, segments.get(log.partition, []), remote.get(log.partition, ()))
        findings += one.log.reading.findings
        refused = _refused(one, events.replayed.events.highest_epoch(log.partition))
        if refused is None:
            due.append(one)
        else:
            findings.append(refused)
    return due


def _due_log(log: LocalActiveLog, segments: Sequence[KnownWalSegment], remote: Sequence[KnownSegment]) -> DueLog:
    """What is due of a log, with its closed segments that follow what is uploaded without a gap."""
    in_wal, tiered = [one.metadata for one in segments], [one.metadata for one in remote]
    uploaded = uploaded_ranges([*in_wal, *tiered], log.reading.leader)
    if uploaded:
        log = log.back_to(uploaded[0][1] + 1)
    leader = log.reading.leader
    beyond = segments_beyond(WalPartition([one for one in segments if one.is_readable]), leader)
    gone = {one.segment_id for one in beyond}
    kept = [one for one in in_wal if one.segment_id not in gone]
    both, ranges = uploaded_ranges([*in_wal, *tiered], leader), uploaded_ranges(tiered, leader)
    return DueLog(log, leader, both, kept, beyond, ranges)


def _refused(one: DueLog, announced: int) -> Finding | None:
    """Why nothing of a log may be uploaded, where a leader of an epoch was the last to announce something."""
    own, doubt = latest_epoch(one.leader), one.log.reading.doubt
    if one.beyond:
        end = max(segment.metadata.end_offset for segment in one.beyond)
        if own < announced or any(_written_by(segment) >= own for segment in one.beyond):
            by = "this or a later leader"
            return _behind(one, end, f"{by} uploaded offsets up to {end} that it does not have")
        if doubt is not None:
            unsure = f"the store has offsets up to {end} that are not in it, and it may have lost them"
            return _behind(one, end, f"{unsure} ({doubt})")
    elif own < announced and next(one.batches(), None) is not None:
        end = max((segment.end_offset for segment in one.kept), default=-1)
        return _behind(one, end, f"leader epoch {announced} announced an upload, after which none of it is read")
    return None


def _written_by(segment: KnownWalSegment) -> int:
    return max(segment.leader_epoch, segment.metadata.segment_leader_epochs[-1][0])


def _behind(one: DueLog, uploaded: int, reason: str) -> Finding:
    partition, folder = one.log.partition, str(one.log.folder)
    message = f"it ends at offset {one.leader.end_offset} of leader epoch {latest_epoch(one.leader)}, and {reason}: "
    evidence = {
        **partition_document(partition),
        "file": folder,
        "logEndOffset": one.leader.end_offset,
        "uploadedEndOffset": uploaded + 1,
    }
    about = PartitionSubject(partition)
    return Finding(ProposalCode.WAL_LOG_BEHIND, folder, f"{message}nothing of it was added", evidence, about=about)
