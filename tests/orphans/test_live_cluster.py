"""Orphans of a running broker: its store kept what should be gone, and its topics are known by their ids."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin._acl import AclOperation

from tests.cli.command_line import this_process
from tests.rigs.access_rules import grant, scram_config
from tests.rigs.broker import METADATA_TOPIC
from tests.rigs.leftovers import (
    LEFT_BEHIND,
    ORDERS,
    RECORDS,
    STUCK,
    TRIMMED,
    TRIMMED_RECORDS,
    Leftovers,
    written_values,
)
from tests.rigs.opened_clients import opened_clients
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode
from tieredctl.kafka import topics_by_id
from tieredctl.kafka.topics_by_id import TopicsById
from tieredctl.ops.cluster.offline_cluster import CLOCK_SKEW_MS

pytestmark = pytest.mark.integration


@pytest.fixture
def cluster(leftovers_4: Leftovers) -> Leftovers:
    """Tests leave the store as it was."""
    return leftovers_4


def store_of(cluster: Leftovers) -> tuple[str, ...]:
    return ("--store", f"file:{cluster.broker.remote_dir}", "--layout", "local")


def scanned(
    capfd: pytest.CaptureFixture[str], cluster: Leftovers, bootstrap_server: str, *words: str
) -> tuple[int, dict[str, Any]]:
    where = ("--bootstrap-server", bootstrap_server, *store_of(cluster))
    code = run(["orphans", "scan", *where, "--min-age", "0s", "-o", "json", *words])
    document: dict[str, Any] = json.loads(capfd.readouterr().out)
    return code, document


def segments_by_verdict(document: dict[str, Any]) -> Counter[tuple[str, str, str | None, bool | None]]:
    """How many segments, each with objects of one verdict alone, have which."""
    verdicts = {
        (item["segmentId"], item["key"].rpartition("/")[0].split("-0-")[0]): set[tuple[Any, ...]]()
        for item in document["items"]
    }
    for item in document["items"]:
        topic = item["key"].rpartition("/")[0].split("-0-")[0]
        verdicts[item["segmentId"], topic].add((item["status"], item["cause"], item["topicLive"]))
    return Counter((topic, *verdict) for (_, topic), found in verdicts.items() for verdict in found)


def test_what_should_be_gone_is_found_with_its_cause_and_all_else_is_owned(
    cluster: Leftovers, capfd: pytest.CaptureFixture[str]
) -> None:
    code, document = scanned(capfd, cluster, cluster.broker.bootstrap_server)

    assert code == 3
    assert segments_by_verdict(document) == {
        (ORDERS, "owned", None, True): RECORDS - 1,
        (TRIMMED, "owned", None, True): RECORDS - 1 - TRIMMED_RECORDS,
        (TRIMMED, "orphan", "deleted-but-present", True): TRIMMED_RECORDS,
        (LEFT_BEHIND, "orphan", "deleted-but-present", False): RECORDS - 1,
        (STUCK, "orphan", "delete-never-finished", False): RECORDS - 1,
    }
    files = [file for file in cluster.broker.remote_dir.rglob("*") if file.is_file()]
    assert document["summary"]["objects"] == len(document["items"]) == len(files)
    assert document["source"]["liveTopics"] == {
        "kind": "cluster",
        "bootstrapServer": cluster.broker.bootstrap_server,
    }


def test_a_topic_that_the_user_may_not_see_is_not_taken_to_be_gone(
    cluster: Leftovers, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By name, over the same listener, both its own topic and a deleted one would be missing from the list."""
    for operation in (AclOperation.DESCRIBE, AclOperation.READ):
        grant(cluster.broker, METADATA_TOPIC, operation)
    grant(cluster.broker, ORDERS, AclOperation.DESCRIBE)
    config = scram_config(tmp_path, cluster.broker)

    server = cluster.broker.secure_listeners.sasl_ssl
    code, document = scanned(capfd, cluster, server, "--command-config", str(config))

    assert code == 3
    assert {(item["topicId"], item["topicLive"]) for item in document["items"]} == {
        (cluster.topic_ids[ORDERS], True),
        (cluster.topic_ids[TRIMMED], None),
        (cluster.topic_ids[LEFT_BEHIND], False),
        (cluster.topic_ids[STUCK], False),
    }
    assert {item["status"] for item in document["items"] if item["topicId"] == cluster.topic_ids[ORDERS]} == {"owned"}


def test_a_consumer_gets_every_record_that_remains(cluster: Leftovers) -> None:
    orders, trimmed = cluster.values(ORDERS), cluster.values(TRIMMED)

    assert orders == written_values(ORDERS)
    assert trimmed == written_values(TRIMMED)[TRIMMED_RECORDS:]


def files_of(store: Path) -> dict[str, bytes]:
    """All but tieredctl's own."""
    files = {file.relative_to(store): file for file in store.rglob("*") if file.is_file()}
    return {str(name): file.read_bytes() for name, file in files.items() if not name.parts[0].startswith(".tieredctl")}


def test_a_plan_removes_the_orphans_alone_and_its_receipts_put_them_back(
    cluster: Leftovers, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, store = cluster.broker.bootstrap_server, cluster.broker.remote_dir
    _, before = scanned(capfd, cluster, server)
    files = files_of(store)
    orphans = {item["key"] for item in before["items"] if item["status"] == "orphan"}
    plan, receipts = tmp_path / "plan", tmp_path / "receipts"
    live = ("--bootstrap-server", server)
    young = ("--min-age", "0s", "--allow-young", "--max-percent", "100")

    planned = run(["orphans", "plan", "--to", str(plan), *live, *store_of(cluster), *young, "-o", "json"])
    plan_made = json.loads(capfd.readouterr().out)
    sure = ("--yes", "--cluster-id", cluster.broker.cluster_id)
    opened = opened_clients(monkeypatch)
    applied = run(["orphans", "apply", str(plan), *live, *sure, "--receipts", str(receipts), "-o", "json"])
    apply_told = json.loads(capfd.readouterr().out)
    opened = Counter(opened)
    files_after = files_of(store)
    code_after, after = scanned(capfd, cluster, server)
    orders, trimmed = cluster.values(ORDERS), cluster.values(TRIMMED)
    restored = run(["orphans", "restore", str(receipts), "-o", "json"])
    restore_told = json.loads(capfd.readouterr().out)
    _, again = scanned(capfd, cluster, server)

    assert planned in (0, 3)
    assert plan_made["summary"]["planned"] == len(orphans)
    assert applied == 0
    assert apply_told["summary"]["done"] == len(orphans)
    assert opened["looks"] >= 2
    # The other clients ask for the settings of brokers, and for topics by their ids.
    assert (opened["sources"], opened["clients"]) == (1, 3)
    assert files_after == {name: content for name, content in files.items() if name not in orphans}
    assert (code_after, {item["status"] for item in after["items"]}) == (0, {"owned"})
    assert orders == written_values(ORDERS)
    assert trimmed == written_values(TRIMMED)[TRIMMED_RECORDS:]
    assert (restored, restore_told["summary"]["done"]) == (0, len(orphans))
    assert files_of(store) == files
    assert segments_by_verdict(again) == segments_by_verdict(before)


def test_a_snapshot_of_the_cluster_says_which_topics_there_were(
    cluster: Leftovers, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = {cluster.topic_ids[LEFT_BEHIND], cluster.topic_ids[STUCK]}
    snapshot = cluster.later_snapshot(tiered_for_ms=CLOCK_SKEW_MS + 1_000)
    where = ("--log-dir", str(cluster.broker.log_dir), *store_of(cluster), "--kraft-snapshot", str(snapshot))

    code = run(["orphans", "scan", *where, "--min-age", "0s", "-o", "json"])

    document = json.loads(capfd.readouterr().out)
    assert code == 3
    assert document["source"]["clusterId"] == cluster.broker.cluster_id
    assert document["source"]["liveTopics"]["clusterId"] == cluster.broker.cluster_id
    assert {(item["topicId"], item["topicLive"]) for item in document["items"]} == {
        (topic_id, topic_id not in gone) for topic_id in cluster.topic_ids.values()
    }


def test_the_log_in_a_running_brokers_log_directory_says_it_too(
    cluster: Leftovers, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.later_snapshot(tiered_for_ms=CLOCK_SKEW_MS + 1_000)
    data = str(cluster.broker.log_dir)
    where = ("orphans", "scan", "--log-dir", data, *store_of(cluster), "--min-age", "0s", "-o", "json")

    found = []
    for words in ((), ("--kraft-snapshot", data)):
        code = run([*where, *words])
        found.append((code, json.loads(capfd.readouterr().out)["items"]))

    assert found[0] == found[1]
    assert {item["topicLive"] for item in found[0][1]} == {True, False}


def test_a_cluster_that_does_not_answer_leaves_every_topic_unknown(cluster: Leftovers) -> None:
    topic_ids = list(cluster.topic_ids.values())

    with closing(TopicsById(cluster.broker.secure_listeners.ssl)) as silent:
        answers = silent.ask(topic_ids)
        described = silent.describe()

    assert answers == dict.fromkeys(topic_ids)
    assert "speaks TLS, but the client does not use TLS" in str(described["unanswered"])


@pytest.mark.parametrize("words", [("scan",), ("plan", "--to", "made.plan")], ids=["scan", "plan"])
def test_what_a_silent_cluster_leaves_unknown_makes_the_answer_incomplete(
    words: tuple[str, ...], cluster: Leftovers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(topics_by_id, "_FIRST_VERSION_BY_ID", 99)  # which no broker speaks

    outcome = this_process(
        *("orphans", *words, "--bootstrap-server", cluster.broker.bootstrap_server),
        *store_of(cluster),
        *("-o", "json", "--metrics-file", "metrics.prom"),
    )

    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert "It is unknown which topics are live: " in outcome.err
    assert f'tieredctl_exit_code{{command="orphans {words[0]}"}} 5\n' in Path("metrics.prom").read_text()
    assert words[0] == "plan" or outcome.document()["summary"]["complete"] is False
