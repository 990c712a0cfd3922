"""`topic enable`: a sound cluster and topic are clean, and one thing that speaks against it is one finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome
from tests.metadata_logs import DELETED, DELETING, copied, started, updated
from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import DEFAULTS, HOUR_MS, LEVEL_3_8, SEGMENT_BYTES, TOPIC, ModelCluster
from tieredctl.model.events import MetadataEvent

LOCAL = ("--local-retention-ms", 24 * HOUR_MS)
BROKERS = (1, 2, 3)


def found(outcome: Outcome) -> dict[str, str]:
    """The findings' codes, with their severity."""
    return {item["code"]: item["severity"] for item in outcome.document()["items"]}


def test_what_speaks_against_it_is_found(topic_command: TopicCommand) -> None:
    # A sound topic on a sound cluster is clean and unchanged.
    cluster = ModelCluster()
    outcome = topic_command(cluster, "enable", *LOCAL)
    assert outcome.exit_code == 0, outcome.out
    assert found(outcome) == {}
    assert cluster.alterations == []
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"own": {"cleanup.policy": "compact,delete"}}, "topic-config-cleanup-policy", "error"),
        ({"broker": {}}, "broker-config-tiering-off", "error"),
        ({"own": {"retention.ms": "3600000"}}, "topic-config-local-retention", "error"),
        ({"own": {"segment.bytes": "1048576"}}, "topic-config-small-segments", "warning"),
        ({"metadata_replicas": 1}, "topic-config-metadata-replication", "warning"),
        ({"leader": None}, "topic-without-leader", "warning"),
        ({"voters": (101, 102, 103)}, "check-not-made", "warning"),
        ({"level": LEVEL_3_8}, "release-early-access", "warning"),
    ]
    for broken, code, severity in cases:
        outcome = topic_command(ModelCluster(**broken), "enable", *LOCAL)
        assert found(outcome).get(code) == severity, (broken, code, severity)
        assert set(found(outcome)) <= {code, "topic-change-refused", "topic-config-segment-exceeds-local-retention"}
        assert outcome.exit_code == (5 if code == "check-not-made" else 3), (broken, code, severity)


def test_an_error_refuses_the_change_and_a_warning_does_not(applied: TopicCommand) -> None:
    # An error refuses the change.
    cluster = ModelCluster(broker={})
    outcome = applied(cluster, "enable", *LOCAL)
    assert (outcome.exit_code, "Nothing was changed" in outcome.err) == (3, True)
    assert cluster.alterations == []
    # A warning does not.
    cluster = ModelCluster(metadata_replicas=1)
    outcome = applied(cluster, "enable", *LOCAL)
    assert (outcome.exit_code, len(cluster.alterations)) == (0, 1)
    # All settings are changed in one request.
    cluster = ModelCluster()
    outcome = applied(cluster, "enable", *LOCAL, "--local-retention-bytes", SEGMENT_BYTES)
    assert outcome.exit_code == 0, outcome.err
    assert cluster.alterations == [
        {
            "remote.storage.enable": "true",
            "local.retention.ms": str(24 * HOUR_MS),
            "local.retention.bytes": str(SEGMENT_BYTES),
        }
    ]


def test_what_was_deleted_from_remote_storage_is_never_copied_again(applied: TopicCommand) -> None:
    cases: list[tuple[bool, tuple[Any, ...], str | None]] = [
        (True, LOCAL, "error"),
        (True, ("--local-retention-bytes", SEGMENT_BYTES), "error"),
        (True, (), "warning"),
        (True, ("--local-retention-ms", 240 * HOUR_MS), "warning"),
        (False, LOCAL, None),
    ]
    for deleted, retention, severity in cases:
        told_of = [*copied(1, 0, 399), *(updated(1, state) for state in (DELETING, DELETED) if deleted)]
        cluster = ModelCluster(events=told_of, earliest_local=100, copied_once=399)
        outcome = applied(cluster, "enable", *retention)
        told = [item["evidence"] for item in outcome.document()["items"] if item["code"] == "never-copied-again"]
        assert found(outcome).get("never-copied-again") == severity, (deleted, retention, severity)
        assert [evidence["partitions"] for evidence in told] == [[{"partition": 0, "offsets": [100, 399]}]] * len(told)
        assert bool(cluster.alterations) == (severity != "error"), (deleted, retention, severity)
    # A failed copy that was removed is copied again.
    events: list[MetadataEvent] = [started(1, 0, 399), updated(1, DELETING), updated(1, DELETED)]
    outcome = applied(ModelCluster(events=events, earliest_local=100, copied_once=-1), "enable", *LOCAL)
    assert (outcome.exit_code, found(outcome)) == (0, {})
    # What is below the local log start was not left to copy.
    events = [*copied(1, 0, 399), updated(1, DELETING), updated(1, DELETED)]
    outcome = applied(ModelCluster(events=events, earliest_local=400, copied_once=399), "enable", *LOCAL)
    assert (outcome.exit_code, found(outcome)) == (0, {})


def test_a_topic_that_is_not_copied_any_more_is_copied_again(applied: TopicCommand) -> None:
    # What let an earlier disable delete is taken away.
    cluster = ModelCluster(own={"remote.log.delete.on.disable": "true", "remote.storage.enable": "false"})
    applied(cluster, "enable", *LOCAL)
    assert "remote.log.delete.on.disable" not in cluster.own
    cluster = ModelCluster(own={"remote.storage.enable": "true", "remote.log.copy.disable": "true"})
    outcome = applied(cluster, "enable")
    assert outcome.exit_code == 0
    assert cluster.alterations == [{"remote.log.copy.disable": None}]
    # A topic that is tiered is left alone.
    for deletes in ["true", "false"]:
        cluster = ModelCluster(
            own={"remote.storage.enable": "true", "remote.log.delete.on.disable": deletes}, broker={}
        )
        outcome = applied(cluster, "enable")
        assert (outcome.exit_code, found(outcome), cluster.alterations) == (0, {}, []), deletes
        assert "nothing to change" in outcome.err, deletes


def test_the_settings_before_and_after_are_reported(topic_command: TopicCommand) -> None:
    summary = topic_command(ModelCluster(), "enable", *LOCAL).document()["summary"]

    before = {name: one["value"] for name, one in summary["configsBefore"].items()}
    assert before == DEFAULTS
    assert summary["configsAfter"] == {**DEFAULTS, **summary["changes"]}
    assert summary["configsBefore"]["retention.ms"]["source"] == "DEFAULT_CONFIG"


def test_the_estimate_is_of_every_broker(topic_command: TopicCommand) -> None:
    estimate = topic_command(ModelCluster(), "enable", *LOCAL).document()["summary"]["estimate"]
    size = 10 * SEGMENT_BYTES
    leader, *followers = estimate["brokers"]
    assert (estimate["bytesToCopy"], estimate["segments"], estimate["requestsAtLeast"]) == (size, 10, 30)
    assert (leader["bytesToCopy"], leader["seconds"]) == (size, -(-size // 1_000_000))
    assert [broker["bytesToCopy"] for broker in followers] == [0, 0]
    # Half of the offsets are older than what local retention keeps, on each broker.
    assert [broker["freedBytes"] for broker in estimate["brokers"]] == [size // 2] * len(BROKERS)
    # The time is not known without a quota.
    cluster = ModelCluster()
    del cluster.broker["remote.log.manager.copy.max.bytes.per.second"]
    outcome = topic_command(cluster, "enable", *LOCAL)
    assert outcome.document()["summary"]["estimate"]["seconds"] is None
    assert found(outcome) == {"broker-config-copy-quota": "info"}
    # What is tiered already is not copied again.
    own = {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}
    estimate = topic_command(ModelCluster(own=own, latest_tiered=899), "enable").document()["summary"]["estimate"]
    assert estimate["bytesToCopy"] == SEGMENT_BYTES
    # Local retention by size frees what is above it.
    outcome = topic_command(ModelCluster(), "enable", "--local-retention-bytes", 3 * SEGMENT_BYTES)
    brokers = outcome.document()["summary"]["estimate"]["brokers"]
    assert [broker["freedBytes"] for broker in brokers] == [7 * SEGMENT_BYTES] * len(BROKERS)
    # What the copy lag keeps out of remote storage is reported.
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 0),
        ({"remote.copy.lag.ms": str(HOUR_MS)}, 5 * SEGMENT_BYTES),
        ({"remote.copy.lag.ms": str(HOUR_MS), "remote.copy.lag.bytes": str(SEGMENT_BYTES)}, SEGMENT_BYTES),
    ]
    for own, waiting in cases:
        outcome = topic_command(ModelCluster(own=own, size=10 * SEGMENT_BYTES), "enable", *LOCAL)
        assert outcome.document()["summary"]["estimate"]["waitingBytes"] == waiting, (own, waiting)
        assert ("The copy lag keeps part of it out" in outcome.err) is bool(waiting), (own, waiting)


def test_it_costs_what_the_configuration_says(
    topic_command: TopicCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("prices: [{store: 's3://', perGiBMonth: 0.5, perThousandPuts: 5, currency: USD}]")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))

    outcome = topic_command(ModelCluster(), "enable", *LOCAL, "--store", "s3://bucket")

    estimate = outcome.document()["summary"]["estimate"]
    assert (estimate["requestsCost"], estimate["storageCostPerMonth"], estimate["currency"]) == (0.15, 0.49, "USD")
    assert "0.15 USD once and 0.49 USD a month" in outcome.err


def test_the_cost_of_a_store_without_a_price_is_unknown(
    topic_command: TopicCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text("prices: []")
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(tmp_path / "config.yaml"))
    without = topic_command(ModelCluster(), "enable", *LOCAL)

    outcome = topic_command(ModelCluster(), "enable", *LOCAL, "--store", "s3://bucket")

    assert (outcome.exit_code, outcome.out) == (without.exit_code, without.out)
    assert "cost" not in without.err
    assert "What it costs is unknown" in outcome.err


def test_a_log_directory_without_the_topic_proves_nothing(topic_command: TopicCommand, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()

    outcome = topic_command(ModelCluster(), "enable", *LOCAL, "--log-dir", tmp_path)

    assert (outcome.exit_code, found(outcome)) == (5, {"check-not-made": "warning"})


def test_what_changed_meanwhile_is_not_changed(applied: TopicCommand) -> None:
    # A topic that was made again meanwhile is not changed.
    cluster = ModelCluster()
    planned = cluster.topic

    def made_anew(name: str) -> Any:
        described = planned(name)
        if name == TOPIC:
            cluster.topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
        return described

    cluster.topic = made_anew  # type: ignore[method-assign]
    outcome = applied(cluster, "enable", *LOCAL)
    assert (outcome.exit_code, "deleted and recreated" in outcome.err) == (5, True)
    assert cluster.alterations == []
    # Settings that somebody changed meanwhile are not changed.
    cluster = ModelCluster()
    validated = cluster.alter_topic_configs

    def changed_meanwhile(*words: Any, **options: Any) -> None:
        validated(*words, **options)
        cluster.own["retention.bytes"] = "1000"

    cluster.alter_topic_configs = changed_meanwhile  # type: ignore[method-assign]
    outcome = applied(cluster, "enable", *LOCAL)
    assert (outcome.exit_code, "changed meanwhile" in outcome.err) == (5, True)
    assert cluster.alterations == []


@pytest.mark.parametrize("words", [("--apply",), ("--apply", "--yes"), ("--apply", "--yes", "--cluster-id", "another")])
def test_nothing_is_changed_without_confirmation(topic_command: TopicCommand, words: tuple[str, ...]) -> None:
    cluster = ModelCluster()

    outcome = topic_command(cluster, "enable", *LOCAL, *words)

    assert (outcome.exit_code, cluster.alterations) == (2, [])


def test_a_topic_that_is_copied_by_a_setting_of_its_own_is_left_as_it_is(applied: TopicCommand) -> None:
    own = {"remote.storage.enable": "true", "remote.log.copy.disable": "false"}
    cluster = ModelCluster(own=dict(own), looks_until_tiered=10**9)

    outcome = applied(cluster, "enable", "--timeout", "0s")

    assert (outcome.exit_code, cluster.alterations, cluster.own) == (0, [], own), outcome.err
    assert "nothing to change" in outcome.err
