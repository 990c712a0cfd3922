"""A leader whose log starts above what the store has.

A leader that finds nothing in the metadata moves its log start to its first local offset, and cuts its leader epochs
there (RemoteLogManager.findLogStartOffset, UnifiedLog.maybeIncrementLogStartOffset). It never moves it back. Told of
the segments below afterwards, it deletes their objects: they lie before the log start. So these are not recovered
while the log starts above them. DeleteRecords and retention move it too, and what they leave for a moment looks the
same: only who runs the cluster can say which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata_recovery.event_rebuilding import read_lineage
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment
from tieredctl.rlmm.remote_retention import is_within_leader_epochs
from tieredctl.storage.protocol import ObjectStore

_LINEAGE_NOT_READ = (ErrorCode.PRIVATE_KEY, ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE)


@dataclass(frozen=True, slots=True)
class MovedLogStart:
    """What the log start was at most, and the leader epochs from there on."""

    partition: TopicIdPartition
    segments: int
    """That lie below the log start, and could be recovered but for it."""
    first_stored_offset: int
    """The lowest offset of these."""
    log: LeaderLog
    leader_epochs: Sequence[EpochEntry]
    """From the first stored offset to the leader's last epoch; empty where they are not known."""
    unknown_because: str | None = None
    """Why not."""

    @property
    def is_at_local_start(self) -> bool:
        """Whether the log starts where the leader's disk does, as an empty metadata topic leaves it."""
        return self.log.log_start_offset == self.log.local_log_start_offset

    def document(self) -> Document | None:
        """What to put into a stopped broker's files. None without the leader epochs: with a log start alone, or with
        epochs that are not the log's, brokers would delete segments that belong to it."""
        if self.unknown_because is not None:
            return None
        return {
            "logStartOffset": self.first_stored_offset,
            "leaderEpochCheckpoint": encode_leader_epoch_checkpoint(self.leader_epochs).decode("ascii"),
        }

    def finding(self) -> Finding:
        """Says where the log starts, and what that looks like."""
        looks = (
            "as a leader leaves it that started with an empty metadata topic"
            if self.is_at_local_start
            else "as DeleteRecords and retention leave it"
        )
        message = (
            f"the log starts at {self.log.log_start_offset}, {looks}; {self.segments} segments from offset "
            f"{self.first_stored_offset} on lie below, and brokers would delete them"
        )
        if self.unknown_because is not None:
            message = f"{message}; how to put it back is not known: {self.unknown_because}"
        evidence: dict[str, object] = {
            "topic": self.partition.topic,
            "topicId": self.partition.topic_id,
            "partition": self.partition.partition,
            "logStartOffset": self.log.log_start_offset,
            "localLogStartOffset": self.log.local_log_start_offset,
            "firstStoredOffset": self.first_stored_offset,
            "segments": self.segments,
        }
        return Finding(FindingCode.LOG_START_ABOVE_STORE, str(self.partition), message, evidence)


def moved_log_start(
    partition: TopicIdPartition, judged: Sequence[JudgedSegment], log: LeaderLog, store: ObjectStore, layout: Layout
) -> MovedLogStart | None:
    """None where the log starts at or below all that could be recovered. Raises TieredctlError as the store does."""
    below = [(one, one.metadata) for one in judged if one.fate is Fate.BELOW_LOG_START and one.metadata is not None]
    if not below:
        return None
    first = min(metadata.start_offset for _, metadata in below)
    try:
        before = _lineage([pair for pair in below if _may_be_of(pair[1], log)], store, layout)
    except _Unknown as unknown:
        return MovedLogStart(partition, len(below), first, log, (), str(unknown))
    # Epochs are cut where the log starts: what lies before the first was deleted when this segment was copied.
    return MovedLogStart(partition, len(below), max(first, before[0].start_offset), log, _joined(before, log))


class _Unknown(Exception):
    """The leader epochs of what is stored are not known. The text says why."""


def _lineage(
    segments: Sequence[tuple[JudgedSegment, RemoteLogSegmentMetadata]], store: ObjectStore, layout: Layout
) -> list[EpochEntry]:
    """The leader epochs up to the last of these segments. A later leader's counts, though an earlier one's reaches
    further: what it had not replicated was given up."""
    if not segments:
        raise _Unknown("the leader's epochs contradict all of them")
    last, _ = max(segments, key=_rank)
    try:
        lineage = read_lineage(last.stored, store, layout)
    except TieredctlError as error:
        if error.code in _LINEAGE_NOT_READ:
            raise _Unknown(error.message) from None
        raise
    for _, metadata in segments:
        if _contradicts(metadata, lineage):
            raise _Unknown(
                f"the leader-epoch checkpoint of segment {last.stored.identity.segment_id} contradicts "
                f"segment {metadata.segment_id}"
            )
    return lineage


def _contradicts(metadata: RemoteLogSegmentMetadata, lineage: Sequence[EpochEntry]) -> bool:
    """Whether an epoch that both have began elsewhere. The first epoch of either may have begun before."""
    starts = {entry.epoch: entry.start_offset for entry in lineage}
    first, *others = metadata.segment_leader_epochs
    if lineage[0].start_offset <= metadata.start_offset < starts.get(first[0], 0):
        return True
    return any(starts.get(epoch, offset) != offset for epoch, offset in others if epoch != lineage[0].epoch)


def _rank(segment: tuple[JudgedSegment, RemoteLogSegmentMetadata]) -> tuple[int, int, int]:
    judged, metadata = segment
    return metadata.segment_leader_epochs[-1][0], metadata.end_offset, judged.stored.stored_ms


def _may_be_of(metadata: RemoteLogSegmentMetadata, log: LeaderLog) -> bool:
    """Whether a segment that lies below the log start may be of its log, by the leader's epochs from there on."""
    if not log.leader_epochs:
        return True
    first_epoch, first_offset = log.leader_epochs[0]
    if metadata.segment_leader_epochs[-1][0] < first_epoch:
        return metadata.end_offset < first_offset
    return is_within_leader_epochs(metadata, log.end_offset, dict(log.leader_epochs))


def _joined(before: Sequence[EpochEntry], log: LeaderLog) -> list[EpochEntry]:
    """The leader's epochs behind those of the store: an epoch that has both began where the store says."""
    known = {entry.epoch for entry in before}
    last = max(known, default=-1)
    behind = [EpochEntry(epoch, offset) for epoch, offset in log.leader_epochs if epoch > last]
    return [*before, *behind]
