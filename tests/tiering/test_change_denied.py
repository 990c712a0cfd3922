"""`topic enable` and `topic disable` for a user who may not do everything, and with a store that deletes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin._acl import AclOperation

from tests.cli.command_line import Outcome
from tests.rigs.access_rules import AUTHORIZER, grant, grant_on_cluster, scram_config
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.maven import JAVA_SOURCES, compile_java
from tests.rigs.own_topic import SECONDS, OwnTopic, own_topic
from tests.rigs.topic_commands import TopicCommands
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

STUCK = "stuck"


@pytest.fixture(scope="module")
def guarded() -> Iterator[KafkaBroker]:
    """A broker whose store never deletes anything of one topic, and whose users may do what they are granted."""
    jars = jars_of("4.3.1")
    storage = compile_java([JAVA_SOURCES / "StubbornStorage.java"], jars.class_path)
    store = {"remote.log.storage.manager.class.name": "StubbornStorage", "rsm.config.undeletable.topics": STUCK}
    with KafkaBroker(jars, secure=True, properties={**AUTHORIZER, **store}, extra_class_path=[storage]) as broker:
        yield broker


@pytest.fixture
def tieredctl(guarded: KafkaBroker, capfd: pytest.CaptureFixture[str]) -> TopicCommands:
    return TopicCommands(guarded, capfd)


@pytest.fixture
def as_user(guarded: KafkaBroker, tmp_path: Path) -> tuple[object, ...]:
    """The options by which a user comes through the guarded listener."""
    server = guarded.secure_listeners.sasl_ssl
    return ("--bootstrap-server", server, "--command-config", scram_config(tmp_path, guarded))


@pytest.fixture
def topic(guarded: KafkaBroker) -> Iterator[OwnTopic]:
    with own_topic(guarded) as made:
        made.write(1)
        yield made


def test_who_may_not_see_the_topic_is_reported(
    topic: OwnTopic, tieredctl: TopicCommands, as_user: tuple[object, ...]
) -> None:
    outcome = tieredctl.apply("enable", topic.name, *as_user)

    assert (outcome.exit_code, f"may not look at topic {topic.name}" in outcome.err) == (1, True), outcome.err


def test_who_may_not_change_it_sees_a_plan_and_changes_nothing(
    topic: OwnTopic, tieredctl: TopicCommands, as_user: tuple[object, ...], guarded: KafkaBroker
) -> None:
    for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS):
        grant(guarded, topic.name, operation)

    planned = tieredctl.plan("enable", topic.name, *as_user)
    applied = tieredctl.apply("enable", topic.name, *as_user)

    not_made = [item["message"] for item in planned.document()["items"] if item["code"] == "check-not-made"]
    assert planned.exit_code == 5
    assert any(f"needs the operation AlterConfigs on topic {topic.name}" in message for message in not_made)
    assert (applied.exit_code, f"may not change topic {topic.name}" in applied.err) == (1, True), applied.err
    assert topic.settings()["remote.storage.enable"] == "false"


def test_who_may_not_read_the_metadata_disables_nothing(
    topic: OwnTopic, tieredctl: TopicCommands, as_user: tuple[object, ...], guarded: KafkaBroker
) -> None:
    for operation in (AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS):
        grant(guarded, topic.name, operation)

    outcome = tieredctl.apply("disable", topic.name, "--delete", *as_user)

    assert (outcome.exit_code, f"Describe and Read on topic {METADATA_TOPIC}" in outcome.err) == (1, True), outcome.err


def test_who_may_not_see_disks_gets_no_sizes_and_waits_for_the_first_segment_all_the_same(
    topic: OwnTopic, tieredctl: TopicCommands, as_user: tuple[object, ...], guarded: KafkaBroker
) -> None:
    for operation in (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS):
        grant(guarded, topic.name, operation)
    for operation in (AclOperation.DESCRIBE, AclOperation.READ):
        grant(guarded, METADATA_TOPIC, operation)
    topic.write(2)

    planned = tieredctl.plan("enable", topic.name, *as_user)
    applied = tieredctl.apply("enable", topic.name, *as_user)

    estimate = planned.document()["summary"]["estimate"]
    not_made = {item["subject"] for item in planned.document()["items"] if item["code"] == "check-not-made"}
    assert (planned.exit_code, estimate["bytesToCopy"], estimate["segments"]) == (5, None, None)
    assert not_made >= {"bytes on disks", "broker settings", "controllers"}
    assert "In all: unknown bytes" in planned.err
    assert (applied.exit_code, "first segment in remote storage" in applied.err) == (0, True), applied.err


def test_a_topic_whose_settings_may_not_be_seen_hides_no_other(
    topic: OwnTopic, as_user: tuple[object, ...], guarded: KafkaBroker, capfd: pytest.CaptureFixture[str]
) -> None:
    with own_topic(guarded, "closed", remote_storage_enable="true") as closed:
        for name, operation in (
            *((one, AclOperation.DESCRIBE) for one in (topic.name, closed.name, METADATA_TOPIC)),
            *((METADATA_TOPIC, one) for one in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)),
            (topic.name, AclOperation.DESCRIBE_CONFIGS),
        ):
            grant(guarded, name, operation)
        grant_on_cluster(guarded, AclOperation.DESCRIBE)
        capfd.readouterr()
        code = run([*map(str, ("topic", "list", "--all", "-o", "json", *as_user))])
        outcome = Outcome(code, *capfd.readouterr())

    tiering = {row["topic"]: row["tiering"] for row in outcome.document()["items"]}
    assert (tiering[topic.name], tiering[closed.name]) == ("off", "unknown"), outcome.err
    assert outcome.exit_code == 5
    assert [one["subject"] for one in outcome.document()["summary"]["findings"]] == ["settings of topic closed"]


def test_what_brokers_could_not_delete_is_found_and_its_remedy_deletes_it(
    guarded: KafkaBroker, tieredctl: TopicCommands
) -> None:
    with own_topic(guarded, STUCK, remote_storage_enable="true", local_retention_bytes="1") as stuck:
        stuck.write(3)
        wait_until(lambda: len(stuck.copied()) == 2, "two segments are copied", SECONDS)

        applied = tieredctl.apply("disable", STUCK, "--delete", "--timeout", "1s")
        stuck.await_setting("remote.storage.enable", "false")
        again = tieredctl.apply("disable", STUCK, "--delete")
        (left,) = again.document()["items"]
        removed = tieredctl.remove(left["evidence"]["topicId"])
        at_last = tieredctl.apply("disable", STUCK, "--delete")

    assert (applied.exit_code, "tiering-not-seen" in applied.out) == (5, True)
    assert (again.exit_code, left["code"], left["evidence"]["segments"]) == (3, "remote-data-left", 2)
    assert left["remedy"].startswith(f"tieredctl partition remove {left['evidence']['topicId']} --even-if-live")
    assert removed.exit_code == 0, removed.err
    assert (at_last.exit_code, at_last.document()["items"]) == (0, [])
