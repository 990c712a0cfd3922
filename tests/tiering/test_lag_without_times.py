"""How long a topic lags is known by its records' timestamps alone: where these are none, so is the lag."""

from __future__ import annotations

import pytest

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import TOPIC_ID, copied
from tests.tiering.model_cluster import NOW_MS, TOPIC, ModelCluster
from tieredctl.model.clock import Clock
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts, ReplayFacts
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.doctor.gathering import ReadMetadata, with_metadata
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.monitoring.topic_figures import topic_figures
from tieredctl.ops.status.facts import facts_of_cluster
from tieredctl.ops.tiering.topic_status import remote_parts, topic_status

HOUR_MS = 3_600_000
PARTITION = TopicIdPartition(TOPIC_ID, TOPIC, 0)
CLOCK = Clock(NOW_MS, HOUR_MS)
TIMES = {
    "an hour old": (NOW_MS - HOUR_MS, HOUR_MS),
    "of a clock a little ahead": (NOW_MS + 1000, 0),
    "none": (-1, None),
    "in microseconds": (NOW_MS * 1000, None),
}
each_time = pytest.mark.parametrize(("newest_ms", "lag_ms"), TIMES.values(), ids=TIMES)


def stream(newest_ms: int) -> EventStream:
    return EventStream(EventsInMemory(copied(1, 0, 99, partition=PARTITION, max_timestamp_ms=newest_ms)))


@each_time
def test_topic_status_has_no_lag_of_what_has_no_time(newest_ms: int, lag_ms: int | None) -> None:
    cluster = ModelCluster(own={"remote.storage.enable": "true"}, remote_segments={1: (0, 99)}, latest_tiered=99)

    found = topic_status(cluster, TOPIC, remote_parts(stream(newest_ms)), NOW_MS, HOUR_MS)

    (row,) = found.rows
    assert row.not_tiered is not None
    assert (row.not_tiered > 0, row.lag_ms) == (True, lag_ms)


@each_time
def test_nor_have_status_and_the_exporter(newest_ms: int, lag_ms: int | None) -> None:
    part = PartitionFacts(PARTITION, earliest=0, earliest_local=90, latest_tiered=99, latest=150, local_bytes=10)
    settings = TopicSettings(TOPIC, {"remote.storage.enable": "true", "segment.bytes": "1000"})
    cluster = ClusterSnapshot(CLOCK, topics={TOPIC: settings}, partitions=[part])
    metadata = replayed(stream(newest_ms))

    (figures,) = topic_figures(metadata, cluster, CLOCK)
    seen = with_metadata(cluster, lambda: ReadMetadata([metadata], ReplayFacts(1, 0.0, 0.0), ()))
    lag = facts_of_cluster(seen, None, []).lag

    assert (figures.lag_offsets, lag.offsets) == (50, 50)
    moments = [None if one is None else max(0, NOW_MS - one) for one in (figures.lag_since_ms, lag.since_ms)]
    assert moments == [lag_ms, lag_ms]
