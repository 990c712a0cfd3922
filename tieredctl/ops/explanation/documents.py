"""An explanation as the JSON that `explain` shows."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.ops.documents import Document, epochs_document, partition_document, segment_document
from tieredctl.ops.explanation.explanation import Explanation, LiveExplanation
from tieredctl.ops.timeline.documents import ranges_document
from tieredctl.rlmm.consumer_fetch import ConsumerFetch
from tieredctl.rlmm.follower_fetch import FollowerFetch, FollowerStep


def explanation_document(found: Explanation, objects: Sequence[Document] | None) -> Document:
    """One item. What only a leader knows is null where none was asked, as is anything unknown."""
    document: Document = {
        **partition_document(found.partition),
        "offset": found.offset,
        "timestampMs": found.timestamp_ms,
        "place": found.place.value,
        "leaderEpoch": found.leader_epoch,
        "segment": segment_document(found.segment) if found.segment else None,
        "otherSegments": [segment_document(known) for known in found.other_segments],
        "objects": None if objects is None else list(objects),
        "highestRemoteOffset": found.highest_remote_offset,
        "timeline": ranges_document(found.timeline),
    }
    return document | _live(found.live)


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
