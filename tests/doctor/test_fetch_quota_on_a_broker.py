"""A real broker whose fetch quota (KIP-956) is below what came together in a topic that a group reads."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cli.command_line import this_process
from tests.rigs.availability import rig_unavailable
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import RECORD_BYTES, SECONDS, own_topic
from tests.rigs.prerequisites import RigMissing
from tests.rigs.waiting import wait_until
from tieredctl.ops.cluster.broker_settings import FETCH_QUOTA

pytestmark = [pytest.mark.integration, pytest.mark.exhaustive]

TIERED = {"remote_storage_enable": "true", "local_retention_bytes": "1", "retention_ms": "-1"}
HOURS = 2
RATE = 2 * RECORD_BYTES // (HOURS * 3_600)
"""Three segments of one record each, of which two came after the first."""


def found(broker: KafkaBroker) -> list[str]:
    document = this_process("doctor", "--bootstrap-server", broker.bootstrap_server, "-o", "json").document()
    return [item["subject"] for item in document["items"] if item["code"] == "fetch-quota-too-low"]


def commit(broker: KafkaBroker, topic: str, offset: int) -> None:
    with closing(Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": "slow"})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


@pytest.mark.parametrize(("quota", "expected"), [(RATE // 2, ["broker 1"]), (RATE * 2, [])])
def test_a_quota_is_too_low_for_a_group_that_is_behind_and_for_no_other(quota: int, expected: list[str]) -> None:
    try:
        started = KafkaBroker(jars_of("4.3.1"), properties={FETCH_QUOTA: str(quota)})
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with started as broker, own_topic(broker, **TIERED) as topic:
        topic.write(4, time.time_ns() // 1_000_000 - HOURS * 3_600_000)
        wait_until(lambda: topic.offsets()[1:] == [3, 2], "three segments are in remote storage alone", SECONDS)
        commit(broker, topic.name, 0)
        behind = found(broker)
        commit(broker, topic.name, 3)

        assert (behind, found(broker)) == (expected, [])
