"""`doctor` on real brokers: exactly what the rig's settings deserve, and what is broken besides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._resource import ResourceType

from tests.cli.command_line import Outcome, this_process
from tests.rigs.access_rules import grant, scram_config
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.chromium import chromium, opened
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.leftovers import STUCK, Leftovers
from tests.rigs.topics import answered
from tests.rigs.waiting import wait_until

pytestmark = pytest.mark.integration

SETTINGS = {
    ("topic-config-metadata-replication", METADATA_TOPIC),
    ("topic-config-small-segments", "topic clicks.eu-west_1"),
    ("topic-config-small-segments", "topic ledger"),
    ("topic-config-small-segments", "topic orders"),
    ("topic-config-small-segments", "topic payments"),
    ("topic-config-kept-twice", "topic ledger"),
    ("broker-config-copy-quota", "broker 1"),
    ("broker-config-fetch-quota", "broker 1"),
}
"""One broker, which rolls small segments so that tiering is quick, without quotas."""
WITHOUT_A_FIX = {("release-bug", "KAFKA-15401")}
BEFORE_4_2 = {
    ("release-bug", issue) for issue in ("KAFKA-16780", "KAFKA-19425", "KAFKA-19530", "KAFKA-19523", "KAFKA-14915")
}
OF_THE_METADATA = {("kept-twice", "ledger-0"), ("metadata-topic-compaction", METADATA_TOPIC)}
"""What is known once the metadata is read."""
DAY_MS = "86400000"

Findings = set[tuple[str, str]]


def doctor(broker: KafkaBroker, *words: str | Path) -> Outcome:
    verb = [str(word) for word in words if word == "config"]
    rest = [word for word in words if word != "config"]
    return this_process("doctor", *verb, "--bootstrap-server", broker.bootstrap_server, "-o", "json", *rest)


def findings(outcome: Outcome) -> Findings:
    return {(item["code"], item["subject"]) for item in outcome.document()["items"]}


def bugs(release: tuple[int, ...]) -> Findings:
    """What is surely known of the rig's releases."""
    perhaps = {("release-bug", "KAFKA-20732")}
    return WITHOUT_A_FIX | perhaps | (BEFORE_4_2 if release < (4, 2) else set())


@contextmanager
def changed(broker: KafkaBroker, kind: ResourceType, name: str, setting: str, value: str) -> Iterator[None]:
    """A setting, and as it was before in the end."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    resource = ConfigResource(kind, name)
    before = _entry(admin, resource, setting)
    was_set = before.source in (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value)

    def alter(operation: AlterConfigOpType, to: str | None) -> None:
        entry = ConfigEntry(setting, to, incremental_operation=operation)
        asked = ConfigResource(kind, name, incremental_configs=[entry])
        answered(lambda: admin.incremental_alter_configs([asked])[asked].result(timeout=30))
        expected = before.value if to is None else to
        wait_until(lambda: _entry(admin, resource, setting).value == expected, f"{setting} is {expected}", 30)

    alter(AlterConfigOpType.SET, value)
    try:
        yield
    finally:
        alter(*((AlterConfigOpType.SET, before.value) if was_set else (AlterConfigOpType.DELETE, None)))


def _entry(admin: AdminClient, resource: ConfigResource, setting: str) -> Any:
    return answered(lambda: admin.describe_configs([resource])[resource].result(timeout=30))[setting]


def test_the_rigs_cluster_has_exactly_what_it_deserves(driven: DrivenBroker) -> None:
    version = ("--kafka-version", driven.broker.jars.version)
    outcome, more = doctor(driven.broker, *version), doctor(driven.broker, *everywhere(driven.broker), *version)

    deserved = SETTINGS | OF_THE_METADATA | bugs(driven.broker.jars.release)
    summary = more.document()["summary"]
    assert (findings(outcome), findings(more)) == (deserved, deserved | {("metadata-snapshot", "node 1")})
    assert (outcome.exit_code, outcome.document()["summary"]["complete"]) == (3, True)
    assert summary["auxiliaryObjects"] >= summary["partitions"] * 2
    assert summary["transactionIndexes"] > 0  # those of the transactions that were aborted
    assert summary["replicasOnDisk"] > summary["partitions"]


def test_the_line_of_releases_is_known_and_the_patch_is_not(driven: DrivenBroker) -> None:
    document = doctor(driven.broker).document()

    said = {item["subject"]: item for item in document["items"] if item["code"] == "release-bug"}
    assert document["summary"]["release"] == ".".join(driven.broker.jars.version.split(".")[:2])
    if driven.broker.jars.release < (4,):
        assert said["KAFKA-17995"]["severity"] == "info"  # mended in 3.9.1
    assert doctor(driven.broker, "--kafka-version", "3.8.1").exit_code == 2


def test_what_new_followers_and_committed_reads_need_is_missed(driven: DrivenBroker) -> None:
    payments = next(driven.broker.remote_dir.glob("payments-0-*"))
    last_snapshot = max(payments.glob("*.snapshot"))
    index = max(payments.glob("*.txnindex"))
    sound = index.read_bytes()
    aside = last_snapshot.rename(last_snapshot.with_suffix(".aside"))
    index.write_bytes(b"\0\1" + sound[2:])
    try:
        outcome = doctor(driven.broker, *everywhere(driven.broker))
    finally:
        aside.rename(last_snapshot)
        index.write_bytes(sound)

    found = {item["code"]: item["evidence"] for item in outcome.document()["items"]}
    assert outcome.exit_code == 4
    assert found["follower-state-missing"]["key"] == f"{payments.name}/{last_snapshot.name}"
    assert found["transaction-index-damaged"]["key"] == f"{payments.name}/{index.name}"
    assert found["transaction-index-damaged"]["position"] == 0


def test_groups_that_read_from_remote_storage_or_come_too_late_are_named(driven: DrivenBroker) -> None:
    with committed(driven.broker, "slow", "orders", 3), committed(driven.broker, "late", "clicks.eu-west_1", 1):
        outcome = doctor(driven.broker)

    found = {item["subject"]: item for item in outcome.document()["items"] if item["code"].startswith("group-")}
    slow, late = found["group slow, topic orders"], found["group late, topic clicks.eu-west_1"]
    assert (slow["code"], slow["severity"]) == ("group-reads-remote", "info")
    assert slow["evidence"]["partitions"][0]["committedOffset"] == 3
    assert (late["code"], late["severity"]) == ("group-offset-below-log-start", "warning")


def everywhere(broker: KafkaBroker) -> tuple[str | Path, ...]:
    return ("--log-dir", broker.log_dir, "--store", f"file:{broker.remote_dir}")


@contextmanager
def committed(broker: KafkaBroker, group: str, topic: str, offset: int) -> Iterator[None]:
    """A group that has committed an offset of partition 0, and is gone in the end."""
    with closing(Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": group})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    try:
        yield
    finally:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
        admin.delete_consumer_groups([group])[group].result(timeout=30)


def test_settings_alone_are_looked_at_on_request(driven: DrivenBroker) -> None:
    assert findings(doctor(driven.broker, "config")) == SETTINGS


CHANGED: dict[str, tuple[ResourceType, str, str, str, Findings]] = {
    "it forgets": (
        *(ResourceType.TOPIC, METADATA_TOPIC, "retention.ms", DAY_MS),
        SETTINGS | {("topic-config-metadata-retention", METADATA_TOPIC)},
    ),
    "it keeps all twice": (
        *(ResourceType.TOPIC, "orders", "local.retention.ms", "-2"),
        SETTINGS | {("topic-config-kept-twice", "topic orders")},
    ),
    "a small cache": (
        *(ResourceType.BROKER, "1", "remote.log.index.file.cache.total.size.bytes", "1000000"),
        SETTINGS | {("broker-config-index-cache", "broker 1")},
    ),
    "a quota": (
        *(ResourceType.BROKER, "1", "remote.log.manager.copy.max.bytes.per.second", "100000000"),
        SETTINGS - {("broker-config-copy-quota", "broker 1")},
    ),
}


def test_a_setting_that_is_broken_or_mended_makes_a_difference(driven: DrivenBroker) -> None:
    for name, (kind, resource, setting, value, expected) in CHANGED.items():
        with changed(driven.broker, kind, resource, setting, value):
            assert findings(doctor(driven.broker, "config")) == expected, name


def test_a_file_is_judged_alone_and_next_to_what_its_cluster_has(driven: DrivenBroker, tmp_path: Path) -> None:
    own = driven.broker.work_dir / "server.properties"
    other = tmp_path / "broker-2.properties"
    other.write_text(own.read_text() + "rlmm.config.remote.log.metadata.topic.num.partitions=50\n")
    quotas = ("broker-config-copy-quota", "broker-config-fetch-quota")

    alone = this_process("doctor", "config", own, "-o", "json")
    beside = doctor(driven.broker, "config", other)

    assert findings(alone) == {(code, own.name) for code in ("broker-config-metadata-replication", *quotas)}
    assert findings(beside) == {(code, other.name) for code in ("broker-config-metadata-partitions", *quotas)}


@pytest.mark.usefixtures("no_restart_awaited")
def test_nobody_listening_is_an_error_of_its_own() -> None:
    assert this_process("doctor", "--bootstrap-server", "localhost:1").exit_code == 1


def test_a_topic_whose_size_is_limited_makes_the_fault_that_deletes_by_size_a_warning(driven: DrivenBroker) -> None:
    def severity() -> str:
        items = doctor(driven.broker).document()["items"]
        return str(next(item["severity"] for item in items if item["subject"] == "KAFKA-20732"))

    before = severity()
    with changed(driven.broker, ResourceType.TOPIC, "ledger", "retention.bytes", str(1 << 40)):
        limited = severity()

    assert (before, limited) == ("info", "warning")


@pytest.fixture
def crashed(leftovers_4: Leftovers) -> Leftovers:
    """A cluster in which deletions of a topic that is gone never end; what users may see is granted."""
    return leftovers_4


def test_deletions_that_never_end_are_found_though_their_topic_is_gone(crashed: Leftovers) -> None:
    outcome = doctor(crashed.broker, "--older-than", "0s")

    stuck = [item["evidence"] for item in outcome.document()["items"] if item["code"] == "delete-stuck"]
    assert outcome.exit_code == 3
    assert {evidence["topicId"] for evidence in stuck} == {crashed.topic_ids[STUCK]}


def test_a_page_draws_the_partition_that_a_finding_is_about(crashed: Leftovers, tmp_path: Path) -> None:
    page, where = tmp_path / "page.html", ("--bootstrap-server", crashed.broker.bootstrap_server)

    outcome = this_process("doctor", *where, "--older-than", "0s", "--report", page)

    assert outcome.exit_code == 3, outcome.err
    with chromium() as browser, opened(browser, page) as shown:
        drawing = shown.page.locator("figure", has_text=f"{STUCK}-0 over its offsets").locator("svg")
        assert drawing.is_visible()
        assert "deleting" in (drawing.text_content() or "")
        assert (shown.requests, shown.complaints) == ([page.as_uri()], [])


def test_what_the_user_may_not_see_is_reported_and_the_rest_is_judged(crashed: Leftovers, tmp_path: Path) -> None:
    grant(crashed.broker, METADATA_TOPIC, AclOperation.DESCRIBE)
    where = ("--bootstrap-server", crashed.broker.secure_listeners.sasl_ssl)
    config = scram_config(tmp_path, crashed.broker)

    outcome = this_process("doctor", *where, "--command-config", config, "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 5
    assert summary["complete"] is False
    assert {line.partition(":")[0] for line in summary["notLookedAt"]} == {
        "broker settings",
        "bytes on disks",
        "controllers",
        "the metadata topic's settings",
        "the records of the metadata topic",
    }
    assert ("topic-config-metadata-replication", METADATA_TOPIC) in findings(outcome)
