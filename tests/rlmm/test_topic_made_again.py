"""A topic that was deleted and made again under its name: `metadata lookup` is about the one that the cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pytest

from tests.cli.command_line import Outcome
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.own_topic import OwnTopic, own_topic
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

TIERED = {"remote_storage_enable": "true", "local_retention_bytes": "1", "retention_ms": "-1"}
RECORDS, SECONDS = 4, 90


def fill(topic: OwnTopic) -> None:
    before = len(topic.copied())
    topic.write(RECORDS)
    wait_until(lambda: len(topic.copied()) == before + RECORDS - 1, "all but the last are copied", SECONDS)


def test_a_lookup_is_about_the_topic_that_the_cluster_has_today(
    driven: DrivenBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"again-{uuid4().hex[:8]}"

    def lookup(offset: int, *words: str, epoch: Sequence[str] = ("--epoch", "0")) -> Outcome:
        capfd.readouterr()
        where = words or ("--bootstrap-server", driven.broker.bootstrap_server)
        asked = ("metadata", "lookup", f"{name}:0", *epoch, "--offset", str(offset))
        return Outcome(run([*asked, *where, "-o", "json"]), *capfd.readouterr())

    with own_topic(driven.broker, name, **TIERED) as topic:
        fill(topic)
        before = lookup(0).document()["items"][0]["topicId"]
    with own_topic(driven.broker, name, **TIERED) as topic:
        of_nothing = lookup(0)
        fill(topic)
        found = lookup(0)
        by_leader = lookup(0, epoch=())
        undecided = lookup(0, "--log-dir", str(driven.broker.log_dir))

    (segment,) = found.document()["items"]
    assert (of_nothing.exit_code, of_nothing.document()["items"]) == (3, []), of_nothing.err
    assert (found.exit_code, segment["startOffset"]) == (0, 0), found.err
    assert segment["topicId"] != before
    assert by_leader.document()["items"] == [segment]
    assert by_leader.document()["summary"]["leaderEpochFrom"] == "leader"
    assert (undecided.exit_code, "--topic-id" in undecided.err) == (2, True), undecided.err
