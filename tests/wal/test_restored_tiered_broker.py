"""A tiered partition's local log is lost: a real broker starts on what was restored of it, by both tiers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.topics import TO_THE_END, create_topics
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

TOPIC = "tiered"
SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": "1048576",
    "local.retention.bytes": "1",
    "file.delete.delay.ms": "100",
}
RECORDS = 90


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(jars_of("4.3.1"), work_dir=tmp_path / "broker") as broker:
        yield broker


def values(broker: KafkaBroker) -> list[tuple[int | None, bytes | None]]:
    """Each record from offset 0 to the partition's end."""
    settings = {"bootstrap.servers": broker.bootstrap_server, "group.id": "none", **TO_THE_END}
    consumer = Consumer(settings)
    consumer.assign([beginning := TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int | None, bytes | None]] = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None, f"nothing came after {len(found)} records"
            if (error := message.error()) is None:
                found.append((message.offset(), message.value()))
            elif error.code() == KafkaError.UNKNOWN:  # one that has just started does not know yet what is remote
                found.clear()
                consumer.assign([beginning])
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
    finally:
        consumer.close()


def produce(broker: KafkaBroker, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "linger.ms": 0})
    for number in numbers:
        producer.produce(TOPIC, f"{number} ".encode() * 15_000, partition=0)
        assert producer.flush(60) == 0


def test_a_broker_reads_both_tiers_of_a_tiered_partition_whose_log_was_restored(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    create_topics(broker.bootstrap_server, NewTopic(TOPIC, 1, 1, config=SETTINGS))
    produce(broker, range(RECORDS))
    folder = broker.log_dir / f"{TOPIC}-0"
    wait_until(
        lambda: len(list(folder.glob("*.log"))) == 1, "all but the active segment are in remote storage alone", 120
    )
    before = values(broker)
    broker.stop()
    (active,) = folder.glob("*.log")
    assert int(active.stem) > 0
    store, to = f"file:{tmp_path / 'wal'}", tmp_path / "restored"
    (tmp_path / "wal").mkdir()

    uploaded = this_process("wal", "upload", "--log-dir", broker.log_dir, "--store", store, "--apply")
    restored = this_process("wal", "restore", "--store", store, "--to", to, "--log-dir", broker.log_dir)

    assert (uploaded.exit_code, restored.exit_code) == (0, 0), uploaded.err + restored.err
    shutil.rmtree(folder)
    (to / folder.name).rename(folder)
    broker.start()
    assert values(broker) == before
    produce(broker, range(RECORDS, RECORDS + 3))
    assert [offset for offset, _ in values(broker)] == list(range(RECORDS + 3))
