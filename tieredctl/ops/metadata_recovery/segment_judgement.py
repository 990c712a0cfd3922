"""Judges which of a partition's stored segments to register in the metadata again, and why the others are left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits, StoredSegment, Unfit, as_started, rebuild
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import LeaderEpochState
from tieredctl.rlmm.remote_retention import is_within_leader_epochs

REBUILT_PARTS = (Part.OFFSET_INDEX, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT)
"""Promised parts that `recover indexes` makes of a segment's log."""


class Fate(StrEnum):
    """What becomes of a stored segment."""

    RECOVER = "recover"
    IN_METADATA = "in-metadata"
    """Its COPY_SEGMENT_FINISHED is there already."""
    PARTIAL = "partial"
    """Promised objects are missing: the log or its leader epochs, or what is made of them while nothing proves that the
    copy ever ended."""
    DAMAGED = "damaged"
    """Its objects contradict each other."""
    DELETED = "deleted"
    """By some event, it or its whole partition is deleted or being deleted."""
    COPY_NOT_FINISHED = "copy-not-finished"
    """A broker began to copy it, and has not recorded that the copy finished."""
    SUPERSEDED = "superseded"
    """No look-up would return it: a later copy serves its offsets."""
    BELOW_LOG_START = "below-log-start"
    """All of it is before the leader's log start, where brokers delete segments."""
    NOT_IN_LINEAGE = "not-in-lineage"
    """The leader's epochs contradict it: it belongs to leaders whose records were truncated."""
    TOPIC_UNKNOWN = "topic-unknown"
    """The cluster has no topic of its id."""


@dataclass(frozen=True, slots=True)
class JudgedSegment:
    """A stored segment, its fate, and the reason in words if it is left out."""

    stored: StoredSegment
    fate: Fate
    reason: str = ""
    metadata: RemoteLogSegmentMetadata | None = None
    """As rebuilt, if it got that far, or as known."""
    begun: RemoteLogSegmentMetadata | None = None
    """The event that started its copy, if it is left: an earlier recovery's, or a broker's."""
    lacks: Sequence[Part] = ()
    """The promised objects that are to be rebuilt from its log once it is recovered."""

    @property
    def needs_start(self) -> bool:
        """Whether the event that starts its copy is missing, or differs from the rebuilt segment."""
        if self.begun is None or self.metadata is None:
            return True
        return not _is_same_copy(self.begun, self.metadata)


@dataclass(frozen=True, slots=True)
class SegmentJudge:
    """Judges segments by the metadata that is left, the store, and the cluster if one is asked."""

    known: KnownMetadata
    store: ObjectStore
    layout: Layout
    traits: BrokerTraits
    brokers_are_gone: bool = False
    """Whether no broker is left that may finish a copy which it began: then one that is whole counts."""

    def judge(
        self, partition: TopicIdPartition, segments: Sequence[StoredSegment], live: LivePartition | None
    ) -> list[JudgedSegment]:
        """The fate of each of a partition's segments. Raises TieredctlError if the store does not answer."""
        recorded = self.known.segments(partition)
        ids = [stored.identity.segment_id for stored in segments]
        deleted = {*ids} if self.known.is_removed(partition) else self.known.deleted(ids)

        def judge_one(stored: StoredSegment) -> JudgedSegment:
            segment_id = stored.identity.segment_id
            if segment_id in deleted:
                return JudgedSegment(stored, Fate.DELETED, "by the metadata, it is deleted or being deleted")
            return self._judge_one(stored, recorded.get(segment_id), partition, live)

        judged = in_parallel(self.store, judge_one, segments)
        reached = _served(judged, recorded.values())
        return [one if _is_served(one, reached) else _superseded(one) for one in judged]

    def _judge_one(
        self,
        stored: StoredSegment,
        recorded: RemoteLogSegmentMetadata | None,
        partition: TopicIdPartition,
        live: LivePartition | None,
    ) -> JudgedSegment:
        if recorded is not None and _is_finished(recorded):
            return JudgedSegment(stored, Fate.IN_METADATA, metadata=recorded)
        may_go_on = not (self.brokers_are_gone or (recorded is not None and _must_have_finished(recorded, live)))
        if recorded is not None and recorded.author != NO_BROKER and may_go_on:
            reason = f"broker {recorded.author} began to copy it, and has not recorded that the copy finished"
            return JudgedSegment(stored, Fate.COPY_NOT_FINISHED, reason)
        missing = stored.missing(self.layout)
        partial = JudgedSegment(stored, Fate.PARTIAL, f"the store lacks its {', '.join(missing)}")
        if any(part not in REBUILT_PARTS or part not in self.layout.verbatim_parts for part in missing):
            return partial
        if live is not None and live.log is None:
            return JudgedSegment(stored, Fate.TOPIC_UNKNOWN, _why_unknown(partition, live))
        try:
            metadata = self._rebuilt(stored)
        except Unfit as unfit:
            return JudgedSegment(stored, Fate.DAMAGED, str(unfit))
        if missing and not _must_have_finished(metadata, live):
            return partial
        if recorded is not None and recorded.author != NO_BROKER:
            # A log with only an aborted transaction's marker does not tell whether it had data; the broker knew.
            metadata = replace(metadata, txn_idx_empty=recorded.txn_idx_empty)
            if not _is_same_copy(recorded, metadata):
                return JudgedSegment(stored, Fate.DAMAGED, "it differs from what the broker began to copy")
        fate, reason = (Fate.RECOVER, "") if live is None or live.log is None else _placed(metadata, live.log)
        return JudgedSegment(stored, fate, reason, metadata, recorded, missing)

    def _rebuilt(self, stored: StoredSegment) -> RemoteLogSegmentMetadata:
        """Read again over new connections where it looks damaged: bytes may be altered on the way. Raises Unfit."""
        with suppress(Unfit):
            return rebuild(stored, self.store, self.layout, self.traits)
        return rebuild(stored, self.store.reconnected(), self.layout, self.traits)


def _must_have_finished(begun: RemoteLogSegmentMetadata, live: LivePartition | None) -> bool:
    """Whether the leader's disk no longer has what a broker copied, or began to copy: nothing is deleted there before
    it is in remote storage, so the event that recorded that is lost."""
    return live is not None and live.log is not None and begun.end_offset < live.log.local_log_start_offset


def _is_same_copy(begun: RemoteLogSegmentMetadata, rebuilt: RemoteLogSegmentMetadata) -> bool:
    """Whether the copy that was started is the one that exists now, whoever recorded it, and when."""
    recorded = replace(begun, author=rebuilt.author, event_timestamp_ms=rebuilt.event_timestamp_ms, tagged_fields=())
    return recorded == as_started(rebuilt)


def _why_unknown(partition: TopicIdPartition, live: LivePartition) -> str:
    if live.topic_id is None:
        return f"the cluster has no topic {partition.topic}"
    if live.topic_id == partition.topic_id:
        return f"topic {partition.topic} has no partition {partition.partition}"
    return f"topic {partition.topic} now has the id {live.topic_id}"


def _placed(metadata: RemoteLogSegmentMetadata, log: LeaderLog) -> tuple[Fate, str]:
    """Where a segment is by its leader's log: brokers would delete or ignore what is outside."""
    epochs = dict(log.leader_epochs)
    if metadata.end_offset < log.log_start_offset:
        return Fate.BELOW_LOG_START, f"it ends at {metadata.end_offset}, but the log starts at {log.log_start_offset}"
    if epochs and metadata.segment_leader_epochs[-1][0] < min(epochs):
        return Fate.BELOW_LOG_START, f"the leader knows no epoch before {min(epochs)}"
    if not is_within_leader_epochs(metadata, log.end_offset, epochs):
        lineage = ",".join(f"{epoch}={offset}" for epoch, offset in metadata.segment_leader_epochs)
        return Fate.NOT_IN_LINEAGE, f"the leader's log has other records at its offsets and epochs ({lineage})"
    return Fate.RECOVER, ""


def placed(segments: Iterable[JudgedSegment], log: LeaderLog) -> list[JudgedSegment]:
    """The segments as they are judged once it is known where their log begins and ends: what its leader would delete or
    ignore is not recovered."""
    return [one if one.fate is not Fate.RECOVER else _placed_again(one, log) for one in segments]


def _placed_again(segment: JudgedSegment, log: LeaderLog) -> JudgedSegment:
    assert segment.metadata is not None
    fate, reason = _placed(segment.metadata, log)
    return replace(segment, fate=fate, reason=reason)


def _served(judged: Sequence[JudgedSegment], recorded: Iterable[RemoteLogSegmentMetadata]) -> set[str]:
    """The segments that a broker uses, by the order in which their objects were stored, or of their events if there are
    no objects."""
    copies = {one.segment_id: (one.event_timestamp_ms, one) for one in recorded if _is_finished(one)}
    for one in judged:
        if one.metadata is not None and one.fate in (Fate.RECOVER, Fate.IN_METADATA):
            copies[one.metadata.segment_id] = (one.stored.stored_ms, one.metadata)
    in_order = sorted(copies.values(), key=lambda pair: (pair[0], pair[1].start_offset, pair[1].segment_id))
    return served([metadata for _, metadata in in_order])


def served(copies: Sequence[RemoteLogSegmentMetadata]) -> set[str]:
    """The ids of the finished copies that a broker uses after learning of all of them in this order."""
    epochs: dict[int, LeaderEpochState] = defaultdict(LeaderEpochState)
    for metadata in copies:
        for epoch, first, last in metadata.epoch_ranges():
            epochs[epoch].copy_finished(metadata.segment_id, first, last)
    return {segment_id for state in epochs.values() for segment_id in state.referenced}


def finished_event(metadata: RemoteLogSegmentMetadata, event_timestamp_ms: int) -> RemoteLogSegmentMetadataUpdate:
    """The event that a segment's copy finished, without a broker as its author."""
    return RemoteLogSegmentMetadataUpdate(
        topic_id_partition=metadata.topic_id_partition,
        segment_id=metadata.segment_id,
        author=NO_BROKER,
        event_timestamp_ms=event_timestamp_ms,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        custom_metadata=metadata.custom_metadata,
        form=metadata.form,
    )


def _is_served(segment: JudgedSegment, reached: set[str]) -> bool:
    return segment.fate is not Fate.RECOVER or segment.stored.identity.segment_id in reached


def _is_finished(metadata: RemoteLogSegmentMetadata) -> bool:
    return metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def _superseded(segment: JudgedSegment) -> JudgedSegment:
    return replace(segment, fate=Fate.SUPERSEDED, reason="a copy that was stored later serves its offsets")


def fates(segments: Iterable[JudgedSegment]) -> Mapping[Fate, int]:
    """How many segments have each fate, zeros included."""
    counts = dict.fromkeys(Fate, 0)
    for one in segments:
        counts[one.fate] += 1
    return counts
