"""A metadata topic that a real broker compacts, keys as KIP-1266 has them: what is left is read right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.metadata_logs import COPIED, DELETED, DELETING, copied, event_records, segment_id, segment_key, updated
from tests.orphans.test_compacted_metadata import statuses
from tests.orphans.test_rules import key
from tests.rigs.availability import rig_unavailable
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.maven import kafka_jars
from tests.rigs.prerequisites import RigMissing
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tieredctl.kafka.live_topic import LiveTopic
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.metadata_source import MetadataSource

pytestmark = pytest.mark.integration

LIFE: list[MetadataEvent] = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.ms": "500",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "500",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    properties = {"remote.log.storage.system.enable": "false", "log.cleaner.backoff.ms": "200"}
    try:
        jars = kafka_jars("4.3.1")
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with KafkaBroker(jars, work_dir=tmp_path / "broker", properties=properties) as broker:
        topic = NewTopic(METADATA_TOPIC, num_partitions=1, replication_factor=1, config=COMPACTED)
        create_topics(broker.bootstrap_server, topic)
        yield broker


def write(broker: KafkaBroker, records: list[tuple[bytes | None, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})
    for record_key, value in records:
        producer.produce(METADATA_TOPIC, value, key=record_key, partition=0)
    assert producer.flush(30) == 0


def keyed(events: list[MetadataEvent]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in event_records(dict(enumerate(events)))]


def demand_right(source: MetadataSource) -> None:
    stream = EventStream(source)
    (known,) = replayed(stream).segments()
    assert (known[1].metadata.segment_id, known[1].metadata.state) == (segment_id(2), COPIED)
    # Kafka keeps files that it replaced for a minute.
    codes = [finding.code for finding in stream.findings if finding.code is not FindingCode.FOLDER_PASSED_OVER]
    assert codes == ["metadata-compacted"]
    assert statuses(EventStream(source), [key(1), key(2, start=10)]) == {key(1): "unknown", key(2, start=10): "owned"}


def test_a_topic_that_a_broker_compacts(broker: KafkaBroker) -> None:
    address = broker.bootstrap_server
    write(broker, keyed([*LIFE, *copied(2, 10, 19)]))
    write(broker, [(segment_key(1, state), None) for state in RemoteLogSegmentState])
    before = EventStream(LiveTopic(address))
    assert [known.metadata.segment_id for _, known in replayed(before).segments()] == [segment_id(2)]
    assert before.findings == []

    def first_segment_is_forgotten() -> bool:
        write(broker, keyed([updated(2, COPIED)]))  # a segment of the log is closed by what comes after it
        records = [record for chunk in LiveTopic(address).chunks(0) for record in chunk.records()]
        return records[0].offset == len(LIFE) and None not in {record.value for record in records}

    wait_until(first_segment_is_forgotten, "the log was compacted", 90)

    demand_right(LiveTopic(address))
    broker.stop()
    demand_right(LogDirectories([broker.log_dir]))
