"""A broker's active segments go into combined objects and out again: a real broker starts on what was restored, and
gives consumers the same records; its logs have the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.topics import TO_THE_END, create_topics
from tests.rigs.workload import COMPRESSIONS

pytestmark = pytest.mark.integration

PLAIN, TRANSACTIONAL = "plain", "transactional"
PARTITIONS = {PLAIN: len(COMPRESSIONS), TRANSACTIONAL: 2}
RECORDS = 20


class Seen(NamedTuple):
    """A record as a consumer gets it."""

    offset: int | None
    timestamp: Any
    key: bytes | None
    value: bytes | None
    headers: Any


def produce(broker: KafkaBroker) -> None:
    """A compression for each partition; transactions committed, aborted, and a plain record after them."""
    for partition, compression in enumerate(COMPRESSIONS):
        producer = Producer({"bootstrap.servers": broker.bootstrap_server, "compression.type": compression})
        for number in range(RECORDS):
            headers: list[tuple[str, str | bytes | None]] = [("round", b"\0\1"), ("empty", None)] if number == 7 else []
            value = None if number == 5 else f"{partition}/{number} ".encode() * (number + 1)
            producer.produce(PLAIN, value, None if number % 4 == 3 else f"{number}", partition, headers=headers)
        assert producer.flush(60) == 0
    transactions = Producer({"bootstrap.servers": broker.bootstrap_server, "transactional.id": "t"})
    transactions.init_transactions(60)
    for end in (transactions.commit_transaction, transactions.abort_transaction, transactions.commit_transaction):
        transactions.begin_transaction()
        for partition in range(PARTITIONS[TRANSACTIONAL]):
            transactions.produce(TRANSACTIONAL, end.__name__, partition=partition)
        end(60)


def consumed(broker: KafkaBroker, isolation: str) -> dict[tuple[str, int], list[Seen]]:
    """Every record of every partition, up to its end."""
    settings = {
        "bootstrap.servers": broker.bootstrap_server,
        "group.id": "none",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        **TO_THE_END,
    }
    consumer = Consumer(settings)
    found = {(topic, number): list[Seen]() for topic, count in PARTITIONS.items() for number in range(count)}
    consumer.assign([TopicPartition(*place, 0) for place in found])
    ended: set[tuple[str, int]] = set()
    try:
        while ended != set(found):
            message = consumer.poll(60)
            assert message is not None, f"nothing came of {set(found) - ended}"
            place = str(message.topic()), int(message.partition() or 0)
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                ended.add(place)
                continue
            seen = message.offset(), message.timestamp(), message.key(), message.value(), message.headers()
            found[place].append(Seen(*seen))
    finally:
        consumer.close()
    return found


def logs(log_dir: Path) -> dict[str, bytes]:
    """The logs of the topics' partitions, by their names below the log directory."""
    files = (file for topic in PARTITIONS for file in log_dir.glob(f"{topic}-*/*.log"))
    return {str(file.relative_to(log_dir)): file.read_bytes() for file in files}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    settings = {"remote.log.storage.system.enable": "false"}
    with KafkaBroker(jars_of("4.3.1"), properties=settings, work_dir=tmp_path / "broker") as broker:
        yield broker


def test_a_broker_on_a_restored_log_directory_gives_every_record_with_the_same_bytes(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    create_topics(broker.bootstrap_server, *(NewTopic(name, count, 1) for name, count in PARTITIONS.items()))
    produce(broker)
    before = {level: consumed(broker, level) for level in ("read_uncommitted", "read_committed")}
    broker.stop()
    written = logs(broker.log_dir)
    store = f"file:{tmp_path / 'wal'}"
    (tmp_path / "wal").mkdir()
    restored = tmp_path / "restored"

    uploaded = this_process("wal", "upload", "--log-dir", broker.log_dir, "--store", store, "--apply")
    words = ("wal", "restore", "--store", store, "--to", restored, "--broker-files-from", broker.log_dir)
    outcome = this_process(*words)

    assert (uploaded.exit_code, outcome.exit_code) == (0, 0), uploaded.err + outcome.err
    assert logs(restored) == written
    broker.log_dir.rename(tmp_path / "lost")
    restored.rename(broker.log_dir)
    broker.start()
    assert {level: consumed(broker, level) for level in before} == before
    broker.stop()
    assert logs(broker.log_dir) == written
