"""Where each partition's log goes on after a restore: what is in remote storage is its past, and the rest is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog, epochs_from
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.documents import partition_document
from tieredctl.ops.metadata_recovery.event_rebuilding import Unfit, epochs_within, read_lineage
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.recovery_plan import PartitionRecovery, Recovery, RecoveryPlanner
from tieredctl.ops.metadata_recovery.restored_log_start import demand_ascending
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment, placed
from tieredctl.ops.verification.object_check import size_findings
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import DeletedOffsets
from tieredctl.rlmm.remote_retention import is_within_leader_epochs

_NEEDED = (Part.LOG, Part.MANIFEST)
"""Parts without which nothing of a segment can be read."""
_LINEAGE_UNREADABLE = (ErrorCode.UNDECODABLE, ErrorCode.OBJECT_MISSING, ErrorCode.PRIVATE_KEY)


class Origin(StrEnum):
    """What says where a log goes on."""

    SEGMENTS = "segments"
    """The last segment in remote storage."""
    BACKUP = "backup"
    """Where it ended when the set was made: nothing of it is in remote storage."""
    GIVEN = "begin-at"
    """The user."""
    INTERNAL = "internal"
    """It is Kafka's own topic, and begins again."""
    UNKNOWN = "unknown"
    """Nothing: it cannot be restored."""


class LogEnds(NamedTuple):
    """Where a log began and ended, exclusive, when the set was made."""

    earliest: int
    latest: int

    @classmethod
    def known(cls, listed: LogEnds | None, promised: Sequence[RemoteLogSegmentMetadata]) -> LogEnds | None:
        """Where a log is known to begin and end, by what the cluster said, and by the segments that the set's events
        promise; None by neither."""
        if not promised:
            return listed
        end = max(one.end_offset for one in promised) + 1
        if listed is None:
            return cls(min(one.start_offset for one in promised), end)
        return cls(listed.earliest, max(listed.latest, end))

    @classmethod
    def seen(cls, known: LogEnds | None, offsets: Sequence[int]) -> LogEnds | None:
        """By what is known, and by offsets that records had; None by neither."""
        if not offsets:
            return known
        if known is None:
            return cls(min(offsets), max(offsets) + 1)
        return cls(known.earliest, max(known.latest, max(offsets) + 1))


@dataclass(frozen=True, slots=True)
class RestoredLogRow(ResultRow):
    """A partition of the plan; `lost` are the known ranges of lost offsets, [first, last], inclusive."""

    topic: str
    topic_id: Wide[str]
    partition: int
    origin: str
    log_start_offset: Annotated[int | None, Column("LOG-START")]
    next_offset: Annotated[int | None, Column("NEXT")]
    segments: int
    recovered: int
    bytes: Size[int]
    lost: list[list[int]]
    leader_epochs: JsonOnly[list[list[int]]]


class IncompleteSegment(NamedTuple):
    """A segment that comes back with its log, and without another object that is promised."""

    metadata: RemoteLogSegmentMetadata
    lacks: Sequence[Part]

    def finding(self) -> Finding:
        """Brokers read its log by its indexes, and followers begin by its leader epochs and producer snapshot."""
        one, named = self.metadata, self.metadata.topic_id_partition
        parts = [part.value for part in self.lacks]
        evidence = partition_document(named) | {
            "segmentId": one.segment_id,
            "startOffset": one.start_offset,
            "parts": parts,
        }
        message = f"it comes back without its {', '.join(parts)}, which brokers need to serve it or to begin after it"
        about = SegmentSubject(named, (one.start_offset, one.end_offset), one.segment_id, parts[0])
        subject = f"{named.topic}-{named.partition} {one.segment_id}"
        return Finding(FindingCode.OBJECT_MISSING, subject, message, evidence, about=about)


@dataclass(frozen=True, slots=True)
class RestoredLog:
    """A partition's log as it will begin: empty, at `next_offset`. All offsets below are in remote storage, or lost."""

    partition: TopicIdPartition
    origin: Origin
    log_start_offset: int = 0
    next_offset: int = 0
    leader_epochs: Sequence[EpochEntry] = ()
    """Up to the next offset; empty where nothing is in remote storage."""
    segments: int = 0
    """In remote storage, of the leaders' lineage."""
    recovered: int = 0
    """How many of these the set does not know: they were copied later."""
    bytes: int = 0
    lost: Sequence[tuple[int, int]] = ()
    promised: int = 0
    """Segments that the set's events promise, where the store has none of the partition."""
    incomplete: Sequence[IncompleteSegment] = ()
    misfits: Sequence[Finding] = ()
    """Objects that do not have the sizes that the set's events promise."""

    def findings(self) -> Iterator[Finding]:
        """What is promised and the store does not have: all segments, the first, or objects of some, whole."""
        yield from (one.finding() for one in self.incomplete)
        yield from self.misfits
        if self.promised:
            message = f"the store has none of the {counted(self.promised, 'segment')} that the set promises"
            yield self._lacking(message, None)
        elif self.origin is Origin.SEGMENTS and self.lost and self.lost[0][0] == self.log_start_offset:
            first, last = self.lost[0]
            message = f"offsets {first} to {last}, with which the log began, are in no segment of the store"
            yield self._lacking(message, [first, last])

    def _lacking(self, message: str, offsets: list[int] | None) -> Finding:
        evidence = partition_document(self.partition) | {"offsets": offsets}
        return Finding(FindingCode.OFFSET_GAP, str(self.partition), message, evidence, Severity.WARNING)

    def row(self) -> RestoredLogRow:
        """As a result shows it."""
        is_known = self.origin is not Origin.UNKNOWN
        return RestoredLogRow(
            *(*self.partition.names, self.origin),
            self.log_start_offset if is_known else None,
            self.next_offset if is_known else None,
            *(self.segments, self.recovered, self.bytes, [list(one) for one in self.lost]),
            [list(one) for one in self.leader_epochs],
        )


def log_without_segments(
    partition: TopicIdPartition, ends: LogEnds | None, given: int | None, promised: int
) -> RestoredLog:
    """The log of a partition of which remote storage has nothing: never at 0 where its end is not known, and nowhere
    where the set promises segments, unless the user says so: they may be in another store, and brokers delete what is
    below a log's start."""
    if given is not None:
        return RestoredLog(partition, Origin.GIVEN, given, given, lost=_lost_before(ends, given), promised=promised)
    if ends is None or promised:
        return RestoredLog(partition, Origin.UNKNOWN, promised=promised)
    return RestoredLog(partition, Origin.BACKUP, ends.latest, ends.latest, lost=_lost_before(ends, ends.latest))


def _lost_before(ends: LogEnds | None, end: int) -> list[tuple[int, int]]:
    return [(ends.earliest, end - 1)] if ends is not None and ends.earliest < end else []


@dataclass(frozen=True, slots=True)
class LogsInStore:
    """Makes logs of what a store has."""

    store: ObjectStore
    layout: Layout

    def log(self, recovery: PartitionRecovery, deleted: DeletedOffsets, ends: LogEnds | None) -> RestoredLog | None:
        """The log whose past is in the store; None where nothing of it is there. Raises TieredctlError as the store
        does."""
        present = [one for one in recovery.segments if self._is_present(one)]
        if not present:
            return None
        last = max(present, key=lambda one: _epoch_and_end(_metadata(one)))
        next_offset = _metadata(last).end_offset + 1
        lineage = self._lineage(last, list(map(_metadata, present)))
        epochs = dict(lineage)
        line = [one for one in present if is_within_leader_epochs(_metadata(one), next_offset, epochs)]
        if ends is None:
            line = [one for one in line if _metadata(one).end_offset >= lineage[0].start_offset]
        start = min(_metadata(one).start_offset for one in line or [last])
        if ends is None:
            # epochs are cut at the log start, and brokers find no record below the first (LeaderEpochFileCache)
            start = max(start, lineage[0].start_offset)
        else:
            # a log that began above what is lost would have brokers delete the rest of its first segments' metadata
            lacking = next(deleted.not_among(ends.earliest, start - 1), None)
            start = max(start, min(ends.earliest, next_offset)) if lacking is None else lacking[0]
        unusable = [one for one in unusable_offsets(recovery) if ends or one >= lineage[0].start_offset]
        return RestoredLog(
            recovery.partition,
            Origin.SEGMENTS,
            start,
            next_offset,
            tuple(EpochEntry(*one) for one in epochs_from(lineage, start)),
            len(line),
            sum(one.fate is Fate.RECOVER for one in line),
            sum(_metadata(one).segment_size_in_bytes for one in line),
            tuple(_lost(list(map(_metadata, line)), start, next_offset, deleted, LogEnds.seen(ends, unusable))),
            incomplete=tuple(
                IncompleteSegment(_metadata(one), lacks) for one in line if (lacks := one.stored.missing(self.layout))
            ),
            misfits=tuple(finding for one in line for finding in self._misfits(one)),
        )

    def _misfits(self, segment: JudgedSegment) -> list[Finding]:
        """By the objects' own descriptions where the listing's do not fit. One that the set does not know has the sizes
        that the store has."""
        metadata, objects = _metadata(segment), segment.stored.objects
        if segment.fate is not Fate.IN_METADATA or not size_findings(metadata, objects, self.layout):
            return []
        described = {part: self.store.head(stored.key) or stored for part, stored in objects.items()}
        return size_findings(metadata, described, self.layout)

    def _is_present(self, segment: JudgedSegment) -> bool:
        if segment.fate not in (Fate.RECOVER, Fate.IN_METADATA) or segment.metadata is None:
            return False
        return not any(part in _NEEDED for part in segment.stored.missing(self.layout))

    def _lineage(self, last: JudgedSegment, segments: Sequence[RemoteLogSegmentMetadata]) -> Sequence[EpochEntry]:
        """The leader epochs up to the end of the last segment, by the checkpoint that was copied with it; by the
        metadata of all segments where that cannot be read, or contradicts the last one's."""
        entries = self._copied_lineage(last, self.store) or self._copied_lineage(last, self.store.reconnected())
        return entries or _joined(sorted(segments, key=_epoch_and_end))

    def _copied_lineage(self, last: JudgedSegment, store: ObjectStore) -> list[EpochEntry]:
        """By the checkpoint that was copied with a segment; empty where that cannot be read, or contradicts it, as also
        bytes do that were altered on the way."""
        metadata = _metadata(last)
        try:
            entries = read_lineage(last.stored, store, self.layout)
            demand_ascending(entries)
            if epochs_within(entries, metadata.start_offset, metadata.end_offset) == metadata.segment_leader_epochs:
                return [one for one in entries if one.start_offset <= metadata.end_offset]
        except (DecodeError, Unfit, ValueError):
            pass
        except TieredctlError as error:
            if error.code not in _LINEAGE_UNREADABLE:
                raise
        return []


def not_below_logs(findings: Iterable[Finding], logs: Mapping[TopicIdPartition, RestoredLog]) -> Iterator[Finding]:
    """The findings without gaps below the start of their partition's log, as the set has it: nobody reads there."""
    for finding in findings:
        about = finding.about
        if finding.code is FindingCode.OFFSET_GAP and isinstance(about, PartitionSubject) and about.offsets is not None:
            log = logs.get(about.partition)
            if log is not None and log.origin is Origin.SEGMENTS and about.offsets[1] < log.log_start_offset:
                continue
        yield finding


def unusable_offsets(recovery: PartitionRecovery) -> list[int]:
    """Where those segments begin that the store has, and that cannot be used: records had these offsets."""
    unusable = (one for one in recovery.segments if one.fate in (Fate.DAMAGED, Fate.PARTIAL))
    return [one.stored.identity.start_offset for one in unusable]


def placed_in_log(recovery: PartitionRecovery, log: RestoredLog, planner: RecoveryPlanner) -> PartitionRecovery:
    """The recovery without segments that the restored log's leader would delete, or ignore: they stay in the store, in
    no metadata. Raises TieredctlError as the store does."""
    epochs = [(one.epoch, one.start_offset) for one in log.leader_epochs]
    leader = LeaderLog(log.log_start_offset, log.next_offset, log.next_offset, epochs)
    live = LivePartition(leader, recovery.partition.topic_id)
    return planner.settled(recovery.partition, placed(recovery.segments, leader), live, recovery.promised)


def _epoch_and_end(metadata: RemoteLogSegmentMetadata) -> tuple[int, int]:
    return metadata.segment_leader_epochs[-1][0], metadata.end_offset


def _metadata(segment: JudgedSegment) -> RemoteLogSegmentMetadata:
    assert segment.metadata is not None
    return segment.metadata


def _joined(segments: Iterable[RemoteLogSegmentMetadata]) -> Sequence[EpochEntry]:
    """The epochs of segments, as LeaderEpochFileCache.assign joins them: a later leader's take the place of those that
    its log no longer had."""
    entries: list[EpochEntry] = []
    for metadata in segments:
        for epoch, offset in metadata.segment_leader_epochs:
            if entries and epoch <= entries[-1].epoch:
                continue
            while entries and entries[-1].start_offset >= offset:
                entries.pop()
            entries.append(EpochEntry(epoch, offset))
    return entries


def _lost(
    segments: Sequence[RemoteLogSegmentMetadata],
    start: int,
    next_offset: int,
    deleted: DeletedOffsets,
    ends: LogEnds | None,
) -> Iterator[tuple[int, int]]:
    """The offsets before and between segments that nothing deleted, and those after them that were on disks alone when
    the set was made, or are in segments that cannot be used."""
    if ends is not None and ends.earliest < start:
        yield from deleted.not_among(ends.earliest, start - 1)
    covered = start - 1
    for one in sorted(segments, key=lambda segment: segment.start_offset):
        if one.start_offset > covered + 1:
            yield from deleted.not_among(covered + 1, one.start_offset - 1)
        covered = max(covered, one.end_offset)
    if ends is not None and ends.latest > next_offset:
        yield next_offset, ends.latest - 1


def left_in_store(recovery: PartitionRecovery) -> list[Finding]:
    """What is said of a partition that the restored cluster has not, made after the set: its segments stay as they
    are."""
    partition, count = recovery.partition, len(recovery.to_recover())
    if not count:
        return []
    message = f"{counted(count, 'segment is', 'segments are')} not restored: the restored cluster has no such partition"
    return [Finding(FindingCode.TOPIC_NOT_IN_CLUSTER, str(partition), message, partition_document(partition))]


def without_known(recovery: PartitionRecovery) -> PartitionRecovery:
    """The recovery without the segments that the events have already: they may be very many."""
    return replace(recovery, segments=[one for one in recovery.segments if one.fate is not Fate.IN_METADATA])


def demand_beyond_stored(recovery: Recovery, logs: Mapping[TopicIdPartition, RestoredLog]) -> None:
    """Raises TieredctlError `usage` where the user has a log begin at or below a segment of it that the store has,
    though none can be used: its offsets were given to records."""
    for one in recovery.partitions:
        log = logs[one.partition]
        last = max((segment.stored.identity.start_offset for segment in one.segments), default=-1)
        if log.origin is Origin.GIVEN and log.next_offset <= last:
            place = f"{one.partition.topic}:{one.partition.partition}"
            message = f"--begin-at {place}={log.next_offset}: the store has a segment of it that begins at {last}."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give an offset beyond every one that it had.")


def demand_beyond_known(
    beginnings: Mapping[tuple[str, int], int], ends: Mapping[TopicIdPartition, LogEnds | None]
) -> None:
    """Raises TieredctlError `usage` where the user has a log begin below where it ended, as far as that is known."""
    for partition, known in ends.items():
        given = beginnings.get((partition.topic, partition.partition))
        if given is not None and known is not None and given < known.latest:
            place = f"{partition.topic}:{partition.partition}"
            message = f"--begin-at {place}={given}: records had offsets up to {known.latest - 1} when the set was made."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give an offset beyond every one that it had.")


def demand_taken(beginnings: Mapping[tuple[str, int], int], logs: Iterable[RestoredLog]) -> None:
    """Raises TieredctlError `usage` where the user has a log begin somewhere that begins by something else."""
    for log in logs:
        place = f"{log.partition.topic}:{log.partition.partition}"
        given = beginnings.get((log.partition.topic, log.partition.partition))
        if given is None or log.origin is Origin.GIVEN:
            continue
        why = f"its log goes on at {log.next_offset}, after the last segment in the store"
        if log.origin is Origin.INTERNAL:
            why = "Kafka's own topics begin again at 0"
        message = f"--begin-at {place}={given}: {why}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Leave it out: it is for logs of which nothing is known.")


def unknown_logs(logs: Mapping[TopicIdPartition, RestoredLog]) -> list[TopicIdPartition]:
    """The partitions whose logs cannot begin, since nothing says where."""
    return [one.partition for one in logs.values() if one.origin is Origin.UNKNOWN]
