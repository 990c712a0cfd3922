"""Asks a partition's leader for its log: where it begins and ends in each tier, and its leader epochs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.local_log import LeaderLog, epochs_from
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, TopicDescription, settings_of

_UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"


class LeaderAnswers(NamedTuple):
    """Who leads a partition, and its log."""

    leader: int | None
    log: LeaderLog
    knows_pending_upload: bool
    """Whether the leader's release knows the earliest pending upload offset (Kafka 4.2 and later)."""


def only_partition(topic: TopicDescription, partition: int) -> TopicDescription:
    """A topic and one of its partitions. Raises TieredctlError `unknown-topic` where it has no such partition."""
    return only_partitions(topic, [partition])


def only_partitions(topic: TopicDescription, partitions: Collection[int]) -> TopicDescription:
    """The topic with only these partitions. Raises TieredctlError `unknown-topic` if it lacks one."""
    for partition in sorted({*partitions} - {one.partition for one in topic.partitions}):
        there = counted(len(topic.partitions), "partition")
        message = f"Topic {topic.topic} has {there}, but no partition {partition}."
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, message, hint="")
    return replace(topic, partitions=tuple(one for one in topic.partitions if one.partition in partitions))


def is_tiered(cluster: Cluster, name: str) -> bool:
    """Whether a topic has remote.storage.enable. Raises TieredctlError as the cluster does."""
    setting = settings_of(cluster, name).get("remote.storage.enable")
    return setting is not None and setting.value == "true"


def read_leader_log(cluster: Cluster, topic: TopicDescription) -> LeaderAnswers:
    """The log of the one partition of `topic`. Its start is asked for first, and again after its epochs: a leader
    forgets those below a log start that rises, and then answers that any earlier epoch ended where its first one
    begins. Its end is asked for last.

    A release that does not know -4 (before 3.5) has all of its log on the leader's disk. Raises TieredctlError as the
    cluster does, and `broker-unreachable` where the leader does not answer.
    """
    log_start = _offset_in(_asked(cluster, topic, OffsetSpec.EARLIEST), topic)
    local = _asked(cluster, topic, OffsetSpec.EARLIEST_LOCAL)
    local_start = log_start if local.error == _UNSUPPORTED_VERSION else max(log_start, _offset_in(local, topic))
    pending = _asked(cluster, topic, OffsetSpec.EARLIEST_PENDING_UPLOAD)
    epochs = list(reversed(list(_epochs_backwards(cluster, topic, log_start))))
    log_start = max(log_start, _offset_in(_asked(cluster, topic, OffsetSpec.EARLIEST), topic))
    local_start = max(log_start, local_start)
    end = max(local_start, _offset_in(_asked(cluster, topic, OffsetSpec.LATEST), topic))
    log = LeaderLog(log_start, local_start, end, tuple(epochs_from(epochs, log_start)), pending.offset)
    return LeaderAnswers(topic.partitions[0].leader, log, pending.error != _UNSUPPORTED_VERSION)


def _epochs_backwards(cluster: Cluster, topic: TopicDescription, log_start: int) -> Iterator[tuple[int, int]]:
    """Each leader epoch with its first offset, from the latest back to that of the log start."""
    (partition,) = topic.partitions
    number, epoch = partition.partition, partition.leader_epoch
    reached = cluster.epoch_end_offset(topic, number, epoch)
    while reached is None and epoch > 0:
        # No answer has an epoch under which nothing was written yet.
        epoch -= 1
        reached = cluster.epoch_end_offset(topic, number, epoch)
    while reached is not None:
        epoch = reached[0]
        earlier = cluster.epoch_end_offset(topic, number, epoch - 1) if epoch > 0 else None
        start = earlier[1] if earlier else log_start
        yield epoch, max(start, log_start)
        reached = earlier if earlier and start > log_start else None


def _offset_in(answer: ListedOffset, topic: TopicDescription) -> int:
    if answer.offset is None:
        reason = answer.error or "it reported no offset"
        name = f"{topic.topic}-{topic.partitions[0].partition}"
        message = f"The leader of {name} did not report where its log begins and ends: {reason}."
        raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint="Try again when the partition has a leader.")
    return answer.offset


def _asked(cluster: Cluster, topic: TopicDescription, timestamp: int) -> ListedOffset:
    return cluster.list_offsets(topic, timestamp)[topic.partitions[0].partition]
