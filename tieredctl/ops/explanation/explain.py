"""Explains an offset: where it is, and how a consumer or a follower would get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tieredctl.drawing.timeline import Timeline
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.leader import LeaderAnswers, is_tiered, only_partition, read_leader_log
from tieredctl.ops.documents import Document
from tieredctl.ops.explanation.explanation import Explanation, LiveExplanation
from tieredctl.ops.metadata.completeness import is_whole_for_partitions_here
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection, one_partition
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.timeline.partition_timeline import KnownLog, partition_timeline
from tieredctl.ports.cluster import Cluster, ListedOffset, TopicDescription
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.consumer_fetch import consumer_fetch, highest_remote_offset
from tieredctl.rlmm.follower_fetch import FollowerLog, follower_fetch
from tieredctl.rlmm.lineage import epoch_for_offset
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


class TopicPlace(NamedTuple):
    """What to explain: an offset, or without one the first offset of a time (ms since the epoch) or later."""

    topic: str
    partition: int
    offset: int | None
    timestamp_ms: int | None = None


def explain_live(
    cluster: Cluster, stream: EventStream, place: TopicPlace, believed_epoch: int | None = None
) -> Explanation | None:
    """Explains an offset by its leader; None where a time was given and no record is of that time or later.

    The leader is asked before the metadata is read, so that nothing it moved to remote storage is missing there.
    Raises TieredctlError as the cluster does.
    """
    topic = only_partition(cluster.topic(place.topic), place.partition)
    looked_up = (
        ListedOffset(place.offset) if place.timestamp_ms is None else _looked_up(cluster, topic, place.timestamp_ms)
    )
    if looked_up.offset is None:
        return None
    answers = read_leader_log(cluster, topic)
    log, offset = answers.log, looked_up.offset
    selection = Selection.of(place.topic, topic.topic_id, place.partition)
    partition = TopicIdPartition(topic.topic_id, place.topic, place.partition)
    store = replayed(stream, selection)
    remote = store.caches.get(partition, RemoteLogMetadataCache())
    log_facts = KnownLog(log.leader_epochs, log.local_log_start_offset, log.log_start_offset, log.end_offset)
    epoch = epoch_for_offset(log.leader_epochs, offset) if offset < log.end_offset else None
    segment = None if epoch is None else remote.remote_log_segment_metadata(epoch, offset)
    return Explanation(
        partition,
        offset,
        timestamp_ms=looked_up.timestamp_ms,
        leader_epoch=epoch,
        segment=segment,
        other_segments=_others(remote, offset, segment),
        highest_remote_offset=highest_remote_offset(log.leader_epochs, log.end_offset, remote),
        timeline=_timeline(stream, store, partition, log_facts),
        live=_live(answers, remote, offset, believed_epoch, tiered=is_tiered(cluster, place.topic)),
    )


def _looked_up(cluster: Cluster, topic: TopicDescription, timestamp_ms: int) -> ListedOffset:
    number = topic.partitions[0].partition
    listed = cluster.list_offsets(topic, timestamp_ms)[number]
    if listed.error:
        message = f"The leader of {topic.topic}-{number} could not look up the time: {listed.error}."
        raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint="")
    return listed


def _live(
    answers: LeaderAnswers, remote: RemoteLogMetadataCache, offset: int, believed_epoch: int | None, *, tiered: bool
) -> LiveExplanation:
    log = answers.log
    can_start_tiered = tiered and answers.knows_pending_upload
    return LiveExplanation(
        leader=answers.leader,
        log=log,
        consumer=consumer_fetch(log, remote, offset, believed_epoch),
        follower=follower_fetch(log, remote, FollowerLog(offset)),
        empty_follower=follower_fetch(log, remote),
        empty_follower_from_last_tiered_offset=(
            follower_fetch(log, remote, from_last_tiered_offset=True) if can_start_tiered else None
        ),
    )


def explain_metadata(stream: EventStream, selection: Selection, offset: int, epoch: int | None = None) -> Explanation:
    """Explains an offset of the one selected partition by metadata alone.

    The lineage of leaders is unknown: of several leader epochs that hold the offset remotely, the latest is taken,
    unless `epoch` is given. Raises TieredctlError as `one_partition` does."""
    store = replayed(stream, replace(selection, numbers=()))
    partition = one_partition(store.caches, selection, stream)
    remote = store.caches[partition]
    epochs = remote.epochs() if epoch is None else [epoch]
    lookups = ((one, remote.remote_log_segment_metadata(one, offset)) for one in reversed(epochs))
    leader_epoch, segment = next(
        ((one, segment_of_epoch) for one, segment_of_epoch in lookups if segment_of_epoch), (None, None)
    )
    highest = [remote.highest_offset_for_epoch(one) for one in remote.epochs()]
    return Explanation(
        partition,
        offset,
        timestamp_ms=None,
        leader_epoch=leader_epoch,
        segment=segment,
        other_segments=_others(remote, offset, segment),
        highest_remote_offset=max((one for one in highest if one is not None), default=None),
        timeline=_timeline(stream, store, partition),
        live=None,
    )


def _timeline(
    stream: EventStream, store: ReplayedMetadata, partition: TopicIdPartition, log: KnownLog | None = None
) -> Timeline:
    is_complete = is_whole_for_partitions_here(stream.findings)
    return partition_timeline(store, partition, log, is_complete=is_complete).timeline


def _others(remote: RemoteLogMetadataCache, offset: int, segment: KnownSegment | None) -> list[KnownSegment]:
    return [
        other
        for other in remote.list_remote_log_segments()
        if other is not segment and other.metadata.start_offset <= offset <= other.metadata.end_offset
    ]


class SegmentObjects(NamedTuple):
    """A segment's objects as documents, and a finding for each promised one that is missing."""

    items: Sequence[Document]
    findings: Sequence[Finding]


def segment_objects(store: ObjectStore, layout: Layout, segment: RemoteLogSegmentMetadata) -> SegmentObjects:
    """The objects that the layout promises for a segment in COPY_SEGMENT_FINISHED, and any others that exist. `size` is
    in bytes, as stored; null for missing ones. Raises TieredctlError as the store does."""
    # Without a store, an offset is explained by metadata alone.
    from tieredctl.ops.verification.other_forms import OtherForms, report_missing
    from tieredctl.ops.verification.report import SegmentFindings

    promised = layout.promised_objects(segment)
    keys = promised | layout.optional_objects(segment)
    findings = SegmentFindings(segment, keys)
    items: list[Document] = []
    for part, key in keys.items():
        stored = store.head(key)
        if stored is not None or part in promised:
            size = stored.size if stored else None
            items.append({"part": part.value, "key": key, "size": size, "inStore": stored is not None})
        if stored is None and part in promised:
            report_missing(part, findings)
    if len(findings.found) == len(promised):
        return SegmentObjects(items, OtherForms(store, layout).judge([segment]))
    return SegmentObjects(items, findings.found)
