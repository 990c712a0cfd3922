"""A topic that was deleted and made again under its name: what is read is the new one's alone, as a consumer reads."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from tests.records.consumed_records import Row, consumed
from tests.records.kafka_records import rows_of
from tests.records.test_on_brokers import places
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.own_topic import SECONDS, OwnTopic, own_topic
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.wiring.records import topic_records

pytestmark = pytest.mark.integration
TIERED = {"remote_storage_enable": "true", "local_retention_ms": "86400000"}
NAME = "made-again"


def write(topic: OwnTopic, text: str, records: int) -> None:
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap_server, "log_level": 0})
    for number in range(records):
        producer.produce(topic.name, f"{text} {number} ".encode() * 60_000)
        producer.flush(SECONDS)
    wait_until(lambda: len(topic.copied()) >= 2, "two segments are copied", SECONDS)


def test_only_the_new_topic_is_read_also_by_whoever_read_the_old_one(kafka_4: DrivenBroker) -> None:
    live, store = places(kafka_4)
    with own_topic(kafka_4.broker, NAME, **TIERED) as topic:
        write(topic, "earlier", 4)
        with topic_records(live, store, Selection.of(NAME)) as opened:
            (before,) = opened.partitions
            old = opened.read(before, RecordRequest(on_damage=OnDamage.SKIP))
            reading = iter(old)
            old_rows = rows_of([next(reading)])
            topic.delete()
            wait_until(lambda: topic.stored_bytes() == 0, "the broker deletes the objects", SECONDS)
            with own_topic(kafka_4.broker, NAME, **TIERED) as later:
                write(later, "later", 5)

                old_rows += rows_of(reading)
                for isolation in Isolation:
                    rows, after = everything(kafka_4, isolation)
                    assert rows == consumed(kafka_4.broker.bootstrap_server, NAME, 0, isolation)
            wait_until(lambda: later.remote() == [], "the shared broker has nothing left of it", SECONDS)

    assert after.topic_id != before.partition.topic_id
    assert {row[4].partition(b" ")[0] for row in rows} == {b"later"}
    assert {row[4].partition(b" ")[0] for row in old_rows} == {b"earlier"}
    assert old.lost_offsets == before.spans[-1].last + 1 - len(old_rows) > 0
    assert exit_code_of(old.findings) is ExitCode.CORRUPTION
    assert {one.code for one in old.findings} == {FindingCode.OFFSET_GAP}


def everything(driven: DrivenBroker, isolation: Isolation) -> tuple[list[Row], TopicIdPartition]:
    with topic_records(*places(driven), Selection.of(NAME), with_local=True) as opened:
        (partition,) = opened.partitions
        records = opened.read(partition, RecordRequest(isolation=isolation))
        rows = [row[:7] for row in rows_of(records)]
        assert records.findings == []
        return rows, partition.partition
