"""A leader whose log starts above what the store has.

A leader that finds nothing in the metadata moves its log start to its first local offset, and truncates its leader
epochs there (RemoteLogManager.findLogStartOffset, UnifiedLog.maybeIncrementLogStartOffset). It never moves it back. If
the segments below were registered afterwards, it would delete their objects, since they lie before the log start. So
they are not recovered while the log starts above them. DeleteRecords and retention move it too, and for a moment leave
the same picture: only the operator knows which it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata_recovery.event_rebuilding import read_lineage
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.remote_retention import is_within_leader_epochs

_LINEAGE_NOT_READ = (ErrorCode.PRIVATE_KEY, ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE)


@dataclass(frozen=True, slots=True)
class MovedLogStart:
    """The highest possible former log start, and the leader epochs from there on."""

    partition: TopicIdPartition
    segments: int
    """Segments below the log start that could be recovered otherwise."""
    first_stored_offset: int
    """Their lowest offset."""
    log: LeaderLog
    leader_epochs: Sequence[EpochEntry]
    """From the first stored offset to the leader's last epoch; empty if they are not known."""
    unknown_because: str | None = None
    """Why the leader epochs are not known."""

    @property
    def is_at_local_start(self) -> bool:
        """Whether the log starts at its first local offset, as after a start with an empty metadata topic."""
        return self.log.log_start_offset == self.log.local_log_start_offset

    def document(self) -> Document | None:
        """What to write into a stopped broker's files. None without the leader epochs: with only a log start, or with
        epochs that are not the log's, brokers would delete segments that belong to it."""
        if self.unknown_because is not None:
            return None
        return {
            "logStartOffset": self.first_stored_offset,
            "leaderEpochCheckpoint": encode_leader_epoch_checkpoint(self.leader_epochs).decode("ascii"),
        }

    def finding(self) -> Finding:
        """Where the log starts, and what may have moved it."""
        looks = (
            "as after a leader started with an empty metadata topic"
            if self.is_at_local_start
            else "as after DeleteRecords or retention"
        )
        message = (
            f"the log starts at {self.log.log_start_offset}, {looks}; "
            f"{counted(self.segments, 'segment')} from offset {self.first_stored_offset} on "
            f"{'lies' if self.segments == 1 else 'lie'} below, and brokers would delete "
            f"{'it' if self.segments == 1 else 'them'}"
        )
        if self.unknown_because is not None:
            message = f"{message}; how to restore the log start is not known: {self.unknown_because}"
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
    """The log start that brokers moved; None if the log starts at or below all that could be recovered. Raises
    TieredctlError as the store does."""
    below = [(one, one.metadata) for one in judged if one.fate is Fate.BELOW_LOG_START and one.metadata is not None]
    if not below:
        return None
    first = min(metadata.start_offset for _, metadata in below)
    try:
        before = _lineage([pair for pair in below if _may_be_of(pair[1], log)], store, layout)
    except _Unknown as unknown:
        return MovedLogStart(partition, len(below), first, log, (), str(unknown))
    # Epochs are truncated at the log start: earlier ones were deleted when this segment was copied.
    return MovedLogStart(partition, len(below), max(first, before[0].start_offset), log, _joined(before, log))


class _Unknown(Exception):
    """The leader epochs of what is stored are not known. The text says why."""


def _lineage(
    segments: Sequence[tuple[JudgedSegment, RemoteLogSegmentMetadata]], store: ObjectStore, layout: Layout
) -> list[EpochEntry]:
    """The leader epochs up to the last of these segments. A later leader's segment counts even if an earlier one's
    reaches further: what that one had not replicated was truncated."""
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
    """Whether an epoch that both have begins elsewhere. The first epoch of either may have begun earlier."""
    starts = {entry.epoch: entry.start_offset for entry in lineage}
    first, *others = metadata.segment_leader_epochs
    if lineage[0].start_offset <= metadata.start_offset < starts.get(first[0], 0):
        return True
    return any(starts.get(epoch, offset) != offset for epoch, offset in others if epoch != lineage[0].epoch)


def _rank(segment: tuple[JudgedSegment, RemoteLogSegmentMetadata]) -> tuple[int, int, int]:
    judged, metadata = segment
    return metadata.segment_leader_epochs[-1][0], metadata.end_offset, judged.stored.stored_ms


def _may_be_of(metadata: RemoteLogSegmentMetadata, log: LeaderLog) -> bool:
    """Whether a segment below the log start may belong to the log, by the leader's epochs from there on."""
    if not log.leader_epochs:
        return True
    first_epoch, first_offset = log.leader_epochs[0]
    if metadata.segment_leader_epochs[-1][0] < first_epoch:
        return metadata.end_offset < first_offset
    return is_within_leader_epochs(metadata, log.end_offset, dict(log.leader_epochs))


def _joined(before: Sequence[EpochEntry], log: LeaderLog) -> list[EpochEntry]:
    """The store's epochs, then the leader's later ones: an epoch that both have begins where the store says."""
    stored_epochs = {entry.epoch for entry in before}
    last = max(stored_epochs, default=-1)
    after = [EpochEntry(epoch, offset) for epoch, offset in log.leader_epochs if epoch > last]
    return [*before, *after]
