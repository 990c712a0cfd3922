"""Waits for the effect of a change: the first segment in remote storage, or the deletion of the last."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.tiering.partition_bytes import PartitionBytes
from tieredctl.ops.tiering.remote_topic import RemoteTopic
from tieredctl.ports.cluster import Cluster, OffsetSpec, TopicDescription

_SECONDS_BETWEEN_LOOKS = 0.5
_UNSUPPORTED = "UNSUPPORTED_VERSION"

Told = Callable[[int, int], None]
"""Progress: how much was seen so far, and how much there is to see."""


class Seen(Enum):
    """How a wait ended."""

    YES = "yes"
    NOTHING_TO_SEE = "nothing-to-see"
    """No partition has a closed segment yet, so that nothing can be copied."""
    CANNOT_TELL = "cannot-tell"
    """The brokers' release does not report what is tiered (ListOffsets before 3.9)."""
    LIKE_BEFORE = "like-before"
    """A first segment cannot be distinguished from what was copied before, which is unknown."""
    NOT_IN_TIME = "not-in-time"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, and how to spend the time between two checks."""

    seconds: float
    pause: Callable[[], None] = lambda: time.sleep(_SECONDS_BETWEEN_LOOKS)

    def deadline(self) -> float:
        """The deadline by the monotonic clock."""
        return time.monotonic() + self.seconds


def await_first_segment(
    cluster: Cluster,
    topic: TopicDescription,
    before: Sequence[PartitionBytes],
    eligible: Sequence[int],
    patience: Patience,
    tell: Told,
) -> Seen:
    """Returns once a partition has more in remote storage than `before`, or with why there is nothing to wait for.
    `tell` is called with how many partitions have, and how many might (`eligible`).

    Raises TieredctlError as the cluster does, `unknown-topic` where the topic is deleted meanwhile.
    """
    deadline = patience.deadline()
    tiered = {one.partition.partition: one.latest_tiered for one in before}
    while True:
        try:
            answers = cluster.list_offsets(_same(cluster, topic), OffsetSpec.LATEST_TIERED)
        except TieredctlError as error:
            _demand_patience(error, deadline)
            patience.pause()
            continue
        if any(answer.error == _UNSUPPORTED for answer in answers.values()):
            return Seen.CANNOT_TELL
        more = [number for number, answer in answers.items() if _is_more(answer.offset, tiered.get(number))]
        tell(len(more), max(len(eligible), len(more)))
        if more:
            return Seen.YES
        if not eligible:
            return Seen.NOTHING_TO_SEE
        if time.monotonic() > deadline:
            return Seen.NOT_IN_TIME
        patience.pause()


def await_nothing_left(cluster: Cluster, remote: RemoteTopic, patience: Patience, tell: Told) -> Seen:
    """Returns once the metadata has every segment as deleted. `tell` is called with how many segments are, of how many.
    Raises TieredctlError as the cluster and the metadata do."""
    deadline = patience.deadline()
    there_were = remote.segment_count
    while True:
        try:
            _same(cluster, remote.topic)
        except TieredctlError as error:
            _demand_patience(error, deadline)
            patience.pause()
            continue
        remote.refresh()
        left = remote.segment_count
        there_were = max(there_were, left)
        tell(there_were - left, there_were)
        if not left:
            return Seen.YES
        if time.monotonic() > deadline:
            return Seen.NOT_IN_TIME
        patience.pause()


def not_seen(topic: TopicDescription, what: str, seconds: float) -> Finding:
    """The finding that the effect of a change was not seen in time."""
    message = f"the change was made, but {what} within {seconds:g} s"
    return Finding(
        FindingCode.TIERING_NOT_SEEN, f"topic {topic.topic}", message, {"topic": topic.topic, "seconds": seconds}
    )


def _demand_patience(error: TieredctlError, deadline: float) -> None:
    """Raises the error again unless it may be temporary, as when a broker died, and there is time left."""
    if error.code is not ErrorCode.BROKER_UNREACHABLE or time.monotonic() > deadline:
        raise error


def _same(cluster: Cluster, topic: TopicDescription) -> TopicDescription:
    """The topic as it is now, with its current leaders."""
    now = cluster.topic(topic.topic)
    if now.topic_id != topic.topic_id:
        message = f"Topic {topic.topic} was deleted and recreated after the change: the new topic does not have it."
        raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
    return now


def _is_more(offset: int | None, before: int | None) -> bool:
    return offset is not None and (before is None or offset > before)
