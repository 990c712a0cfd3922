"""`offsets` on real brokers: what Kafka's own GetOffsetShell says, for every special offset that it knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, own_process, this_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.tools import tool_output

pytestmark = pytest.mark.integration

SPECS = {
    "earliest": "earliest",
    "earliest-local": "earliestLocal",
    "latest-tiered": "latestTiered",
    "earliest-pending-upload": "earliestPendingUpload",
    "latest": "latest",
    "max-timestamp": "maxTimestampOffset",
}
"""Kafka's names, and ours."""
TOPICS = ("orders", "payments", "clicks.eu-west_1", "ledger", "untiered")
SINCE_4_2 = ("earliest-pending-upload",)


def offsets(driven: DrivenBroker, topic: str, *words: str | Path) -> Outcome:
    where = ("--bootstrap-server", driven.broker.bootstrap_server)
    return this_process("offsets", topic, *where, "-o", "json", *words)


def ours(driven: DrivenBroker) -> dict[str, dict[tuple[str, int], int]]:
    """By our name of the offset: that of each partition which has one."""
    found: dict[str, dict[tuple[str, int], int]] = {name: {} for name in SPECS.values()}
    for topic in TOPICS:
        for row in offsets(driven, topic).document()["items"]:
            for name in SPECS.values():
                if row[name] is not None:
                    found[name][topic, row["partition"]] = row[name]
    return found


def kafkas_own(driven: DrivenBroker, spec: str) -> dict[tuple[str, int], int]:
    said = tool_output(
        driven.broker.jars,
        "org.apache.kafka.tools.GetOffsetShell",
        *("--bootstrap-server", driven.broker.bootstrap_server, "--topic", "|".join(TOPICS), "--time", spec),
    )
    lines = [line.rsplit(":", 2) for line in said.splitlines() if line.startswith(TOPICS)]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in lines if offset}


def test_each_offset_is_what_get_offset_shell_says(driven: DrivenBroker) -> None:
    known = [spec for spec in SPECS if spec not in SINCE_4_2 or driven.broker.jars.release >= (4, 2)]

    found = ours(driven)

    assert {spec: found[SPECS[spec]] for spec in known} == {spec: kafkas_own(driven, spec) for spec in known}


@pytest.mark.parametrize("driven", ["kafka_3"], indirect=True)
def test_a_release_that_does_not_know_an_offset_is_reported(driven: DrivenBroker) -> None:
    outcome = offsets(driven, "orders")

    assert outcome.exit_code == 0
    assert {json.dumps(row["errors"]) for row in outcome.document()["items"]} == {
        '{"earliestPendingUpload": "UNSUPPORTED_VERSION"}'
    }
    assert "earliestPendingUpload is unknown: UNSUPPORTED_VERSION" in outcome.err


def test_a_topic_that_is_not_there_is_a_mistake_of_usage(kafka_4: DrivenBroker) -> None:
    outcome = offsets(kafka_4, "no-such-topic")

    assert outcome.exit_code == 2
    assert "has no topic no-such-topic" in outcome.err
    assert "Traceback" not in outcome.err


def test_nobody_listening_is_a_sentence() -> None:
    outcome = own_process("offsets", "orders7", "--bootstrap-server", "localhost:1")

    assert outcome.exit_code == 1
    assert "localhost:1 cannot be reached: connection refused" in outcome.err
