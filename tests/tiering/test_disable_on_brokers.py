"""`topic disable` on real brokers: what each form brings with it, and what is left when something stops it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.opened_clients import opened_clients
from tests.rigs.own_topic import SECONDS, OwnTopic, own_topic
from tests.rigs.stopped_process import INT, TERM, TWICE, demand_interrupted
from tests.rigs.topic_commands import TopicCommands
from tests.rigs.waiting import wait_until
from tieredctl.errors import TieredctlError
from tieredctl.kafka.live_cluster import LiveCluster

pytestmark = pytest.mark.integration

RECORDS = 4
SEGMENTS = RECORDS - 1


@pytest.fixture
def tieredctl(driven: DrivenBroker, capfd: pytest.CaptureFixture[str]) -> TopicCommands:
    return TopicCommands(driven.broker, capfd)


@pytest.fixture
def topic(driven: DrivenBroker) -> Iterator[OwnTopic]:
    """A tiered topic, of which all but the last segment are only in remote storage."""
    with own_topic(driven.broker, remote_storage_enable="true", local_retention_bytes="1") as made:
        made.write(RECORDS)
        wait_until(lambda: made.offsets()[1:] == [SEGMENTS, SEGMENTS - 1], "only the last segment is local", SECONDS)
        yield made


ON_ONE_RELEASE = pytest.mark.parametrize("driven", ["kafka_4"], indirect=True)
"""What does not depend on the broker's release."""


def is_cancelled(driven: DrivenBroker, topic: OwnTopic) -> bool:
    """Whether the broker's log says that the topic's copies are."""
    lines = driven.broker.server_log.read_text(errors="replace").splitlines()
    return any("Cancelling the copy RLM task for" in line and topic.name in line for line in lines)


def findings(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["code"]: item["evidence"] for item in document["items"]}


def test_the_plan_to_delete_tells_what_goes_and_changes_nothing(topic: OwnTopic, tieredctl: TopicCommands) -> None:
    before = topic.settings()

    outcome = tieredctl.plan("disable", topic.name, "--delete")

    summary = outcome.document()["summary"]
    (broker,) = summary["brokers"]
    (evidence,) = findings(outcome.document()).values()
    assert outcome.exit_code == 3
    assert (summary["remoteSegments"], summary["remoteBytes"]) == (SEGMENTS, topic.stored_bytes())
    assert summary["bytesOnlyRemote"] == topic.stored_bytes() == broker["localBytesNeeded"] < broker["freeBytes"]
    assert evidence["partitions"][0]["offsetsOnlyRemote"] == [0, SEGMENTS - 1]
    assert topic.settings() == before


def test_copying_is_stopped_and_begun_again_and_all_is_deleted_in_the_end(
    driven: DrivenBroker, topic: OwnTopic, tieredctl: TopicCommands
) -> None:
    stopped = tieredctl.apply("disable", topic.name, "--stop-copying")
    topic.await_setting("remote.log.copy.disable", "true")
    # It shows the setting before it acts on it.
    wait_until(lambda: is_cancelled(driven, topic), "the leader has ended its copies", SECONDS)
    stopped_again = tieredctl.apply("disable", topic.name, "--stop-copying")
    topic.write(2)

    assert (stopped.exit_code, stopped_again.exit_code) == (0, 0), stopped.err
    assert "nothing to change" in stopped_again.err
    assert topic.settings()["remote.log.copy.disable"] == "true"
    assert topic.settings()["local.retention.bytes"] == "-2"
    assert topic.offsets() == [0, SEGMENTS, SEGMENTS - 1]

    begun = tieredctl.apply("enable", topic.name)

    assert (begun.exit_code, begun.document()["summary"]["changes"]) == (0, {"remote.log.copy.disable": None})
    assert "first segment" in begun.err
    wait_until(lambda: len(topic.copied()) == SEGMENTS + 2, "what was written meanwhile is copied", SECONDS)

    deleted = tieredctl.apply("disable", topic.name, "--delete")
    deleted_again = tieredctl.apply("disable", topic.name, "--delete")

    assert (deleted.exit_code, deleted_again.exit_code) == (0, 0), deleted.err
    assert "nothing left in remote storage" in deleted.err
    assert deleted_again.document()["items"] == []
    assert (topic.stored_bytes(), topic.copied()) == (0, [])
    assert topic.offsets() == [SEGMENTS, SEGMENTS, None]
    assert topic.settings()["remote.storage.enable"] == "false"


def test_a_topic_that_was_taken_out_is_tiered_again(topic: OwnTopic, tieredctl: TopicCommands) -> None:
    tieredctl.apply("disable", topic.name, "--delete")
    topic.write(1)

    outcome = tieredctl.apply("enable", topic.name)

    assert (outcome.exit_code, "first segment" in outcome.err) == (0, True), outcome.err
    assert topic.settings()["remote.log.delete.on.disable"] == "false"
    assert min(segment.start_offset for segment in topic.copied()) == SEGMENTS


def test_what_was_copied_once_and_is_still_local_is_never_copied_again(
    driven: DrivenBroker, tieredctl: TopicCommands
) -> None:
    with own_topic(driven.broker, remote_storage_enable="true") as kept:
        kept.write(RECORDS)
        wait_until(lambda: kept.offsets()[2] == SEGMENTS - 1, "all but the last segment is copied", SECONDS)
        tieredctl.apply("disable", kept.name, "--delete")

        shortened = tieredctl.apply("enable", kept.name, "--local-retention-bytes", 1)
        untouched = kept.settings()
        enabled = tieredctl.apply("enable", kept.name)
        kept.write(2)
        wait_until(lambda: len(kept.copied()) == 2, "what was written since is copied", SECONDS)

        assert findings(shortened.document())["never-copied-again"]["partitions"] == [
            {"partition": 0, "offsets": [0, SEGMENTS - 1]}
        ]
        assert (shortened.exit_code, untouched["remote.storage.enable"]) == (3, "false"), shortened.err
        assert (enabled.exit_code, "no closed segment yet" in enabled.err) == (0, True), enabled.err
        assert min(segment.start_offset for segment in kept.copied()) == SEGMENTS


def test_kafka_keeps_no_remote_data_of_a_topic_that_is_not_tiered(driven: DrivenBroker, topic: OwnTopic) -> None:
    cluster = LiveCluster(driven.broker.bootstrap_server)

    with pytest.raises(TieredctlError, match="invalid to disable remote storage without deleting") as refused:
        cluster.alter_topic_configs(topic.name, {"remote.storage.enable": "false"}, validate_only=True)

    cluster.close()
    assert refused.value.code == "config-refused"


@ON_ONE_RELEASE
def test_one_client_follows_the_metadata_to_the_last_deletion(
    topic: OwnTopic, tieredctl: TopicCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = opened_clients(monkeypatch)

    deleted = tieredctl.apply("disable", topic.name, "--delete")

    assert deleted.exit_code == 0, deleted.err
    assert opened["looks"] >= 2
    # The other client asks and changes the cluster.
    assert (opened["sources"], opened["clients"]) == (1, 2)


@ON_ONE_RELEASE
def test_a_topic_that_is_not_tiered_is_left_alone_and_one_that_is_not_there_a_mistake_of_usage(
    driven: DrivenBroker, tieredctl: TopicCommands
) -> None:
    with own_topic(driven.broker) as untiered:
        outcomes = [tieredctl.apply("disable", untiered.name, form) for form in ("--delete", "--stop-copying")]

    assert [(outcome.exit_code, outcome.document()["items"]) for outcome in outcomes] == [(0, []), (0, [])]
    assert tieredctl.apply("disable", "no-such-topic", "--delete").exit_code == 2


@ON_ONE_RELEASE
@pytest.mark.parametrize("stop", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.exhaustive)])
def test_stopped_after_the_change_another_run_tells_what_is_left(
    topic: OwnTopic, tieredctl: TopicCommands, stop: signal.Signals
) -> None:
    stopped = tieredctl.stopped("disable", topic.name, "is changed", stop, "--delete")
    wait_until(lambda: topic.remote() == [], "the broker deletes all", SECONDS)

    again = tieredctl.apply("disable", topic.name, "--delete")

    # The broker may have been quicker than the signal.
    assert stopped.exit_code in (-stop if stop is signal.SIGKILL else 130, 0)
    assert ("The change of topic" in stopped.err) is (stopped.exit_code == 130)
    assert (again.exit_code, again.document()["items"]) == (0, [])
    assert topic.settings()["remote.storage.enable"] == "false"


@ON_ONE_RELEASE
@pytest.mark.parametrize(
    "is_made",
    [
        pytest.param(False, id="before it is made", marks=pytest.mark.exhaustive),
        pytest.param(True, id="once it is made"),
    ],
)
def test_a_second_signal_ends_the_change_at_once_and_another_run_finds_out_what_is_left(
    topic: OwnTopic, tieredctl: TopicCommands, is_made: bool
) -> None:
    stopped = tieredctl.interrupted("disable", topic.name, "--delete", signals=[INT, TERM], is_made=is_made)
    topic.await_setting("remote.storage.enable", "false" if is_made else "true")
    # It shows the setting before it has deleted all.
    wait_until(lambda: (topic.remote() == []) is is_made, "the broker has done what it was asked", SECONDS)

    again = tieredctl.apply("disable", topic.name, "--delete")

    demand_interrupted(stopped, TWICE)
    assert (again.exit_code, topic.settings()["remote.storage.enable"]) == (0, "false"), again.err
    wait_until(lambda: topic.remote() == [], "the broker deletes all", SECONDS)


@ON_ONE_RELEASE
def test_a_broker_that_hangs_at_the_change_is_reported_and_another_run_finishes_it(
    driven: DrivenBroker, topic: OwnTopic, tieredctl: TopicCommands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "impatient.properties"
    config.write_text("request.timeout.ms=5000\n")
    alter = LiveCluster.alter_topic_configs

    def hanging(cluster: LiveCluster, name: str, changes: dict[str, str | None], *, validate_only: bool) -> None:
        if not validate_only:
            driven.broker.pause()
        alter(cluster, name, changes, validate_only=validate_only)

    with monkeypatch.context() as patch:
        patch.setattr(LiveCluster, "alter_topic_configs", hanging)
        try:
            outcome = tieredctl.apply("disable", topic.name, "--delete", "--command-config", config)
        finally:
            driven.broker.go_on()

    # Until the broker has dealt with the request that it did not answer, another run may find the world changed.
    words = ("disable", topic.name, "--delete")
    wait_until(lambda: tieredctl.apply(*words).exit_code == 0, "another run succeeds", SECONDS)

    assert (outcome.exit_code, "may still have been made" in outcome.err) == (1, True), outcome.err
    assert (topic.stored_bytes(), topic.settings()["remote.storage.enable"]) == (0, "false")
