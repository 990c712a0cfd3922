"""Values of 100 MB, as brokers take them whose `max.message.bytes` allows it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import SECONDS
from tests.records.consumed_records import consumer_of
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.maven import QUICK_JAVA
from tests.rigs.peak_memory import Measured, measured
from tests.rigs.remote_segments import COPIED, RemoteSegments
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode
from tieredctl.records.request import Isolation

pytestmark = [pytest.mark.integration, pytest.mark.exhaustive]

VALUE = 100_000_000
MOST = 110_000_000
ROLLS_AFTER_MS = 10_000
PLAIN, ZSTD, FOLDED = TOPICS = "plain", "zstd", "folded"
SETTINGS = {
    "remote.storage.enable": "true",
    "max.message.bytes": str(MOST),
    "segment.bytes": str(MOST),
    "segment.ms": str(ROLLS_AFTER_MS),
    "retention.ms": "-1",
}
BROKER = {"socket.request.max.bytes": str(2 * MOST), "message.max.bytes": str(MOST)}
MEMORY_OF = 4
"""How many times its largest value a command takes at most, besides what it takes for a small one."""


class RoomyBroker(KafkaBroker):
    """One whose threads do not keep what they took for a large message."""

    heap = "-Xmx2G"
    java_options = (*QUICK_JAVA, "-Djdk.nio.maxCachedBufferSize=1048576")


class Values(NamedTuple):
    """What a consumer gets of each topic's first record, and where it is in remote storage."""

    places: Sequence[str]
    consumed: dict[str, bytes]


def value_of(topic: str) -> bytes:
    """Of bytes that do not fold; of words that fold a few times; and of one that folds thousands of times."""
    draw = random.Random(topic)
    if topic == PLAIN:
        return draw.randbytes(VALUE)
    if topic == ZSTD:
        words = [draw.randbytes(20).hex().encode() for _ in range(5_000)]
        return b" ".join(draw.choices(words, k=VALUE // 41 + 1))[:VALUE]
    return b"0" * VALUE


@pytest.fixture(scope="module")
def values() -> Iterator[Values]:
    with RoomyBroker(jars_of("4.3.1"), properties=BROKER) as broker:
        server = broker.bootstrap_server
        for topic in TOPICS:
            create_topics(server, NewTopic(topic, num_partitions=1, replication_factor=1, config=SETTINGS))
            write(server, topic)
        await_copied(server)
        places = ("--bootstrap-server", server, "--store", f"file:{broker.remote_dir}")
        yield Values(places, {topic: first_value(server, topic) for topic in TOPICS})


def write(server: str, topic: str) -> None:
    """A large record, and one of so much later that it begins the next segment."""
    settings = {"bootstrap.servers": server, "log_level": 2, "message.max.bytes": MOST}
    producer = Producer({**settings, "compression.type": "none" if topic == PLAIN else "zstd"})
    now_ms = time.time_ns() // 1_000_000
    for value, timestamp_ms in ((value_of(topic), now_ms), (b"next", now_ms + 2 * ROLLS_AFTER_MS)):
        producer.produce(topic, value, partition=0, timestamp=timestamp_ms)
        assert producer.flush(SECONDS) == 0


def await_copied(server: str) -> None:
    """Returns once the first record of each topic is in remote storage."""
    with RemoteSegments(server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

        def copied() -> set[str]:
            return {one.topic for one in known.refresh() if one.state == COPIED}

        wait_until(lambda: copied() == set(TOPICS), "each first segment is copied", SECONDS, lambda: str(copied()))


def first_value(server: str, topic: str) -> bytes:
    settings = {"fetch.max.bytes": MOST, "max.partition.fetch.bytes": MOST, "receive.message.max.bytes": 2 * MOST}
    with closing(consumer_of(server, Isolation.READ_UNCOMMITTED, **settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        value = message.value()
        assert isinstance(value, bytes)
        return value


def read(values: Values, topic: str, file: Path, *words: str) -> Measured:
    """How `remote records` ends that writes a topic's first record into an Arrow file."""
    asked = ("remote", "records", f"{topic}:0", *values.places, "--to", "1", "-o", "arrow", *words)
    with file.open("wb") as out:
        return measured(asked, out, SECONDS)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_value_of_100_mb_is_a_consumers_and_takes_a_few_times_its_memory(
    values: Values, topic: str, tmp_path: Path
) -> None:
    assert len(values.consumed[topic]) == VALUE
    allowed = ("--max-batch-bytes", "101MB") if topic == FOLDED else ()
    _, _, of_little = read(values, topic, tmp_path / "nothing", "--max-records", "0")

    code, said, memory = read(values, topic, tmp_path / "value", *allowed)

    assert code == ExitCode.CLEAN, said
    (value,) = pa.ipc.open_stream(tmp_path / "value").read_all().column("value").to_pylist()
    assert value == values.consumed[topic]
    assert memory - of_little < MEMORY_OF * VALUE


def test_one_that_folds_further_than_logs_do_is_not_read_unless_it_is_asked_for(values: Values, tmp_path: Path) -> None:
    code, said, _ = read(values, FOLDED, tmp_path / "value", "--damage", "skip")

    assert code == ExitCode.INCOMPLETE
    assert "unfolds beyond" in said
    assert "offsets 0 to 0 are not returned" in said
