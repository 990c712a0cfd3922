"""A topic that a test makes on a shared broker for itself, and deletes again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.ports.cluster import OffsetSpec

from .broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from .remote_segments import COPIED, DELETED, RemoteSegment, RemoteSegments
from .topics import admin_client, answered, create_topics, delete_topic
from .waiting import wait_until

RECORD_BYTES = 600_000
SEGMENT_BYTES = 1 << 20
"""So small that each record but the last soon lies in a closed segment of its own."""
SECONDS = 60


@dataclass(frozen=True)
class OwnTopic:
    """A topic of one partition, at first."""

    broker: KafkaBroker
    name: str

    def write(self, records: int, timestamp_ms: int | None = None, *, partition: int = 0) -> None:
        """Appends records, of the present time by default."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_server, "log_level": 0})
        now_ms = time.time_ns() // 1_000_000
        for _ in range(records):
            producer.produce(self.name, b"." * RECORD_BYTES, partition=partition, timestamp=timestamp_ms or now_ms)
            producer.flush(30)

    def settings(self) -> Mapping[str, str]:
        """All of its settings."""
        resource = ConfigResource(ResourceType.TOPIC, self.name)
        admin = admin_client(self.broker.bootstrap_server)
        entries = answered(lambda: admin.describe_configs([resource])[resource].result(SECONDS))
        return {name: entry.value for name, entry in entries.items()}

    def await_setting(self, name: str, value: str) -> None:
        """Returns once the broker knows it: of a change it hears a moment after the controller has decided."""
        wait_until(lambda: self.settings()[name] == value, f"the broker knows that {name} is {value}", SECONDS)

    def offsets(self) -> list[int | None]:
        """Where it begins, where its leader's disk does, and the last offset in remote storage."""
        with closing(LiveCluster(self.broker.bootstrap_server)) as cluster:
            topic = cluster.topic(self.name)
            specs = (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST_TIERED)
            return [cluster.list_offsets(topic, spec)[0].offset for spec in specs]

    def copied(self) -> list[RemoteSegment]:
        """Its segments in COPY_SEGMENT_FINISHED."""
        return [segment for segment in self.remote() if segment.state == COPIED]

    def remote(self) -> list[RemoteSegment]:
        """Its segments that are not deleted for good."""
        with RemoteSegments(self.broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:
            known.refresh()
            return [segment for segment in known.of_topic(self.name) if segment.state != DELETED]

    def stored_bytes(self) -> int:
        """Of its segments' logs in the remote store."""
        return sum(log.stat().st_size for log in self.broker.remote_dir.glob(f"{self.name}-0-*/*.log"))

    def delete(self) -> None:
        """Nothing happens where it is gone."""
        delete_topic(self.broker.bootstrap_server, self.name)


@contextmanager
def own_topic(broker: KafkaBroker, name: str | None = None, **settings: str) -> Iterator[OwnTopic]:
    """Makes the topic, with settings whose dots are underscores here; it is not tiered unless they say so."""
    topic = OwnTopic(broker, name or f"own-{uuid4().hex[:8]}")
    configs = {"segment.bytes": str(SEGMENT_BYTES)} | {name.replace("_", "."): to for name, to in settings.items()}
    create_topics(broker.bootstrap_server, NewTopic(topic.name, 1, 1, config=configs))
    try:
        yield topic
    finally:
        topic.delete()
