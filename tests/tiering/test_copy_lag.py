"""The copy lag of Kafka 4.4 (KIP-1241) on a real broker: what waits for it is not behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
RECORDS, RECORD_BYTES, SEGMENT_BYTES = 80, 100_000, 1 << 20
LAG_BYTES = 3_000_000
LAGS = {
    "at-once": {},
    "by-time": {"remote.copy.lag.ms": str(HOUR_MS)},
    "by-size": {"remote.copy.lag.ms": str(HOUR_MS), "remote.copy.lag.bytes": str(LAG_BYTES)},
}
SECONDS = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """Eight megabytes in segments of one, in a topic for each lag; at rest."""
    with KafkaBroker(jars_of("4.4.0")) as made:
        for name, lag in LAGS.items():
            create(made, name, lag)
        producer = Producer({"bootstrap.servers": made.bootstrap_server})
        for name in LAGS:
            for _ in range(RECORDS):
                producer.produce(name, b"x" * RECORD_BYTES)
            producer.flush(SECONDS)
        wait_until(lambda: status(made, "at-once")["remoteSegments"] >= 6, "all is copied that does not wait", SECONDS)
        wait_until(lambda: status(made, "by-size")["remoteSegments"] >= 3, "all is copied that waited enough", SECONDS)
        yield made


def create(broker: KafkaBroker, name: str, lag: dict[str, str]) -> None:
    settings = {"remote.storage.enable": "true", "local.retention.ms": str(DAY_MS), "retention.ms": str(10 * DAY_MS)}
    topic = NewTopic(name, 1, 1, config={**settings, "segment.bytes": str(SEGMENT_BYTES), **lag})
    create_topics(broker.bootstrap_server, topic)


def status(broker: KafkaBroker, topic: str) -> dict[str, int]:
    outcome = this_process("topic", "status", topic, "--bootstrap-server", broker.bootstrap_server, "-o", "json")
    summary: dict[str, int] = outcome.document()["summary"]
    return summary


@pytest.mark.parametrize(
    ("topic", "least", "most"),
    [
        ("at-once", 0, 0),
        ("by-time", RECORDS * RECORD_BYTES, RECORDS * RECORD_BYTES * 1.01),
        ("by-size", LAG_BYTES, LAG_BYTES),
    ],
)
def test_topic_status_tells_what_waits(broker: KafkaBroker, topic: str, least: int, most: int) -> None:
    assert least <= status(broker, topic)["waitingBytes"] <= most


def test_doctor_calls_nothing_behind_that_waits_and_tells_what_the_lag_saves(broker: KafkaBroker) -> None:
    outcome = this_process("doctor", "--bootstrap-server", broker.bootstrap_server, "-o", "json")

    found = {(item["code"], item["subject"]): item["evidence"] for item in outcome.document()["items"]}
    assert not {code for code, _ in found} & {"tiering-behind", "copy-stuck", "broker-config-name-unknown"}
    assert found["copy-lag-waits", "by-time-0"]["bytes"] >= RECORDS * RECORD_BYTES
    assert found["copy-lag-waits", "by-size-0"]["bytes"] == LAG_BYTES
    assert ("kept-twice", "by-time-0") not in found
    twice = found["kept-twice", "at-once-0"]
    assert twice["savedByCopyLag"] == twice["bytes"] > 6 * RECORD_BYTES


def test_kafka_refuses_the_lag_that_doctor_calls_an_error(broker: KafkaBroker) -> None:
    with pytest.raises(KafkaException, match="must not exceed local"):
        create(broker, "refused", {"remote.copy.lag.ms": str(DAY_MS + 1)})
