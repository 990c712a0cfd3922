"""`topic enable` on real brokers: what it finds, what it changes, and what is left when something stops it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import own_process
from tests.rigs.broker import METADATA_TOPIC
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.own_topic import RECORD_BYTES, SECONDS, SEGMENT_BYTES, OwnTopic, own_topic
from tests.rigs.stopped_process import FINISHING, INT, TERM, TWICE, demand_interrupted
from tests.rigs.topic_commands import TopicCommands
from tests.rigs.waiting import wait_until
from tieredctl.kafka.live_cluster import LiveCluster

pytestmark = pytest.mark.integration

RECORDS = 4
LONG_AGO_MS = 1_000
ON_ONE_BROKER = {"topic-config-metadata-replication", "broker-config-copy-quota", "broker-config-fetch-quota"}
"""What is found on the rig's cluster, whatever the topic."""
SMALL = {"topic-config-small-segments"}


@pytest.fixture
def tieredctl(driven: DrivenBroker, capfd: pytest.CaptureFixture[str]) -> TopicCommands:
    return TopicCommands(driven.broker, capfd)


@pytest.fixture
def topic(driven: DrivenBroker) -> Iterator[OwnTopic]:
    """A topic that is not tiered, with closed segments."""
    with own_topic(driven.broker) as made:
        made.write(RECORDS)
        yield made


@pytest.fixture
def idle(driven: DrivenBroker) -> Iterator[OwnTopic]:
    """A topic whose only segment is old enough to be closed, and is not, as nobody writes to it any more."""
    with own_topic(driven.broker, retention_ms="-1") as made:
        made.write(1, LONG_AGO_MS)
        yield made


ON_ONE_RELEASE = pytest.mark.parametrize("driven", ["kafka_4"], indirect=True)
"""What does not depend on the broker's release."""


def codes(document: dict[str, list[dict[str, str]]]) -> set[str]:
    return {item["code"] for item in document["items"]}


def test_the_plan_tells_what_it_takes_and_changes_nothing(topic: OwnTopic, tieredctl: TopicCommands) -> None:
    before = topic.settings()

    outcome = tieredctl.plan("enable", topic.name, "--local-retention-bytes", SEGMENT_BYTES)

    document = outcome.document()
    estimate = document["summary"]["estimate"]
    assert outcome.exit_code == 3
    assert codes(document) == ON_ONE_BROKER | SMALL
    assert document["summary"]["changes"] == {
        "remote.storage.enable": "true",
        "local.retention.bytes": str(SEGMENT_BYTES),
    }
    assert RECORDS * RECORD_BYTES < estimate["bytesToCopy"] < RECORDS * (RECORD_BYTES + 1000)
    assert estimate["freedBytes"] == estimate["bytesToCopy"] - SEGMENT_BYTES
    assert topic.settings() == before


def test_a_topic_is_tiered_and_a_second_run_has_nothing_to_change(topic: OwnTopic, tieredctl: TopicCommands) -> None:
    outcome = tieredctl.apply("enable", topic.name, "--local-retention-bytes", 1)
    again = tieredctl.apply("enable", topic.name, "--local-retention-bytes", 1)

    assert (outcome.exit_code, "first segment in remote storage" in outcome.err) == (0, True), outcome.err
    assert outcome.document()["summary"]["applied"] is True
    assert topic.settings()["remote.storage.enable"] == "true"
    assert topic.copied()
    assert (again.exit_code, "nothing to change" in again.err) == (0, True)
    assert again.document()["items"] == []


def test_a_compacted_topic_is_refused_as_kafka_refuses_it(driven: DrivenBroker, tieredctl: TopicCommands) -> None:
    said = (
        "delete or cleanup.policy being an empty" if driven.broker.jars.release >= (4,) else "for the compacted topic"
    )

    with own_topic(driven.broker, cleanup_policy="compact") as compacted:
        outcome = tieredctl.apply("enable", compacted.name, "--local-retention-ms", 3_600_000)
        settings = compacted.settings()

    refusals = [item["message"] for item in outcome.document()["items"] if item["code"] == "topic-change-refused"]
    assert outcome.exit_code == 3
    assert codes(outcome.document()) >= {"topic-config-cleanup-policy", "topic-change-refused"}
    assert said in refusals[0]
    assert "Nothing was changed" in outcome.err
    assert settings["remote.storage.enable"] == "false"


def test_what_no_topic_may_have_and_kafkas_own_topics_are_refused(topic: OwnTopic, tieredctl: TopicCommands) -> None:
    above = tieredctl.apply("enable", topic.name, "--local-retention-ms", 10**15)
    own = tieredctl.apply("enable", METADATA_TOPIC, "--local-retention-bytes", 1)

    assert (above.exit_code, own.exit_code) == (3, 3)
    assert codes(above.document()) >= {"topic-config-local-retention", "topic-change-refused"}
    assert topic.settings()["remote.storage.enable"] == "false"
    # Kafka would take it.
    assert "topic-never-tiered" in codes(own.document())
    assert "topic-change-refused" not in codes(own.document())


@ON_ONE_RELEASE
def test_a_topic_that_is_not_there_is_a_mistake_of_usage(tieredctl: TopicCommands) -> None:
    for name in ("no-such-topic", "no name!", ""):
        assert tieredctl.apply("enable", name).exit_code == 2, name


def test_without_a_closed_segment_there_is_nothing_to_wait_for(driven: DrivenBroker, tieredctl: TopicCommands) -> None:
    with own_topic(driven.broker) as young:
        young.write(1)

        outcome = tieredctl.apply("enable", young.name)

    assert (outcome.exit_code, "no closed segment yet" in outcome.err) == (0, True), outcome.err


@ON_ONE_RELEASE
def test_a_first_segment_that_does_not_come_in_time_is_reported(idle: OwnTopic, tieredctl: TopicCommands) -> None:
    outcome = tieredctl.apply("enable", idle.name, "--timeout", "0s")

    assert outcome.exit_code == 5
    assert "tiering-not-seen" in codes(outcome.document())
    idle.await_setting("remote.storage.enable", "true")


@ON_ONE_RELEASE
@pytest.mark.parametrize("stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_interrupted_while_it_waits_it_says_that_the_change_is_made_and_what_shows_its_effect(
    idle: OwnTopic, tieredctl: TopicCommands, stop: signal.Signals
) -> None:
    outcome = tieredctl.stopped("enable", idle.name, "is changed", stop)

    assert outcome.exit_code == 130
    assert f"The change of topic {idle.name} is made (remote.storage.enable: false -> true)" in outcome.err
    assert "Traceback" not in outcome.err
    assert "Run it again" not in outcome.err
    idle.await_setting("remote.storage.enable", "true")
    shown = own_process(*outcome.err.splitlines()[-1].partition("How far it is: tieredctl ")[2].split())
    assert (shown.exit_code, f"{idle.name} " in shown.err, "remote.storage.enable=true" in shown.err) == (0, True, True)


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    "is_made",
    [
        pytest.param(False, id="before it is made", marks=pytest.mark.exhaustive),
        pytest.param(True, id="once it is made"),
    ],
)
def test_a_second_signal_ends_the_change_at_once_and_another_run_finds_out_what_is_left(
    idle: OwnTopic, tieredctl: TopicCommands, is_made: bool
) -> None:
    stopped = tieredctl.interrupted("enable", idle.name, signals=[INT, TERM], is_made=is_made)
    idle.await_setting("remote.storage.enable", "true" if is_made else "false")

    again = tieredctl.apply("enable", idle.name, "--no-wait")

    demand_interrupted(stopped, TWICE)
    assert stopped.err.endswith("  Run it again: it starts from the beginning.\n")
    assert (again.exit_code, "nothing to change" in again.err) == (0, is_made)
    idle.await_setting("remote.storage.enable", "true")


@ON_ONE_RELEASE
@pytest.mark.parametrize("stop", [INT, pytest.param(TERM, marks=pytest.mark.exhaustive)])
def test_a_change_whose_effect_is_not_awaited_is_finished_though_a_signal_comes(
    idle: OwnTopic, tieredctl: TopicCommands, stop: signal.Signals
) -> None:
    finished = tieredctl.interrupted("enable", idle.name, "--no-wait", signals=[stop], is_made=True)

    assert (finished.exit_code, f"{FINISHING}Topic {idle.name} is changed.\n" in finished.err) == (0, True), (
        finished.err
    )
    idle.await_setting("remote.storage.enable", "true")


@ON_ONE_RELEASE
def test_killed_while_it_waits_another_run_finds_the_same_end_state(idle: OwnTopic, tieredctl: TopicCommands) -> None:
    killed = tieredctl.stopped("enable", idle.name, "is changed", signal.SIGKILL)
    idle.await_setting("remote.storage.enable", "true")
    after = idle.settings()

    again = tieredctl.apply("enable", idle.name)

    assert killed.exit_code == -signal.SIGKILL
    assert (again.exit_code, idle.settings()) == (0, after)


@ON_ONE_RELEASE
@pytest.mark.parametrize("deleted_before_validation", [pytest.param(True, marks=pytest.mark.exhaustive), False])
def test_a_topic_that_is_deleted_before_the_change_is_a_clear_sentence(
    topic: OwnTopic,
    tieredctl: TopicCommands,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    deleted_before_validation: bool,
) -> None:
    impatient = tmp_path / "impatient.properties"
    impatient.write_text("request.timeout.ms=4000\n")
    alter = LiveCluster.alter_topic_configs

    def after_deletion(cluster: LiveCluster, name: str, changes: dict[str, str | None], *, validate_only: bool) -> None:
        if validate_only is deleted_before_validation:
            topic.delete()
        alter(cluster, name, changes, validate_only=validate_only)

    monkeypatch.setattr(LiveCluster, "alter_topic_configs", after_deletion)

    outcome = tieredctl.apply("enable", topic.name, "--local-retention-bytes", 1, "--command-config", impatient)

    assert (outcome.exit_code, f"has no topic {topic.name}" in outcome.err) == (2, True), outcome.err
    assert outcome.out == ""


@ON_ONE_RELEASE
def test_a_broker_that_hangs_at_the_change_is_reported_and_another_run_finishes_it(
    driven: DrivenBroker,
    topic: OwnTopic,
    tieredctl: TopicCommands,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    config = tmp_path / "impatient.properties"
    config.write_text("request.timeout.ms=5000\n")
    alter = LiveCluster.alter_topic_configs

    def hanging(cluster: LiveCluster, name: str, changes: dict[str, str | None], *, validate_only: bool) -> None:
        if not validate_only:
            driven.broker.pause()
        alter(cluster, name, changes, validate_only=validate_only)

    words = ("--local-retention-bytes", 1, "--command-config", config)
    with monkeypatch.context() as patch:
        patch.setattr(LiveCluster, "alter_topic_configs", hanging)
        try:
            outcome = tieredctl.apply("enable", topic.name, *words)
        finally:
            driven.broker.go_on()

    # Until the broker has dealt with the request that it did not answer, another run may find the world changed.
    wait_until(lambda: tieredctl.apply("enable", topic.name, *words).exit_code == 0, "another run succeeds", SECONDS)

    assert (outcome.exit_code, "may still have been made" in outcome.err) == (1, True), outcome.err
    assert topic.settings()["remote.storage.enable"] == "true"


@ON_ONE_RELEASE
def test_closed_segments_without_a_producer_snapshot_are_found(
    driven: DrivenBroker, topic: OwnTopic, tieredctl: TopicCommands
) -> None:
    folder = driven.broker.log_dir / f"{topic.name}-0"
    snapshot = min(folder.glob("*.snapshot"))
    words = ("--local-retention-bytes", 1, "--log-dir", driven.broker.log_dir)

    sound = tieredctl.plan("enable", topic.name, *words)
    snapshot.unlink()
    lacking = tieredctl.apply("enable", topic.name, *words)

    missing = [item for item in lacking.document()["items"] if item["code"] == "producer-snapshot-missing"]
    assert "producer-snapshot-missing" not in codes(sound.document())
    assert [item["evidence"]["offsets"] for item in missing] == [[0, 0]]
    assert lacking.exit_code == 3
    assert topic.settings()["remote.storage.enable"] == "false"
