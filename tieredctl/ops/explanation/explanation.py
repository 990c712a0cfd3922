"""An explained offset: where it is, and how a consumer or a follower would get it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tieredctl.drawing.timeline import Timeline
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document, epochs_document, partition_document, segment_document
from tieredctl.ops.timeline.partition_timeline import ranges_document
from tieredctl.rlmm.cache import KnownSegment

if TYPE_CHECKING:
    from tieredctl.model.local_log import LeaderLog
    from tieredctl.rlmm.consumer_fetch import ConsumerFetch
    from tieredctl.rlmm.follower_fetch import FollowerFetch, FollowerStep


class Place(StrEnum):
    """Where an offset is."""

    BELOW_LOG_START = "below-log-start"
    REMOTE = "remote"
    REMOTE_AND_LOCAL = "remote-and-local"
    LOCAL = "local"
    END = "end"
    """The offset that the next record gets."""
    ABOVE_END = "above-end"
    LOST = "lost"
    """Between the log start and the local log start, and in no remote segment."""
    NOT_REMOTE = "not-remote"
    """In no remote segment, by the metadata alone: what is on brokers' disks is unknown."""


@dataclass(frozen=True, slots=True)
class LiveExplanation:
    """What only the leader knows."""

    leader: int | None
    log: LeaderLog
    consumer: ConsumerFetch
    follower: FollowerFetch
    """The fetch of a follower whose log ends at the explained offset."""
    empty_follower: FollowerFetch
    empty_follower_from_last_tiered_offset: FollowerFetch | None
    """With follower.fetch.last.tiered.offset.enable; None where that changes nothing: the topic is not tiered, or the
    leader's release does not know ListOffsets -6."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where an offset is. `live` is None where only metadata was read."""

    partition: TopicIdPartition
    offset: int
    timestamp_ms: int | None
    """The time of the record, where the offset was looked up by time."""
    leader_epoch: int | None
    segment: KnownSegment | None
    """The remote segment that look-ups reach."""
    other_segments: Sequence[KnownSegment]
    """Others with the offset that no look-up of it reaches: in another state, or in another lineage of leaders."""
    highest_remote_offset: int | None
    timeline: Timeline
    """The whole partition."""
    live: LiveExplanation | None

    @property
    def readable(self) -> bool:
        """Whether a consumer gets a record of the offset, as far as known."""
        if self.live is None:
            return self.segment is not None
        return self.live.consumer.has_records

    @property
    def place(self) -> Place:
        if self.live is None:
            return Place.REMOTE if self.segment else Place.NOT_REMOTE
        log, offset = self.live.log, self.offset
        if offset < log.log_start_offset:
            return Place.BELOW_LOG_START
        if offset >= log.end_offset:
            return Place.END if offset == log.end_offset else Place.ABOVE_END
        if offset >= log.local_log_start_offset:
            return Place.REMOTE_AND_LOCAL if self.segment else Place.LOCAL
        return Place.REMOTE if self.segment else Place.LOST


def explanation_document(explanation: Explanation, objects: Sequence[Document] | None) -> Document:
    """One item. What only a leader knows is null where none was asked, as is anything unknown."""
    document: Document = {
        **partition_document(explanation.partition),
        "offset": explanation.offset,
        "timestampMs": explanation.timestamp_ms,
        "place": explanation.place.value,
        "leaderEpoch": explanation.leader_epoch,
        "segment": segment_document(explanation.segment) if explanation.segment else None,
        "otherSegments": [segment_document(other) for other in explanation.other_segments],
        "objects": None if objects is None else list(objects),
        "highestRemoteOffset": explanation.highest_remote_offset,
        "timeline": ranges_document(explanation.timeline),
    }
    return document | _live(explanation.live)


def _live(live: LiveExplanation | None) -> Document:
    if live is None:
        names = (
            "leader",
            "log",
            "consumerFetch",
            "followerFetch",
            "emptyFollower",
            "emptyFollowerFromLastTieredOffset",
        )
        return dict.fromkeys(names)
    log, tiered = live.log, live.empty_follower_from_last_tiered_offset
    return {
        "leader": live.leader,
        "log": {
            "logStartOffset": log.log_start_offset,
            "localLogStartOffset": log.local_log_start_offset,
            "earliestPendingUploadOffset": log.earliest_pending_upload_offset,
            "endOffset": log.end_offset,
            "leaderEpochs": epochs_document(tuple(log.leader_epochs)),
        },
        "consumerFetch": _consumer_document(live.consumer),
        "followerFetch": _follower_document(live.follower),
        "emptyFollower": _follower_document(live.empty_follower),
        "emptyFollowerFromLastTieredOffset": _follower_document(tiered) if tiered else None,
    }


def _consumer_document(fetch: ConsumerFetch) -> Document:
    segment = fetch.segment.metadata.segment_id if fetch.segment else None
    return {"outcome": fetch.outcome.value, "leaderEpoch": fetch.leader_epoch, "segmentId": segment}


def _follower_document(fetch: FollowerFetch) -> Document:
    return {
        "error": fetch.first_error and fetch.first_error.value,
        "steps": [_step_document(step) for step in fetch.steps],
        "segmentId": fetch.segment_id,
        "fetchOffset": fetch.fetch_offset,
        "wait": fetch.wait and fetch.wait.value,
        "leaderEpochs": epochs_document(tuple(fetch.leader_epochs)),
    }


def _step_document(step: FollowerStep) -> Document:
    return {
        "action": step.action.value,
        "offset": step.offset,
        "leaderEpoch": step.leader_epoch,
        "segmentId": step.segment_id,
        "error": step.error and step.error.value,
    }
