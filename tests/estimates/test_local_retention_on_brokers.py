"""`estimate retention` of local retention: what it names is what the broker then takes off its disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome, this_process
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.remote_segments import COPIED, RemoteSegments
from tests.rigs.topics import admin_client, answered, create_topics, delete_topic
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

TOPIC = "trimmed"
# Two of them are more than a segment may have, so that each but the last is soon remote, in a segment of its own.
RECORDS, RECORD_BYTES = 7, 600_000
SETTINGS = {"remote.storage.enable": "true", "segment.bytes": str(1 << 20), "retention.ms": "-1"}
SECONDS = 60
LONG_AGO_MS = 1_000
"""So that the records are older than a retention by time, however quick the steps before are."""


class Trimmed:
    """A topic of one partition, all of which is on the broker's disk, and all but the last record in remote storage."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._admin = admin_client(broker.bootstrap_server)
        create_topics(broker.bootstrap_server, NewTopic(TOPIC, 1, 1, config=SETTINGS))
        producer = Producer({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})
        for number in range(RECORDS):
            value = f"{number}".encode().ljust(RECORD_BYTES, b".")
            producer.produce(TOPIC, value, partition=0, timestamp=LONG_AGO_MS)
        assert producer.flush(30) == 0
        with RemoteSegments(broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

            def tiered() -> bool:
                known.refresh()
                return sum(one.state == COPIED for one in known.of_topic(TOPIC)) == RECORDS - 1

            wait_until(tiered, "all but the last segment is tiered", SECONDS)

    def estimate(self, *words: str) -> Outcome:
        where = ("--bootstrap-server", self._broker.bootstrap_server)
        return this_process("estimate", "retention", TOPIC, *where, "-o", "json", *words)

    def would_go(self, *words: str) -> list[int]:
        """The start offsets of the local segments that would go; nothing remote would."""
        items = self.estimate(*words).document()["items"]
        assert {item["tier"] for item in items} <= {"local"}
        return [item["startOffset"] for item in items]

    @property
    def log_dir(self) -> str:
        return str(self._broker.log_dir)

    def on_disk(self) -> list[int]:
        """The base offsets of the segments on the broker's disk."""
        return sorted(int(log.stem) for log in (self._broker.log_dir / f"{TOPIC}-0").glob("*.log"))

    def set(self, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[change])
        answered(lambda: self._admin.incremental_alter_configs([resource])[resource].result(timeout=30))

    def await_on_disk(self, left: list[int]) -> None:
        wait_until(lambda: self.on_disk() == left, f"{left} are left", SECONDS, lambda: f"there are {self.on_disk()}")

    def delete(self) -> None:
        delete_topic(self._broker.bootstrap_server, TOPIC)


@pytest.fixture(params=["kafka_4", pytest.param("kafka_3", marks=pytest.mark.exhaustive)])
def trimmed(request: pytest.FixtureRequest) -> Iterator[Trimmed]:
    driven: DrivenBroker = request.getfixturevalue(request.param)
    made = Trimmed(driven.broker)
    yield made
    made.delete()


def test_what_is_estimated_is_what_leaves_the_disk(trimmed: Trimmed, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    elsewhere = trimmed.estimate("--local-retention-ms", "1", "--log-dir", str(tmp_path))
    above = trimmed.estimate("--retention-bytes", "1000", "--local-retention-bytes", "2000")
    assert (elsewhere.exit_code, above.exit_code) == (2, 2)

    by_size = ("--local-retention-bytes", str(RECORD_BYTES * 5))
    from_metadata, from_disk = trimmed.would_go(*by_size), trimmed.would_go(*by_size, "--log-dir", trimmed.log_dir)
    trimmed.set("local.retention.bytes", str(RECORD_BYTES * 5))

    assert from_metadata == from_disk == [0, 1]
    trimmed.await_on_disk([2, 3, 4, 5, 6])

    by_time = trimmed.estimate("--local-retention-ms", "1000", "--log-dir", trimmed.log_dir).document()
    trimmed.set("local.retention.ms", "1000")

    assert [item["startOffset"] for item in by_time["items"]] == [2, 3, 4, 5]
    assert RECORD_BYTES < by_time["summary"]["localBytesOnceTiered"] < RECORD_BYTES + 1000
    trimmed.await_on_disk([RECORDS])  # the active segment was closed, tiered and removed, and an empty one is there
