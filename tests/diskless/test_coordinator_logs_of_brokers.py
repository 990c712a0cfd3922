"""Logs of `__diskless_metadata` that a real broker wrote: batched, compressed and counted by Kafka itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC

from tests.cli.command_line import Tieredctl
from tests.diskless.coordinator_logs import HOUR_MS, committed, created, key, put
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.topics import create_topics, delete_topic
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def log_dir(kafka_4: DrivenBroker) -> Iterator[Path]:
    """The log directory of a broker with two coordinators' logs, of a live file each."""
    address = kafka_4.broker.bootstrap_server
    create_topics(address, NewTopic(DISKLESS_METADATA_TOPIC, num_partitions=2, replication_factor=1))
    for number, codec in enumerate(("none", "zstd")):
        producer = Producer({"bootstrap.servers": address, "compression.type": codec, "log_level": 0})
        now_ms = time.time_ns() // 1_000_000
        file = committed(number, 0, 9, number, owners=(number,))
        for record, time_ms in ((created(number), now_ms - 72 * HOUR_MS), (file, now_ms)):
            value = encode_diskless_record(record)
            producer.produce(DISKLESS_METADATA_TOPIC, value, partition=number, timestamp=time_ms)
        assert producer.flush(30) == 0
    yield kafka_4.broker.log_dir
    delete_topic(address, DISKLESS_METADATA_TOPIC)
    folder = kafka_4.broker.log_dir / f"{DISKLESS_METADATA_TOPIC}-0"
    wait_until(lambda: not folder.exists(), "the broker has removed the topic's folders", 60)


def test_files_are_searched_by_all_logs_that_the_broker_counts(
    log_dir: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    now_ms = time.time_ns() // 1_000_000
    for number, age_hours in ((0, 0), (1, 0), (2, 48), (3, 0)):
        put(tmp_path, key(number), now_ms - age_hours * HOUR_MS)
    place = ("--log-dir", log_dir)

    shown = tieredctl("diskless", "format", *place, "-o", "jsonl")
    found = tieredctl("diskless", "orphans", "scan", *place, "--store", f"file:{tmp_path}", "-o", "jsonl")

    assert shown.exit_code == 0
    assert [(line["metadataPartition"], line["metadataOffset"]) for line in shown.lines()] == [
        *((0, offset) for offset in (0, 1)),
        *((1, offset) for offset in (0, 1)),
    ]
    assert found.exit_code == 3
    assert {item["key"]: item["status"] for item in found.lines()} == {
        key(0): "owned",
        key(1): "owned",
        key(2): "orphan",
        key(3): "in-progress",
    }


def test_logs_that_the_broker_wrote_answer_what_their_coordinators_would(log_dir: Path, tieredctl: Tieredctl) -> None:
    place = ("--log-dir", log_dir, "-o", "json")

    offsets = tieredctl("diskless", "offsets", *place)
    batches = tieredctl("diskless", "batches", "t:1@5", *place)
    files = tieredctl("diskless", "files", key(0), key(1), *place)

    assert [one.exit_code for one in (offsets, batches, files)] == [0, 0, 0], offsets.err
    rows = offsets.document()["items"]
    assert [(row["partition"], row["earliest"], row["latest"], row["metadataPartition"]) for row in rows] == [
        (0, 0, 10, 0),
        (1, 0, 10, 1),
    ]
    assert [(one["objectKey"], one["lastOffset"]) for one in batches.document()["items"]] == [(key(1), 9)]
    assert [row["liveAt"] for row in files.document()["items"]] == [[0], [1]]
