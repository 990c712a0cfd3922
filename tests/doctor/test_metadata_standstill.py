"""Leaders delete remote segments in the thread that applies cluster metadata: what `doctor` says of them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.rigs.driven_brokers import jars_of
from tests.rigs.maven import JAVA_SOURCES, compile_java
from tests.rigs.own_topic import OwnTopic, own_topic
from tests.rigs.three_brokers import ThreeBrokers, three_brokers
from tests.rigs.topic_commands import TopicCommands
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

SECONDS = 90
LEADER = 1


@dataclass(frozen=True)
class Slow:
    """A cluster whose remote storage deletes nothing while there is a file."""

    brokers: ThreeBrokers
    held_by: Path
    capfd: pytest.CaptureFixture[str]

    def doctor(self) -> Outcome:
        self.capfd.readouterr()
        code = run(["doctor", "--bootstrap-server", self.brokers.bootstrap_servers, "-o", "json"])
        return Outcome(code, *self.capfd.readouterr())

    def standing_still(self) -> str | None:
        """The brokers of the finding, if there is one."""
        items = {item["code"]: item for item in self.doctor().document()["items"]}
        found = items.get("broker-metadata-standstill")
        return found and found["evidence"]["brokers"]


@pytest.fixture
def slow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Slow]:
    jars = jars_of("4.3.1")
    storage = compile_java([JAVA_SOURCES / "StubbornStorage.java"], jars.class_path)
    settings = {
        "remote.log.storage.manager.class.name": "StubbornStorage",
        "rsm.config.undeletable.topics": "none",
        "rsm.config.held.by": str(tmp_path / "held"),
    }
    with three_brokers(jars, settings, [storage]) as brokers:
        yield Slow(brokers, tmp_path / "held", capfd)


@pytest.fixture
def topic(slow: Slow) -> Iterator[OwnTopic]:
    """A tiered topic, led by one broker."""
    with own_topic(slow.brokers.nodes[LEADER], remote_storage_enable="true", local_retention_bytes="1") as made:
        made.write(3)
        wait_until(lambda: made.offsets()[2] == 1, "it is tiered", SECONDS)
        yield made


def test_a_broker_that_deletes_is_seen_to_stand_still_and_to_continue(slow: Slow, topic: OwnTopic) -> None:
    leader = slow.brokers.leader_of(topic.name, 0)
    sound = slow.standing_still()
    slow.held_by.touch()

    disabled = TopicCommands(slow.brokers.nodes[leader], slow.capfd).apply(
        "disable", topic.name, "--delete", "--no-wait"
    )
    wait_until(lambda: slow.standing_still() is not None, "the change reaches the leader", SECONDS)
    outcome = slow.doctor()
    slow.held_by.unlink()
    wait_until(lambda: slow.standing_still() is None, "it goes on", SECONDS)

    codes = {item["code"]: item for item in outcome.document()["items"]}
    assert (sound, disabled.exit_code) == (None, 0), disabled.err
    assert (outcome.exit_code, set(codes)) == (5, {"broker-metadata-standstill", "check-not-made"})
    assert codes["broker-metadata-standstill"]["evidence"]["brokers"] == str(leader)
