"""Which of a partition's stored segments are to be said to the metadata again, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata.event_publisher import NO_BROKER
from tieredctl.ops.metadata_recovery.event_rebuilding import Unfit, as_started, rebuild
from tieredctl.ops.metadata_recovery.known_metadata import BrokerTraits, KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.stored_segments import StoredSegment
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.remote_retention import is_within_leader_epochs
from tieredctl.storage.protocol import ObjectStore


class Fate(StrEnum):
    """What becomes of a stored segment."""

    RECOVER = "recover"
    IN_METADATA = "in-metadata"
    """COPY_SEGMENT_FINISHED there already."""
    PARTIAL = "partial"
    """Promised objects are not there."""
    DAMAGED = "damaged"
    """Its objects contradict each other."""
    DELETED = "deleted"
    """An event says that it, or all of its partition, is deleted or being deleted."""
    COPY_NOT_FINISHED = "copy-not-finished"
    """A broker began to copy it, and has not said that it finished."""
    SUPERSEDED = "superseded"
    """No look-up would come to it: a later copy serves its offsets."""
    BELOW_LOG_START = "below-log-start"
    """All of it lies before the leader's log start: brokers delete what they are told of there."""
    NOT_IN_LINEAGE = "not-in-lineage"
    """The leader's epochs contradict it: it is of leaders whose records were given up."""
    TOPIC_UNKNOWN = "topic-unknown"
    """The cluster has no topic of its id."""


@dataclass(frozen=True, slots=True)
class JudgedSegment:
    """A stored segment, its fate, and for one that is left out the reason in words."""

    stored: StoredSegment
    fate: Fate
    reason: str = ""
    metadata: RemoteLogSegmentMetadata | None = None
    """As it is rebuilt, where it came to that, or as it is known."""
    begun: RemoteLogSegmentMetadata | None = None
    """The event that its copy started, where one is left: an earlier recovery's, or a broker's."""

    @property
    def needs_start(self) -> bool:
        """Whether the event that its copy started is not there yet as it has to be."""
        if self.begun is None or self.metadata is None:
            return True
        return not _is_same_copy(self.begun, self.metadata)


@dataclass(frozen=True, slots=True)
class SegmentJudge:
    """Judges segments by the metadata that is left, the store, and the cluster where it is asked."""

    known: KnownMetadata
    store: ObjectStore
    layout: Layout
    traits: BrokerTraits

    def judge(
        self, partition: TopicIdPartition, segments: Sequence[StoredSegment], live: LivePartition | None
    ) -> list[JudgedSegment]:
        """The fate of each of a partition's segments. Raises TieredctlError where the store does not answer."""
        known = self.known.segments(partition)

        def judge_one(stored: StoredSegment) -> JudgedSegment:
            return self._judge_one(stored, known.get(stored.identity.segment_id), partition, live)

        judged = in_parallel(self.store, judge_one, segments)
        reached = _served(judged, known.values())
        return [one if _is_served(one, reached) else _superseded(one) for one in judged]

    def _judge_one(
        self,
        stored: StoredSegment,
        known: RemoteLogSegmentMetadata | None,
        partition: TopicIdPartition,
        live: LivePartition | None,
    ) -> JudgedSegment:
        if stored.identity.segment_id in self.known.deleted or self.known.is_removed(partition):
            return JudgedSegment(stored, Fate.DELETED, "the metadata says that it is deleted, or being deleted")
        if known is not None and _is_finished(known):
            return JudgedSegment(stored, Fate.IN_METADATA, metadata=known)
        if known is not None and known.author != NO_BROKER and not _must_have_finished(known, live):
            reason = f"broker {known.author} began to copy it, and has not said that it finished"
            return JudgedSegment(stored, Fate.COPY_NOT_FINISHED, reason)
        if missing := stored.missing(self.layout):
            return JudgedSegment(stored, Fate.PARTIAL, f"the store has no {', '.join(missing)} of it")
        if live is not None and live.log is None:
            return JudgedSegment(stored, Fate.TOPIC_UNKNOWN, _why_unknown(partition, live))
        try:
            metadata = rebuild(stored, self.store, self.layout, self.traits)
        except Unfit as unfit:
            return JudgedSegment(stored, Fate.DAMAGED, str(unfit))
        if known is not None and known.author != NO_BROKER:
            # A log with only the marker of an aborted transaction does not tell whether that had data; a broker knew.
            metadata = replace(metadata, txn_idx_empty=known.txn_idx_empty)
            if not _is_same_copy(known, metadata):
                return JudgedSegment(stored, Fate.DAMAGED, "it is not what the broker said that it began to copy")
        fate, reason = (Fate.RECOVER, "") if live is None or live.log is None else _placed(metadata, live.log)
        return JudgedSegment(stored, fate, reason, metadata, known)


def _must_have_finished(begun: RemoteLogSegmentMetadata, live: LivePartition | None) -> bool:
    """Whether a leader's disk no longer has what a broker began to copy: nothing is deleted there before it is known
    to be in remote storage, so that the event which said so is lost."""
    return live is not None and live.log is not None and begun.end_offset < live.log.local_log_start_offset


def _is_same_copy(begun: RemoteLogSegmentMetadata, rebuilt: RemoteLogSegmentMetadata) -> bool:
    """Whether what began is what is there now, whoever said it, and when."""
    told = replace(begun, author=rebuilt.author, event_timestamp_ms=rebuilt.event_timestamp_ms, tagged_fields=())
    return told == as_started(rebuilt)


def _why_unknown(partition: TopicIdPartition, live: LivePartition) -> str:
    if live.topic_id is None:
        return f"the cluster has no topic {partition.topic}"
    if live.topic_id == partition.topic_id:
        return f"topic {partition.topic} has no partition {partition.partition}"
    return f"topic {partition.topic} has the id {live.topic_id} now"


def _placed(metadata: RemoteLogSegmentMetadata, log: LeaderLog) -> tuple[Fate, str]:
    """Where a segment lies by its leader's log: what lies outside, brokers would delete or never look at."""
    epochs = dict(log.leader_epochs)
    if metadata.end_offset < log.log_start_offset:
        return Fate.BELOW_LOG_START, f"it ends at {metadata.end_offset}, and the log starts at {log.log_start_offset}"
    if epochs and metadata.segment_leader_epochs[-1][0] < min(epochs):
        return Fate.BELOW_LOG_START, f"the leader knows no epoch before {min(epochs)}"
    if not is_within_leader_epochs(metadata, log.end_offset, epochs):
        said = ",".join(f"{epoch}={offset}" for epoch, offset in metadata.segment_leader_epochs)
        return Fate.NOT_IN_LINEAGE, f"the leader's log has other records at its offsets and epochs ({said})"
    return Fate.RECOVER, ""


def _served(judged: Sequence[JudgedSegment], known: Iterable[RemoteLogSegmentMetadata]) -> set[str]:
    """The segments that a broker comes to, by the order in which their objects were stored; of those without any, by
    that of their events."""
    copies = {one.segment_id: (one.event_timestamp_ms, one) for one in known if _is_finished(one)}
    for one in judged:
        if one.metadata is not None and one.fate in (Fate.RECOVER, Fate.IN_METADATA):
            copies[one.metadata.segment_id] = (one.stored.stored_ms, one.metadata)
    in_order = sorted(copies.values(), key=lambda pair: (pair[0], pair[1].start_offset, pair[1].segment_id))
    return served([metadata for _, metadata in in_order])


def served(copies: Sequence[RemoteLogSegmentMetadata]) -> set[str]:
    """The ids of those finished copies that a broker comes to which was told of all of them, in this order."""
    cache = RemoteLogMetadataCache()
    for number, metadata in enumerate(copies):
        cache.add(KnownSegment(as_started(metadata), 0, 2 * number))
        cache.update(finished_event(metadata, metadata.event_timestamp_ms), 0, 2 * number + 1)
    return {metadata.segment_id for metadata in copies if cache.is_referenced(metadata)}


def finished_event(metadata: RemoteLogSegmentMetadata, event_timestamp_ms: int) -> RemoteLogSegmentMetadataUpdate:
    """The event that a segment's copy finished, as nobody's."""
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
    """How many segments have each fate, those of none too."""
    counts = dict.fromkeys(Fate, 0)
    for one in segments:
        counts[one.fate] += 1
    return counts
