"""What brokers' log directories have to be uploaded: the batches of each partition's active segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT, SegmentPart, segment_file_name
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog
from tieredctl.model.local_replica import LocalReplica, LocalSegment

_PIECE_BYTES = 1 << 22


class LocalBatch(NamedTuple):
    """A sound batch, as it is in the log."""

    header: BatchHeader
    data: bytes


@dataclass(frozen=True, slots=True)
class LocalActiveLog:
    """One replica of a partition, as far as it is to be uploaded."""

    partition: TopicIdPartition
    folder: Path
    segments: Sequence[LocalSegment]
    """Oldest first; the last one is active."""

    def batches(self, from_offset: int, findings: list[Finding]) -> Iterator[LocalBatch]:
        """Its batches that have offsets from `from_offset` on. Streams.

        An incomplete last batch is left out: a broker truncates it when it starts. Other damage is a finding, and no
        batch after it is given: what lay between is not known.
        """
        for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True):
            if following is not None and following.base_offset <= from_offset:
                continue
            for found in self._of_segment(segment):
                if isinstance(found, LocalBatch):
                    if found.header.last_offset >= from_offset:
                        yield found
                elif not (found.torn and following is None):
                    findings.append(self._damaged(segment, found))
                    return

    def leader_log(self) -> LeaderLog:
        """The log as its leader would have it: up to the end of its last sound batch, with the leader epochs of its
        batches, and before them those of its checkpoint, if that can be read."""
        base = end = self.segments[0].base_offset if self.segments else 0
        epochs: dict[int, int] = {}
        for batch in self.batches(base, []):
            epochs.setdefault(batch.header.partition_leader_epoch, batch.header.base_offset)
            end = batch.header.last_offset + 1
        # Its entries between are of batches that are here; that of a leader which wrote nothing yet is at the end.
        known = {epoch: start for epoch, start in self._checkpoint() if start <= base or start >= end}
        starts = tuple(sorted((epochs | known).items()))
        return LeaderLog(base, base, end, starts)

    def _checkpoint(self) -> list[EpochEntry]:
        try:
            return read_leader_epoch_checkpoint((self.folder / LEADER_EPOCH_CHECKPOINT).read_bytes())
        except (OSError, DecodeError):
            return []

    def _of_segment(self, segment: LocalSegment) -> Iterator[LocalBatch | Damage]:
        path = self.folder / segment_file_name(segment.base_offset, SegmentPart.LOG)
        try:
            with path.open("rb") as file:
                pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
                for block in scan_log(pieces, segment.size, OneByOne(), segment.base_offset):
                    if isinstance(block, Damage):
                        yield block
                        continue
                    for position, header in zip(block.positions, block.headers, strict=True):
                        yield LocalBatch(header, bytes(block.buffer[position : position + header.size]))
        except OSError as error:
            raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.") from None

    def _damaged(self, segment: LocalSegment, damage: Damage) -> Finding:
        path = self.folder / segment_file_name(segment.base_offset, SegmentPart.LOG)
        message = f"byte {damage.position}: {damage.reason}; nothing from there on was uploaded"
        evidence = {
            "topic": self.partition.topic,
            "topicId": self.partition.topic_id,
            "partition": self.partition.partition,
            "file": str(path),
            "position": damage.position,
        }
        return Finding(
            FindingCode.WAL_LOG_DAMAGED, str(path), message, evidence, about=PartitionSubject(self.partition)
        )


def local_active_logs(
    replicas: Iterable[LocalReplica], *, topic: str | None = None, all_segments: bool = False
) -> list[LocalActiveLog]:
    """For each partition, the replica that a leader would have: with the latest leader epoch, and of those the longest.

    Internal topics, whose names begin with two underscores, are left out unless named: Kafka cannot tier them.
    """
    chosen: dict[TopicIdPartition, list[LocalActiveLog]] = {}
    for replica in replicas:
        name = replica.partition.topic
        if name != topic and (topic is not None or name.startswith("__")):
            continue
        segments = replica.segments if all_segments else replica.segments[-1:]
        log = LocalActiveLog(replica.partition, Path(replica.folder), segments)
        if segments:
            chosen.setdefault(replica.partition, []).append(log)
    return [
        logs[0] if len(logs) == 1 else max(logs, key=_latest_and_longest)
        for _, logs in sorted(chosen.items(), key=lambda one: (one[0].topic, one[0].topic_id, one[0].partition))
    ]


def _latest_and_longest(log: LocalActiveLog) -> tuple[int, int]:
    leader = log.leader_log()
    return latest_epoch(leader), leader.end_offset


def latest_epoch(leader: LeaderLog) -> int:
    """That of its leader; -1 where there was none."""
    return max((epoch for epoch, _ in leader.leader_epochs), default=-1)
