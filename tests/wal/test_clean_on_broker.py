"""`wal clean` by a live cluster: what it may remove is what the cluster's own remote storage, settings and log starts
say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command_line import this_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.workload import CLICKS, ORDERS, RETIRED, UNTIERED
from tests.wal.local_partitions import batch, write_partition
from tieredctl.errors import ExitCode
from tieredctl.kafka import topics_by_id
from tieredctl.model.ids import TopicIdPartition

pytestmark = pytest.mark.integration


def test_each_topic_is_judged_by_what_the_cluster_says(kafka_4: DrivenBroker, tmp_path: Path) -> None:
    topics = kafka_4.cluster.topics
    for name in (ORDERS, CLICKS, RETIRED, UNTIERED):
        write_partition(tmp_path / "logs", TopicIdPartition(topics[name].topic_id, name, 0), [batch(0), batch(1)])
    unknown = TopicIdPartition("EBAPDg0MCwoJCAcGBQQDAg", ORDERS, 1)
    write_partition(tmp_path / "logs", unknown, [batch(0), batch(1)])
    (tmp_path / "store").mkdir()
    store = ("--store", f"file:{tmp_path / 'store'}")
    # Two batches fill an object: each partition has one of its own, in whatever order their ids are.
    uploaded = this_process("wal", "upload", "--log-dir", tmp_path / "logs", *store, "--upload-bytes", "100", "--apply")
    assert uploaded.exit_code == 0, uploaded.err

    for path in tmp_path.glob("store/*.wal"):
        os.utime(path, (0, 0))
    words = ("--bootstrap-server", kafka_4.broker.bootstrap_server, "-o", "json")
    planned = this_process("wal", "clean", *store, *words)

    document = planned.document()
    assert planned.exit_code == ExitCode.FINDINGS, planned.err  # the cluster answered, and it is more than 10 %
    needs = {(one["topic"], one["need"]) for row in document["items"] for one in row["segments"]}
    assert (RETIRED, "PARTITION_GONE") in needs
    # No record proves that this cluster ever had it.
    planned_ids = {one["topicId"] for row in document["items"] for one in row["segments"]}
    assert unknown.topic_id not in planned_ids
    assert document["summary"]["kept"]["UNKNOWN"] == 1
    assert {need for name, need in needs if name == CLICKS} <= {"TIERED", "BELOW_LOG_START"}
    assert (ORDERS, "TIERED") in needs
    assert UNTIERED not in {name for name, _ in needs}
    assert document["summary"]["kept"]["NEEDED"] >= 1

    confirmed = ("--apply", "--yes", "--cluster-id", document["source"]["clusterId"])
    refused = this_process("wal", "clean", *store, *words, *confirmed)
    cleaned = this_process("wal", "clean", *store, *words, *confirmed, "--max-percent", "99")

    planned_keys = {row["key"] for row in document["items"]}
    assert (refused.exit_code, "more than 10 %" in refused.err) == (2, True)
    assert cleaned.exit_code == 0, cleaned.err
    assert {row["key"] for row in cleaned.document()["items"] if row["status"] == "removed"} == planned_keys
    left = {path.name for path in tmp_path.glob("store/*.wal")}
    assert planned_keys.isdisjoint(left)
    assert len(left) == sum(document["summary"]["kept"].values())


def test_topics_of_which_a_silent_cluster_says_nothing_are_unknown(
    kafka_4: DrivenBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = TopicIdPartition(kafka_4.cluster.topics[RETIRED].topic_id, RETIRED, 0)
    write_partition(tmp_path / "logs", retired, [batch(0)])
    (tmp_path / "store").mkdir()
    store = ("--store", f"file:{tmp_path / 'store'}")
    uploaded = this_process("wal", "upload", "--log-dir", tmp_path / "logs", *store, "--apply")
    assert uploaded.exit_code == 0, uploaded.err
    monkeypatch.setattr(topics_by_id, "_FIRST_VERSION_BY_ID", 99)  # which no broker speaks

    planned = this_process("wal", "clean", *store, "--bootstrap-server", kafka_4.broker.bootstrap_server)

    assert planned.exit_code == ExitCode.INCOMPLETE
    assert "It is unknown which topics are live: " in planned.err
