"""What to recover of each partition, what is left out and why, and which offsets stay lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.second_look import are_in_doubt, confirmed
from tieredctl.ops.metadata_recovery.earlier_recoveries import EarlierRecoveries, PromisedSegment
from tieredctl.ops.metadata_recovery.event_rebuilding import StoredSegment, StoreListing
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.moved_log_start import MovedLogStart, moved_log_start
from tieredctl.ops.metadata_recovery.recovery_findings import coverage_findings, segment_findings
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment, SegmentJudge, fates
from tieredctl.ops.metadata_recovery.unlisted_objects import with_unlisted
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.process.progress import note
from tieredctl.rlmm.partitioner import DEFAULT_METADATA_PARTITIONS, metadata_partition

StoredPartitions = Sequence[tuple[TopicIdPartition, Sequence[StoredSegment]]]


@dataclass(frozen=True, slots=True)
class PartitionRecoveryRow(ResultRow):
    """The plan for one partition, as a result shows it."""

    topic: str
    topic_id: Wide[str]
    partition: int
    metadata_partition: Wide[int]
    segments: int
    in_metadata: int
    to_recover: int
    to_take_back: JsonOnly[int]
    bytes: Size[int]
    left_out: Mapping[str, int]
    log_start_offset: Annotated[int | None, Column("LOG-START")]
    local_log_start_offset: Annotated[int | None, Column("LOCAL-START")]
    restore: JsonOnly[Document | None]


@dataclass(frozen=True, slots=True)
class PartitionRecovery:
    """The plan for one partition."""

    partition: TopicIdPartition
    metadata_partition: int
    segments: Sequence[JudgedSegment]
    """All that the store has, by start offset."""
    live: LivePartition | None = None
    moved: MovedLogStart | None = None
    """Set if the leader's log starts above segments that the store has."""
    findings: Sequence[Finding] = ()
    promised: Sequence[PromisedSegment] = ()
    """What an earlier recovery registered, and the store lacks."""

    @property
    def to_take_back(self) -> list[PromisedSegment]:
        """What of that brokers had deleted before."""
        return [one for one in self.promised if one.is_to_be_taken_back]

    def to_recover(self) -> list[JudgedSegment]:
        """In the order in which they were stored, then by offset: which of two overlapping copies a broker uses may
        depend on which it learns of last."""
        segments = [one for one in self.segments if one.fate is Fate.RECOVER]
        return sorted(segments, key=lambda one: (one.stored.stored_ms, one.stored.identity.start_offset))

    @property
    def to_do(self) -> int:
        """How many segments the plan changes."""
        return len(self.to_recover()) + len(self.to_take_back)

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may be movement: a copy that a broker began may have ended since the metadata was read, before the
        leader was asked what it has trimmed."""
        begun = (one.begun for one in self.segments if one.fate is Fate.RECOVER)
        return are_in_doubt(self.findings) or any(one is not None and one.author != NO_BROKER for one in begun)

    def recovered(self) -> list[RemoteLogSegmentMetadata]:
        """The metadata of `to_recover`, as it is rebuilt."""
        return [one.metadata for one in self.to_recover() if one.metadata is not None]

    def row(self) -> PartitionRecoveryRow:
        counts = fates(self.segments)
        log = None if self.live is None else self.live.log
        left_out = {fate.value: count for fate, count in counts.items() if _is_left_out(fate) and count}
        return PartitionRecoveryRow(
            *(*self.partition.names, self.metadata_partition),
            *(len(self.segments), counts[Fate.IN_METADATA], counts[Fate.RECOVER], len(self.to_take_back)),
            *(sum(one.segment_size_in_bytes for one in self.recovered()), left_out),
            None if log is None else log.log_start_offset,
            None if log is None else log.local_log_start_offset,
            None if self.moved is None else self.moved.document(),
        )


@dataclass(frozen=True, slots=True)
class Recovery:
    """The plan for a whole store."""

    partitions: Sequence[PartitionRecovery]
    objects: int
    """Objects that were listed."""
    unexplained: int
    """How many objects have keys that the layout does not know."""
    findings: Sequence[Finding] = field(default=())
    """About the metadata as it is."""

    @property
    def to_recover(self) -> int:
        """How many segments."""
        return sum(len(one.to_recover()) for one in self.partitions)

    @property
    def to_take_back(self) -> int:
        """How many segments."""
        return sum(len(one.to_take_back) for one in self.partitions)

    @property
    def moved(self) -> list[PartitionRecovery]:
        """The partitions whose leaders' logs start above what the store has."""
        return [one for one in self.partitions if one.moved is not None]

    def in_doubt(self) -> set[TopicIdPartition]:
        """The partitions of which something may be movement."""
        return {one.partition for one in self.partitions if one.is_in_doubt}

    def looked_at_again(self, partitions: Iterable[PartitionRecovery]) -> Recovery:
        """The recovery with these partitions as a second look found them, and those of their findings that it confirms.
        What is in the store no more has nothing to recover."""
        now, doubtful = {one.partition: one for one in partitions}, self.in_doubt()
        kept = [now.get(one.partition) if one.partition in doubtful else one for one in self.partitions]
        before = {one.partition: one.findings for one in self.partitions}
        confirmed_now = [
            replace(one, findings=confirmed(before[one.partition], one.findings)) if one.partition in doubtful else one
            for one in kept
            if one is not None
        ]
        return replace(self, partitions=confirmed_now)

    def all_findings(self) -> list[Finding]:
        """The findings about the metadata, then about each partition."""
        return [*self.findings, *(finding for one in self.partitions for finding in one.findings)]

    def summary(self) -> Document:
        """Totals."""
        counts = fates(segment for one in self.partitions for segment in one.segments)
        return {
            "partitions": len(self.partitions),
            "segments": sum(counts.values()),
            "inMetadata": counts[Fate.IN_METADATA],
            "toRecover": counts[Fate.RECOVER],
            "toTakeBack": self.to_take_back,
            "leftOut": sum(count for fate, count in counts.items() if _is_left_out(fate)),
            "objects": self.objects,
            "unknownObjects": self.unexplained,
        }


@dataclass(frozen=True, slots=True)
class RecoveryPlanner:
    """Makes a plan from a store's listing, the metadata that was read after it, and the cluster if it can be asked."""

    known: KnownMetadata
    judge: SegmentJudge
    look: Callable[[TopicIdPartition], LivePartition] | None = None
    """Asks the cluster for a partition; None without a cluster."""
    metadata_partitions: int | None = None
    """How many the metadata topic has, if that is not known otherwise."""

    def plan(self, listing: StoreListing, stored: StoredPartitions) -> Recovery:
        """Raises TieredctlError `no-overlap` for a store in which the layout explains nothing, and as the store and the
        cluster do."""
        if listing.objects and not stored and listing.unexplained == listing.objects:
            message = f"The layout {self.judge.layout.name} explains none of the {listing.objects} objects."
            raise TieredctlError(ErrorCode.NO_OVERLAP, f"{message[:-1]} of {self.judge.store.url}.")
        if not stored:
            listing.selection.demand_known(listing.others, f"{self.judge.store.url} has no segment of")
            raise TieredctlError(ErrorCode.NO_OVERLAP, f"{self.judge.store.url} has no segment.")
        named = {*listing.others, *(partition for partition, _ in stored)}
        listing.selection.demand_known(named, f"{self.judge.store.url} has no segment of")
        partitions = list(self.partitions(stored, listing.selection.has))
        return Recovery(partitions, listing.objects, listing.unexplained, tuple(self.known.findings))

    def partitions(
        self, stored: StoredPartitions, has: Callable[[TopicIdPartition], bool] = lambda _partition: False
    ) -> Iterator[PartitionRecovery]:
        """The plan for each of these, and for those that `has` selects where only an earlier recovery left something.
        Raises TieredctlError as the store, the metadata and the cluster do."""
        ids = {partition: {one.identity.segment_id for one in segments} for partition, segments in stored}
        promised = EarlierRecoveries(self.known, self.judge.store, self.judge.layout).promised(ids, has)
        total, done = sum(len(segments) for _, segments in stored), 0
        for partition, segments in stored:
            yield self.partition(partition, segments, promised.pop(partition, ()))
            done += len(segments)
            note("segments", done, total)
        for partition, left in promised.items():
            yield self.partition(partition, (), left)

    def partition(
        self, partition: TopicIdPartition, segments: Sequence[StoredSegment], promised: Sequence[PromisedSegment] = ()
    ) -> PartitionRecovery:
        """The plan for one, of which `segments` were listed. Raises TieredctlError as the store, the metadata and the
        cluster do."""
        recorded = self.known.segments(partition).values()
        segments = with_unlisted(partition, segments, recorded, self.judge.store, self.judge.layout)
        live = None if self.look is None or not segments else self.look(partition)
        return self.settled(partition, self.judge.judge(partition, segments, live), live, promised)

    def settled(
        self,
        partition: TopicIdPartition,
        judged: Sequence[JudgedSegment],
        live: LivePartition | None,
        promised: Sequence[PromisedSegment],
    ) -> PartitionRecovery:
        """The plan for a partition whose segments are judged. Raises TieredctlError as the store does."""
        log = None if live is None else live.log
        moved = None if log is None else moved_log_start(partition, judged, log, self.judge.store, self.judge.layout)
        held = [one.metadata for one in judged if one.fate in (Fate.RECOVER, Fate.IN_METADATA) and one.metadata]
        deleted = self.known.deleted_offsets(partition)
        findings = [*segment_findings(partition, judged), *coverage_findings(partition, held, log, deleted)]
        findings += [one.finding() for one in promised]
        if moved is not None:
            findings.append(moved.finding())
        return PartitionRecovery(partition, self._place(partition), judged, live, moved, findings, promised)

    def _place(self, partition: TopicIdPartition) -> int:
        count = self.metadata_partitions or self.known.metadata_partitions or DEFAULT_METADATA_PARTITIONS
        return metadata_partition(partition.topic_id, partition.partition, count)


def demand_mapped(recovery: Recovery, ids: Mapping[str, str], layout: Layout) -> None:
    """Returns if every topic id of `ids` (old: new) has its segments under the new id's keys as well.

    A broker looks for a segment's objects by the topic id in the metadata, and finds none under another. Raises
    TieredctlError `usage` if some are missing.
    """
    segments = {one.partition: one.segments for one in recovery.partitions if one.segments}
    for old, new in ids.items():
        of_old = [partition for partition in segments if partition.topic_id == old]
        if not of_old:
            raise TieredctlError(ErrorCode.USAGE, f"The store has no segment of a topic with id {old}.")
        for partition in of_old:
            twin = TopicIdPartition(new, partition.topic, partition.partition)
            there = {one.stored.identity.segment_id for one in segments.get(twin, ())}
            lacking = [one for one in segments[partition] if one.stored.identity.segment_id not in there]
            if lacking:
                raise TieredctlError(
                    ErrorCode.USAGE, _why_not_mapped(partition, twin, len(lacking), layout), hint=_COPY
                )


_COPY = "First copy the objects to the new id's keys with the store's own tools; then no mapping is needed."


def _why_not_mapped(old: TopicIdPartition, new: TopicIdPartition, count: int, layout: Layout) -> str:
    return (
        f"{counted(count, 'segment')} of {old} cannot be mapped: with layout {layout.name}, brokers look for objects "
        f"under {layout.partition_prefix(new)}, but the store only has them under {layout.partition_prefix(old)}."
    )


def _is_left_out(fate: Fate) -> bool:
    return fate not in (Fate.RECOVER, Fate.IN_METADATA)


HOLD_BACK = (
    "rlmm.config.remote.log.metadata.common.client.bootstrap.servers=localhost:1",
    "rlmm.config.remote.log.metadata.common.client.request.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.common.client.default.api.timeout.ms=1000",
    "rlmm.config.remote.log.metadata.initialization.retry.max.timeout.ms=86400000",
)
"""With these, a broker serves the metadata topic to others but itself waits for it, for up to a day: as a leader, it
neither moves its log start nor copies or deletes meanwhile. `rlmm.config.` is
remote.log.metadata.manager.impl.prefix."""

AFTERWARDS = "If brokers were held back, remove those lines from their properties, and restart them one by one."
_INDEXES = (
    "Rebuild the indexes that are lost as well, before anything reads: tieredctl recover indexes --all … --apply, or "
    "with the topics that lack some, or with what `verify -o json` wrote."
)
_GIVEN_UP = "If DeleteRecords or retention moved the log start, there is nothing to do: these segments are deleted."
_KEEP_PLAN = "Otherwise, keep this plan while the brokers run: this command again, with -o json > plan.json"
_FILES = (
    "On every broker, for each of its log directories, put the log starts back: "
    "tieredctl recover log-starts plan.json --log-dir DIR --apply"
)


def steps(recovery: Recovery, *, is_live: bool) -> list[str]:
    """One sentence per step; none if there is nothing to do."""
    if recovery.moved:
        has_offsets = any(one.moved is not None and one.moved.unknown_because is None for one in recovery.moved)
        return (
            _put_back()
            if has_offsets
            else [_GIVEN_UP, "Otherwise, see each partition's log-start-above-store finding."]
        )
    if not recovery.to_recover:
        return []
    without_indexes = any(segment.lacks for one in recovery.partitions for segment in one.to_recover())
    before = (
        "Until this is done, do not restart brokers or move leaders: one that starts with an empty metadata topic moves"
    )
    run = "Run this command again with" if is_live else "Run it with --bootstrap-server,"
    return [
        f"{before} its log start to its local log, and then deletes earlier segments from the store.",
        "If the brokers are down, start them held back, with these lines in each one's properties: "
        + "; ".join(HOLD_BACK),
        f"{run} --apply, and with the brokers' remote.log.metadata.topic.num.partitions as --metadata-partitions.",
        *([_INDEXES] if without_indexes else ()),
        AFTERWARDS,
    ]


def _put_back() -> list[str]:
    return [
        _GIVEN_UP,
        _KEEP_PLAN,
        f"Stop all brokers, and give them these properties: {'; '.join(HOLD_BACK)}",
        _FILES,
        "Start the brokers, and run this command again with --apply: the segments are no longer below the log start.",
        "Remove these properties, and restart the brokers.",
    ]
