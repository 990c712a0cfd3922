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

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.layouts.protocol import Layout
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog
from tieredctl.ops.documents import Document
from tieredctl.ops.recovery.judgement import Fate, JudgedSegment
from tieredctl.ops.recovery.rebuilding import read_lineage
from tieredctl.storage.protocol import ObjectStore


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
    """From the first stored offset to the leader's last epoch."""

    @property
    def is_at_local_start(self) -> bool:
        """Whether the log starts where the leader's disk does, as an empty metadata topic leaves it."""
        return self.log.log_start_offset == self.log.local_log_start_offset

    def document(self) -> Document:
        """What to put into a stopped broker's files."""
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
        evidence: dict[str, object] = {
            "topic": self.partition.topic,
            "topicId": self.partition.topic_id,
            "partition": self.partition.partition,
            "logStartOffset": self.log.log_start_offset,
            "localLogStartOffset": self.log.local_log_start_offset,
            "firstStoredOffset": self.first_stored_offset,
            "segments": self.segments,
        }
        return Finding("log-start-above-store", str(self.partition), message, evidence)


def moved_log_start(
    partition: TopicIdPartition, judged: Sequence[JudgedSegment], log: LeaderLog, store: ObjectStore, layout: Layout
) -> MovedLogStart | None:
    """None where the log starts at or below all that could be recovered. Raises TieredctlError as the store does."""
    below = [one for one in judged if one.fate is Fate.BELOW_LOG_START and one.metadata is not None]
    if not below:
        return None
    last = max(below, key=lambda one: (one.metadata.end_offset if one.metadata else -1, one.stored.stored_ms))
    try:
        before = read_lineage(last.stored, store, layout)
    except DecodeError:
        before = [EpochEntry(*pair) for pair in (last.metadata.segment_leader_epochs if last.metadata else ())]
    # Epochs are cut where the log starts: what lies before the first was deleted when this segment was copied.
    first = max(min(one.stored.identity.start_offset for one in below), before[0].start_offset if before else 0)
    return MovedLogStart(partition, len(below), first, log, _joined(before, log))


def _joined(before: Sequence[EpochEntry], log: LeaderLog) -> list[EpochEntry]:
    """The leader's epochs behind those of the store: an epoch that has both began where the store says."""
    known = {entry.epoch for entry in before}
    last = max(known, default=-1)
    behind = [EpochEntry(epoch, offset) for epoch, offset in log.leader_epochs if epoch > last]
    return [*before, *behind]
