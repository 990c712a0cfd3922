"""A cluster whose remote store keeps what should be gone: of deleted topics, and below a log start that was moved."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tieredctl.ops.snapshots.record_files import RecordFile

from .broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from .maven import JAVA_SOURCES, KafkaJars, compile_java
from .remote_segments import COPIED, DELETED, RemoteSegments
from .topics import answered, create_topics, delete_topic, known_topics, topic_ids
from .waiting import wait_until

ORDERS, TRIMMED, LEFT_BEHIND, STUCK = "orders", "trimmed", "left-behind", "stuck"
DELETE_STARTED = "DELETE_SEGMENT_STARTED"
# Two of them are more than a segment may have, so that each but the last soon lies in a closed segment of its own.
RECORDS, RECORD_BYTES, SEGMENT_BYTES = 6, 600_000, 1 << 20
TRIMMED_RECORDS = 3
SETTLE_SECONDS = 60
_SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}


@dataclass(frozen=True)
class Leftovers:
    """A running broker at rest, and its topics' ids. Every record has RECORD_BYTES, and a segment of its own.

    `orders` is whole. `trimmed` lost its first TRIMMED_RECORDS to DeleteRecords, `left-behind` was deleted: the store
    said that it removed their segments, and did not. `stuck` was deleted, and its removal fails.
    """

    broker: KafkaBroker
    topic_ids: dict[str, str]
    tiered_ms: float
    """When the last segment had been tiered, at the latest."""

    def values(self, topic: str) -> list[bytes]:
        """What a consumer gets from the earliest offset on."""
        first, end = self._offsets(topic)
        found: list[bytes] = []
        with closing(self._consumer()) as consumer:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

            def all_read() -> bool:
                messages = consumer.consume(100, 0.2)
                found.extend(message.value() or b"" for message in messages if message.error() is None)
                return len(found) == end - first

            wait_until(all_read, f"{topic} is read", SETTLE_SECONDS, lambda: f"{len(found)} of {end - first} records")
        return found

    def later_snapshot(self, tiered_for_ms: int) -> Path:
        """The first KRaft snapshot with a record that is younger than this call, and than all that was tiered by so
        much."""
        after_ms = max(time.time() * 1000, self.tiered_ms + tiered_for_ms)
        admin, setting = _admin(self.broker), ConfigResource(ResourceType.TOPIC, ORDERS)
        folder = self.broker.log_dir / "__cluster_metadata-0"
        found: list[Path] = []

        def has_come() -> bool:
            """Changes of settings are records, and enough of those make the controller write a snapshot."""
            greatest = str(RECORD_BYTES * 2 + time.monotonic_ns() % RECORD_BYTES)
            change = ConfigEntry("max.message.bytes", greatest, incremental_operation=AlterConfigOpType.SET)
            setting.incremental_configs = [change]
            answered(lambda: admin.incremental_alter_configs([setting])[setting].result(timeout=30))
            # A file may be finished long after the last record that is in it.
            ends_ms = {
                file: RecordFile(file, is_snapshot=True).last_contained_ms() for file in folder.glob("*.checkpoint")
            }
            found[:] = [file for file, end_ms in ends_ms.items() if end_ms is not None and end_ms > after_ms]
            return bool(found)

        wait_until(has_come, "a snapshot is written", SETTLE_SECONDS)
        return min(found)

    def _offsets(self, topic: str) -> tuple[int, int]:
        with closing(self._consumer()) as consumer:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)

    def _consumer(self) -> Consumer:
        settings = {"group.id": "rig", "enable.auto.commit": False, "log_level": 0}
        return Consumer({"bootstrap.servers": self.broker.bootstrap_server, **settings})


def written_values(topic: str) -> list[bytes]:
    """All that was ever written to a topic."""
    return [f"{topic} {number} ".encode().ljust(RECORD_BYTES, b".") for number in range(RECORDS)]


@contextmanager
def leftovers(jars: KafkaJars, **properties: str) -> Iterator[Leftovers]:
    """A broker that has lived through that; some 15 seconds. Raises DeadlineMissed where it does not get there."""
    storage = compile_java([JAVA_SOURCES / "StubbornStorage.java"], jars.class_path)
    settings = {
        "remote.log.storage.manager.class.name": "StubbornStorage",
        "rsm.config.undeletable.topics": STUCK,
        "rsm.config.delete.enable": "false",
        **properties,
    }
    with KafkaBroker(jars, secure=True, properties=settings, extra_class_path=[storage]) as broker:
        topic_ids = _create_topics(broker)
        _fill(broker)
        _await(broker, "all is tiered", {topic: [COPIED] * (RECORDS - 1) for topic in topic_ids})
        made = Leftovers(broker, topic_ids, time.time() * 1000)
        _await_local_retention(broker)
        admin = _admin(broker)
        for topic in (LEFT_BEHIND, STUCK):
            delete_topic(broker.bootstrap_server, topic)
        trimmed = TopicPartition(TRIMMED, 0, TRIMMED_RECORDS)
        answered(lambda: admin.delete_records([trimmed])[trimmed].result(timeout=30))
        whole, trimmed_states = [COPIED] * (RECORDS - 1), [COPIED] * (RECORDS - 1 - TRIMMED_RECORDS)
        states = {
            ORDERS: whole,
            TRIMMED: [DELETED] * TRIMMED_RECORDS + trimmed_states,
            LEFT_BEHIND: [DELETED] * (RECORDS - 1),
            STUCK: [DELETE_STARTED] * (RECORDS - 1),
        }
        _await(broker, "what is to be deleted was tried", states)
        yield made


def _admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})


def _create_topics(broker: KafkaBroker) -> dict[str, str]:
    server, names = broker.bootstrap_server, (ORDERS, TRIMMED, LEFT_BEHIND, STUCK)
    wait_until(lambda: METADATA_TOPIC in known_topics(server), "the metadata topic is there", 60)
    create_topics(server, *(NewTopic(name, 1, 1, config=_SETTINGS) for name in names))
    return topic_ids(server, names)


def _fill(broker: KafkaBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "batch.num.messages": 1, "log_level": 0})
    for topic in (ORDERS, TRIMMED, LEFT_BEHIND, STUCK):
        for value in written_values(topic):
            producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def _await(broker: KafkaBroker, description: str, states: dict[str, list[str]]) -> None:
    """Waits until the segments of each topic, by offset, are in these states."""
    with RemoteSegments(broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

        def found(topic: str) -> list[str]:
            return [one.state for one in sorted(known.of_topic(topic), key=lambda segment: segment.start_offset)]

        def holds() -> bool:
            known.refresh()
            return all(found(topic) == wanted for topic, wanted in states.items())

        wait_until(holds, description, SETTLE_SECONDS, lambda: str({topic: found(topic) for topic in states}))


def _await_local_retention(broker: KafkaBroker) -> None:
    """Waits until the remote store alone has what was tiered."""
    folders = [broker.log_dir / f"{topic}-0" for topic in (ORDERS, TRIMMED)]
    wait_until(
        lambda: all([log.name for log in folder.glob("*.log")] == [f"{RECORDS - 1:020}.log"] for folder in folders),
        "local retention took what is tiered",
        SETTLE_SECONDS,
    )
