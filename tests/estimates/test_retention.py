"""`estimate retention` on real brokers: what it names is what the broker then deletes, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import this_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.topics import admin_client, answered, create_topics, delete_topic
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

TOPIC = "expiring"
# Two of them are more than a segment may have, so that each but the last soon lies in a tiered segment of its own.
RECORDS, RECORD_BYTES = 7, 600_000
SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}
SECONDS = 60
LONG_AGO_MS = 1_000
"""So that the records are older than a retention by time, however quick the steps before are."""


class Expiring:
    """A topic of one partition, six records of which are tiered, each in a segment of its own."""

    def __init__(self, driven: DrivenBroker) -> None:
        self._server = driven.broker.bootstrap_server
        self._admin = admin_client(self._server)
        create_topics(self._server, NewTopic(TOPIC, 1, 1, config=SETTINGS))
        producer = Producer({"bootstrap.servers": self._server, "log_level": 0})
        for number in range(RECORDS):
            value = f"{number}".encode().ljust(RECORD_BYTES, b".")
            producer.produce(TOPIC, value, partition=0, timestamp=LONG_AGO_MS)
        assert producer.flush(30) == 0
        every = dict.fromkeys(range(RECORDS - 1), "COPY_SEGMENT_FINISHED")
        wait_until(lambda: self.states() == every, "the segments are tiered", SECONDS)
        # `UnifiedLog.onlyLocalLogSegmentsSize` counts a last tiered segment of one record while it is local too.
        wait_until(lambda: self.offset("earliestLocal") == RECORDS - 1, "none of them is local", SECONDS)

    def estimate(self, *words: str) -> tuple[list[int], int]:
        """The start offsets of the segments that would go, and where the log would begin."""
        outcome = this_process("estimate", "retention", TOPIC, "--bootstrap-server", self._server, "-o", "json", *words)
        document = outcome.document()
        assert outcome.exit_code == 0
        return [item["startOffset"] for item in document["items"]], document["summary"]["logStartOffsets"]["0"]

    def set(self, name: str, value: str) -> None:
        change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[change])
        answered(lambda: self._admin.incremental_alter_configs([resource])[resource].result(timeout=30))

    def delete_records(self, before_offset: int) -> None:
        wanted = TopicPartition(TOPIC, 0, before_offset)
        answered(lambda: self._admin.delete_records([wanted])[wanted].result(timeout=30))

    def await_deleted(self, gone: list[int], log_start_offset: int) -> None:
        """Waits until these segments are deleted for good, and the log begins there."""
        left = [number for number in range(RECORDS - 1) if number >= log_start_offset]
        wait_until(lambda: self.segments() == left, f"{gone} are deleted", SECONDS, lambda: f"left: {self.segments()}")
        wait_until(lambda: self.offset("earliest") == log_start_offset, "the log start moves", SECONDS)

    def segments(self) -> list[int]:
        """The start offsets of the segments that are not deleted, or not for good."""
        return sorted(self.states())

    def states(self) -> dict[int, str]:
        """Of each of these segments, by its start offset."""
        words = ("metadata", "segments", "--topic", TOPIC, "--bootstrap-server", self._server, "-o", "jsonl")
        lines: list[dict[str, Any]] = this_process(*words).lines()
        return {line["startOffset"]: line["state"] for line in lines}

    def offset(self, name: str) -> int:
        outcome = this_process("offsets", TOPIC, "--bootstrap-server", self._server, "-o", "json")
        return int(outcome.document()["items"][0][name])

    def delete(self) -> None:
        delete_topic(self._server, TOPIC)


@pytest.fixture(params=["kafka_4", "kafka_3"])
def expiring(request: pytest.FixtureRequest) -> Iterator[Expiring]:
    made = Expiring(request.getfixturevalue(request.param))
    yield made
    made.delete()


def test_what_is_estimated_is_what_the_broker_deletes(expiring: Expiring) -> None:
    assert expiring.estimate() == ([], 0)

    by_size = expiring.estimate("--retention-bytes", str(RECORD_BYTES * 5))
    expiring.set("retention.bytes", str(RECORD_BYTES * 5))

    assert by_size == ([0, 1], 2)
    expiring.await_deleted(*by_size)

    by_offset = expiring.estimate("--before-offset", "4")
    expiring.delete_records(4)

    assert by_offset == ([2, 3], 4)
    expiring.await_deleted(*by_offset)

    by_time = expiring.estimate("--retention-ms", "1000")
    expiring.set("retention.ms", "1000")

    assert by_time == ([4, 5], 6)
    wait_until(lambda: not expiring.states(), "all that was tiered is deleted", SECONDS)
