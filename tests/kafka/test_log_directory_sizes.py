"""What brokers report of their log directories."""

from __future__ import annotations

from typing import Any

import pytest

from tieredctl.kafka.live_cluster import LiveCluster

TOPIC = "t"


def log_dir(path: str, size: int, *, is_future: bool) -> Any:
    from kafka.protocol.admin import DescribeLogDirsResponse

    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition(
        partition_index=0, partition_size=size, offset_lag=0, is_future_key=is_future
    )
    topics = [topic(name=TOPIC, partitions=[partition])]
    return result(error_code=0, log_dir=path, topics=topics, total_bytes=1 << 20, usable_bytes=1 << 10)


def test_a_replica_that_moves_to_another_disk_has_the_bytes_of_the_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    in_use, copied_so_far = log_dir("/a", 1000, is_future=False), log_dir("/b", 10, is_future=True)
    for log_dirs in [[in_use, copied_so_far], [copied_so_far, in_use]]:
        monkeypatch.setattr(LiveCluster, "_log_dirs", lambda _, log_dirs=log_dirs: iter([(1, log_dirs)]))
        cluster = LiveCluster.__new__(LiveCluster)
        assert cluster.replica_bytes([TOPIC]) == {(TOPIC, 0): {1: 1000}}
