"""Partitions have figures of their own while they are in trouble: the worst of each topic, with who has to copy."""

from __future__ import annotations

from collections.abc import Sequence

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import TOPIC_ID, copied, started
from tieredctl.model.clock import Clock
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.monitoring.partition_figures import MOST_OF_A_TOPIC, PartitionFigures, troubled_partitions

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000
CLOCK = Clock(NOW_MS, HOUR_MS)
SETTINGS = {"remote.storage.enable": "true", "segment.bytes": "1000", "segment.ms": str(HOUR_MS)}


def partition(number: int, topic_id: str = TOPIC_ID) -> TopicIdPartition:
    return TopicIdPartition(topic_id, "orders", number)


def facts(number: int, *, local_bytes: int = 100, leader: int | None = 7) -> PartitionFacts:
    """Tiered to 99, with 50 offsets on the disk that are not."""
    return PartitionFacts(
        *(partition(number), leader),
        earliest=0,
        earliest_local=100,
        latest=150,
        latest_tiered=99,
        local_bytes=local_bytes,
    )


def tiered(number: int, ago_ms: int) -> list[MetadataEvent]:
    return [*copied(number + 1, 0, 99, partition=partition(number), max_timestamp_ms=NOW_MS - ago_ms)]


def troubled(
    events: Sequence[MetadataEvent], partitions: Sequence[PartitionFacts] = (), **settings: str
) -> Sequence[PartitionFigures]:
    topics = {"orders": TopicSettings("orders", SETTINGS | settings)}
    cluster = ClusterSnapshot(CLOCK, topics=topics, partitions=partitions)
    return troubled_partitions(replayed(EventStream(EventsInMemory(events))), cluster, CLOCK, {"orders"})


def test_a_partition_that_keeps_up_has_no_figures() -> None:
    assert troubled(tiered(0, HOUR_MS), [facts(0)]) == []


def test_one_that_is_late_by_bytes_or_by_time_has_its_lag_and_its_leader() -> None:
    events = [*tiered(0, HOUR_MS), *tiered(1, 4 * HOUR_MS)]

    by_bytes, by_time = troubled(events, [facts(0, local_bytes=3_500), facts(1, leader=3)])

    assert by_bytes.lag is not None
    assert (by_bytes.partition, by_bytes.leader, by_bytes.lag.segment_sizes) == (0, 7, 3.5)
    assert by_time.lag is not None
    assert (by_time.partition, by_time.leader, by_time.lag.offsets) == (1, 3, 50)
    assert by_time.lag.since_ms == NOW_MS - 4 * HOUR_MS


def test_a_lag_that_was_asked_for_is_no_trouble() -> None:
    lag = {
        "local.retention.ms": str(9 * HOUR_MS),
        "remote.copy.lag.ms": str(8 * HOUR_MS),
        "remote.copy.lag.bytes": "-1",
    }

    assert troubled(tiered(0, 4 * HOUR_MS), [facts(0)], **lag) == []
    assert len(troubled(tiered(0, 12 * HOUR_MS), [facts(0)], **lag)) == 1


def test_stuck_copies_of_a_topic_that_was_recreated_are_one_series() -> None:
    began = NOW_MS - 2 * HOUR_MS
    events = [
        started(1, 100, 109, partition=partition(0), event_timestamp_ms=began),
        started(2, 0, 9, partition=partition(0, "AAAAAAAAAAAAAAAAAAAAAQ"), event_timestamp_ms=began),
    ]

    (one,) = troubled(events, [facts(0)])

    assert (one.topic, one.partition, one.leader, one.stuck_copies) == ("orders", 0, 7, 2)


def test_only_the_worst_of_a_topic_have_figures() -> None:
    late = [facts(number, local_bytes=10_000 + number) for number in range(MOST_OF_A_TOPIC + 20)]

    found = troubled(tiered(0, HOUR_MS), late)

    assert [one.partition for one in found] == [*range(20, MOST_OF_A_TOPIC + 20)]
