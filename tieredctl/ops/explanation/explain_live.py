"""Explains an offset by its leader: where it is, and how a consumer or a follower would get it."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.leader import LeaderAnswers, is_tiered, only_partition, read_leader_log
from tieredctl.ops.explanation.explain import other_segments, timeline_of
from tieredctl.ops.explanation.explanation import Explanation, LiveExplanation
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.timeline.partition_timeline import KnownLog
from tieredctl.ports.cluster import Cluster, ListedOffset, TopicDescription
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.consumer_fetch import consumer_fetch, highest_remote_offset
from tieredctl.rlmm.follower_fetch import FollowerLog, follower_fetch
from tieredctl.rlmm.lineage import epoch_for_offset


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
        other_segments=other_segments(remote, offset, segment),
        highest_remote_offset=highest_remote_offset(log.leader_epochs, log.end_offset, remote),
        timeline=timeline_of(stream, store, partition, log_facts),
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
