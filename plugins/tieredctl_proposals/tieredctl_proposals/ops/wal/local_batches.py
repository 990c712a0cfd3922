"""What brokers' log directories have to be uploaded: the batches of each partition's active segment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT, SegmentPart, segment_file_name
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog, LocalReplica, LocalSegment
from tieredctl.ops.documents import partition_document
from tieredctl_proposals.model.finding_codes import ProposalCode

_PIECE_BYTES = 1 << 22
_MOST_OFFSETS = 1 << 31
"""The most offsets of a segment: its index has them relative to the first, in 32 bits."""


class LocalBatch(NamedTuple):
    """A sound batch, as it is in the log."""

    header: BatchHeader
    data: bytes


class _Stop(NamedTuple):
    """From where on, in bytes of which segment, nothing of a log is known, and why."""

    segment: LocalSegment
    position: int
    reason: str
    code: AnyFindingCode | None
    """None for an incomplete last batch: a broker truncates it when it starts."""


class LogReading(NamedTuple):
    """What a log was found to be."""

    leader: LeaderLog
    """As its leader would have it: up to the end of its last sound batch, with the leader epochs of its batches, and
    before and after them those of its checkpoint, if that can be read."""
    findings: tuple[Finding, ...]
    doubt: str | None
    """Why it may have had more than it has; None where it was read to its end, and its checkpoint agrees."""


@dataclass(frozen=True)
class LocalActiveLog:
    """One replica of a partition, as far as it is to be uploaded."""

    partition: TopicIdPartition
    folder: Path
    segments: Sequence[LocalSegment]
    """Oldest first; the last one is active."""
    closed: Sequence[LocalSegment] = ()
    """Those before them, which are not to be uploaded."""

    def back_to(self, offset: int) -> LocalActiveLog:
        """The same, with closed segments from the one that has an offset on."""
        everything = [*self.closed, *self.segments]
        first = sum(one.base_offset <= offset for one in everything[: len(self.closed) + 1])
        first = min(max(first - 1, 0), len(self.closed))
        return LocalActiveLog(self.partition, self.folder, everything[first:], everything[:first])

    def batches(self, from_offset: int) -> Iterator[LocalBatch]:
        """The log's batches that have offsets from `from_offset` on, up to the first damage. Streams.

        What comes after damage is not given: what lay between is not known. An incomplete last batch is left out, too.
        """
        for batch in self._until_damage(from_offset):
            if isinstance(batch, LocalBatch) and batch.header.last_offset >= from_offset:
                yield batch

    @cached_property
    def reading(self) -> LogReading:
        """Reads all of it once."""
        base = end = self.segments[0].base_offset
        epochs: dict[int, int] = {}
        stop = None
        for batch in self._until_damage(base):
            if isinstance(batch, LocalBatch):
                epochs.setdefault(batch.header.partition_leader_epoch, batch.header.base_offset)
                end = batch.header.last_offset + 1
            else:
                stop = batch
        if stop is None:
            end = max(end, self.segments[-1].base_offset)
        checkpoint = self._checkpoint()
        # Its entries between are of batches that are here; that of a leader which wrote nothing yet is at the end.
        from_checkpoint = {epoch: start for epoch, start in (checkpoint or {}).items() if start <= base or start >= end}
        leader = LeaderLog(base, base, end, tuple(sorted((epochs | from_checkpoint).items())))
        doubt = stop and f"byte {stop.position} of {_log_name(stop.segment)}: {stop.reason}"
        doubt = doubt or _disagreement(checkpoint, epochs, end)
        return LogReading(leader, tuple(self._findings(stop, checkpoint or {}, end)), doubt)

    def _findings(self, stop: _Stop | None, checkpoint: Mapping[int, int], end: int) -> Iterator[Finding]:
        if stop is not None and stop.code is not None:
            message = f"byte {stop.position}: {stop.reason}; nothing from there on was uploaded"
            yield self._finding(stop.code, stop.segment, stop.position, message)
        elif (last := max(checkpoint.values(), default=0)) > end:
            message = f"it ends at offset {end}, and its {LEADER_EPOCH_CHECKPOINT} has a leader from offset {last} on"
            active = self.segments[-1]
            yield self._finding(ProposalCode.WAL_LOG_DAMAGED, active, active.size, message)

    def _checkpoint(self) -> dict[int, int] | None:
        """The first offset of each leader epoch; None where that cannot be read."""
        try:
            return dict(read_leader_epoch_checkpoint((self.folder / LEADER_EPOCH_CHECKPOINT).read_bytes()))
        except (OSError, DecodeError):
            return None

    def _until_damage(self, from_offset: int) -> Iterator[LocalBatch | _Stop]:
        """The batches of the segments that have offsets from `from_offset` on, and what is wrong after the last."""
        epoch = 0
        for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True):
            if following is not None and following.base_offset <= from_offset:
                continue
            offset = segment.base_offset
            for positioned in self._of_segment(segment):
                if isinstance(positioned, _Stop):
                    yield positioned
                    return
                position, batch = positioned
                if reason := _misfit(batch.header, offset, epoch, _end_of(segment, following)):
                    yield _Stop(segment, position, reason, ProposalCode.WAL_LOG_DAMAGED)
                    return
                offset, epoch = batch.header.last_offset + 1, batch.header.partition_leader_epoch
                yield batch

    def _of_segment(self, segment: LocalSegment) -> Iterator[tuple[int, LocalBatch] | _Stop]:
        """Sound batches with their positions, until something else follows."""
        try:
            with (self.folder / _log_name(segment)).open("rb") as file:
                pieces = iter(lambda: file.read(_PIECE_BYTES), b"")
                for block in scan_log(pieces, segment.size, OneByOne(), segment.base_offset):
                    if isinstance(block, Damage):
                        is_torn = block.torn and segment is self.segments[-1]
                        code = None if is_torn else ProposalCode.WAL_LOG_DAMAGED
                        yield _Stop(segment, block.position, block.reason, code)
                        return
                    for position, header in zip(block.positions, block.headers, strict=True):
                        data = bytes(block.buffer[position : position + header.size])
                        yield block.file_position + position, LocalBatch(header, data)
        except OSError as error:
            yield _Stop(segment, 0, f"it cannot be read: {error.strerror}", FindingCode.UNREADABLE)

    def _finding(self, code: AnyFindingCode, segment: LocalSegment, position: int, message: str) -> Finding:
        path = str(self.folder / _log_name(segment))
        evidence = partition_document(self.partition) | {"file": path, "position": position}
        return Finding(code, path, message, evidence, about=PartitionSubject(self.partition))


def _log_name(segment: LocalSegment) -> str:
    return segment_file_name(segment.base_offset, SegmentPart.LOG)


def _end_of(segment: LocalSegment, following: LocalSegment | None) -> int:
    return segment.base_offset + _MOST_OFFSETS if following is None else following.base_offset


def _misfit(header: BatchHeader, offset: int, epoch: int, end: int) -> str | None:
    """Why a sound batch cannot come after another, which ends before `offset` and is of a leader epoch, in a segment
    that ends before `end`."""
    if header.base_offset < offset or header.last_offset < header.base_offset:
        return "a batch that does not follow the one before"
    if header.last_offset >= end:
        return "a batch with offsets after its segment"
    if header.partition_leader_epoch < 0:
        return "a batch without a leader epoch"
    if header.partition_leader_epoch < epoch:
        return "a batch of an earlier leader than the one before"
    return None


def _disagreement(checkpoint: Mapping[int, int] | None, epochs: Mapping[int, int], end: int) -> str | None:
    """Why a checkpoint does not fit the leader epochs of batches up to an offset. It may lack what is below the log
    start, and have leaders that wrote nothing."""
    if not epochs:
        return "it has no records"
    if checkpoint is None:
        return f"{LEADER_EPOCH_CHECKPOINT} cannot be read"
    starts = [checkpoint[epoch] for epoch in sorted(checkpoint)]
    if starts and starts[-1] > end:
        return f"{LEADER_EPOCH_CHECKPOINT} has a leader from offset {starts[-1]} on, the log ends at {end}"
    lowest, oldest = min(checkpoint, default=-1), min(epochs)
    for epoch, start in epochs.items():
        checkpointed = checkpoint.get(epoch)
        fits = epoch <= lowest or (
            checkpointed is not None and (checkpointed == start or (epoch == oldest and checkpointed < start))
        )
        if not fits:
            return f"{LEADER_EPOCH_CHECKPOINT} does not have leader epoch {epoch} from offset {start} on"
    if starts != sorted(starts):
        return f"{LEADER_EPOCH_CHECKPOINT} is not in order"
    return None


def local_active_logs(
    replicas: Iterable[LocalReplica], *, topics: Collection[str] = (), all_segments: bool = False
) -> list[LocalActiveLog]:
    """The replica of each partition that a leader would have: with the latest leader epoch, and of those the longest.

    Internal topics, whose names begin with two underscores, are left out unless named: Kafka cannot tier them.
    """
    chosen: dict[TopicIdPartition, list[LocalActiveLog]] = {}
    for replica in replicas:
        name = replica.partition.topic
        if name not in topics and (topics or name.startswith("__")):
            continue
        if replica.segments:
            active = 0 if all_segments else len(replica.segments) - 1
            segments, closed = replica.segments[active:], replica.segments[:active]
            log = LocalActiveLog(replica.partition, Path(replica.folder), segments, closed)
            chosen.setdefault(replica.partition, []).append(log)
    return [
        logs[0] if len(logs) == 1 else max(logs, key=_latest_and_longest)
        for _, logs in sorted(chosen.items(), key=lambda one: (one[0].topic, one[0].topic_id, one[0].partition))
    ]


def _latest_and_longest(log: LocalActiveLog) -> tuple[int, int]:
    leader = log.reading.leader
    return latest_epoch(leader), leader.end_offset


def latest_epoch(leader: LeaderLog) -> int:
    """The epoch of a log's leader; -1 where there was none."""
    return max((epoch for epoch, _ in leader.leader_epochs), default=-1)
