"""What the user may not see is unknown in every estimate and plan, and never zero."""

from __future__ import annotations

import pytest

from tests.cli.command_line import Outcome
from tests.metadata_logs import TOPIC_ID
from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import LEVEL_3_8, NOW_MS, TOPIC, ModelCluster
from tieredctl.errors import TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.offsets import topic_offsets
from tieredctl.ops.doctor.diagnosis import diagnose
from tieredctl.ops.doctor.gathering import gather_settings
from tieredctl.ops.tiering.topic_status import topic_list, topic_status
from tieredctl.ports.cluster import leader_bytes

CLUSTER_RIGHTS = ("broker_configs", "quorum", "replica_bytes", "free_bytes")
"""What takes Describe or DescribeConfigs on the cluster."""
TIERED = {"remote.storage.enable": "true", "local.retention.ms": "1000"}
THREE = {1: (0, 99), 2: (100, 199), 3: (200, 299)}


def not_looked_at(outcome: Outcome) -> set[str]:
    return {item["subject"] for item in outcome.document()["items"] if item["code"] == "check-not-made"}


def test_bytes_that_may_not_be_seen_are_unknown_in_the_plan_to_enable(topic_command: TopicCommand) -> None:
    outcome = topic_command(ModelCluster(denied=CLUSTER_RIGHTS), "enable")

    estimate = outcome.document()["summary"]["estimate"]
    assert outcome.exit_code == 5
    assert {estimate[name] for name in ("bytesToCopy", "segments", "requestsAtLeast", "freedBytes", "seconds")} == {
        None
    }
    (leader,) = (one for one in estimate["brokers"] if one["brokerId"] == 1)
    assert (leader["bytesToCopy"], leader["freedBytes"], leader["copyQuotaKnown"]) == (None, None, False)
    assert "bytes on disks" in not_looked_at(outcome)
    assert "In all: unknown bytes" in outcome.err
    assert "Broker 1: an unknown size to copy" in outcome.err


def test_its_effect_is_waited_for_all_the_same(applied: TopicCommand) -> None:
    cluster = ModelCluster(denied=CLUSTER_RIGHTS, looks_until_tiered=4)
    outcome = applied(cluster, "enable")
    assert (outcome.exit_code, "has its first segment in remote storage" in outcome.err) == (0, True), outcome.err
    # Where nothing is seen to come that is incomplete.
    cluster = ModelCluster(denied=CLUSTER_RIGHTS, looks_until_tiered=10**9)
    outcome = applied(cluster, "enable", "--timeout", "0s")
    assert (outcome.exit_code, "no closed segment yet" in outcome.err) == (5, False)
    # A deletion needs no right to see disks.
    cluster = ModelCluster(own=dict(TIERED), remote_segments=THREE, earliest_local=150, denied=CLUSTER_RIGHTS)
    outcome = applied(cluster, "disable", "--delete")
    assert (outcome.exit_code, outcome.document()["summary"]["bytesOnlyRemote"]) == (0, 1500)


def test_quotas_and_free_space_that_may_not_be_seen_are_unknown(topic_command: TopicCommand) -> None:
    # A quota that may not be seen is not said to be none.
    outcome = topic_command(ModelCluster(denied=["broker_configs"]), "enable")
    assert ("at an unknown quota" in outcome.err, "without a quota" in outcome.err) == (True, False)
    # Free space that may not be seen makes the plan to stop incomplete.
    cluster = ModelCluster(own=dict(TIERED), remote_segments=THREE, earliest_local=150, denied=CLUSTER_RIGHTS)
    outcome = topic_command(cluster, "disable", "--stop-copying")
    brokers = outcome.document()["summary"]["brokers"]
    assert (outcome.exit_code, not_looked_at(outcome)) == (5, {"free bytes on disks"})
    assert {one["freeBytes"] for one in brokers} == {None}
    assert "free disk is unknown" in outcome.err


def test_status_and_list_say_what_they_could_not_see() -> None:
    cluster = ModelCluster(own=dict(TIERED), denied=CLUSTER_RIGHTS)
    found = topic_status(cluster, TOPIC, {}, NOW_MS, 0)
    (listed, *_), unseen = topic_list(cluster, {})
    summary = found.summary()
    assert (found.rows[0].local_bytes, summary["localBytes"], summary["brokersUnable"]) == (None, None, None)
    assert [finding.subject for finding in found.findings] == ["bytes on disks"]
    assert (listed.local_bytes, listed.partitions, len(unseen)) == (None, 1, 1)
    # Bytes on the disks of a broker that is down are unknown and partitions are all counted.
    cluster = ModelCluster(own=dict(TIERED), reporting=(1, 3))
    (listed, *_), (finding,) = topic_list(cluster, {})
    assert (listed.local_bytes, listed.partitions) == (None, 1)
    assert finding.message == "Replicas whose bytes are unknown: those on broker 2, which may be down."
    assert finding.kind.incomplete
    # So are those of a leader, but not of a follower, which the status of a topic leaves out.
    (finding,) = topic_status(ModelCluster(own=dict(TIERED), reporting=(2, 3)), TOPIC, {}, NOW_MS, 0).findings
    assert (finding.subject, finding.message.endswith("on broker 1, which may be down.")) == ("bytes on disks", True)
    assert topic_status(cluster, TOPIC, {}, NOW_MS, 0).findings == []
    # The doctor counts no brokers that it may not see.
    cluster = ModelCluster(own=dict(TIERED), denied=CLUSTER_RIGHTS)
    summary = diagnose(gather_settings(cluster, Clock(NOW_MS, 0), None)).summary()
    assert (summary["brokers"], summary["topics"], summary["complete"]) == (None, 1, False)


def test_offsets_that_no_leader_reports_are_unknown() -> None:
    cluster = ModelCluster(own=dict(TIERED), unanswered="LEADER_NOT_AVAILABLE")
    (finding,) = topic_status(cluster, TOPIC, {}, NOW_MS, 0).findings
    assert (finding.subject, finding.kind.incomplete) == (f"offsets of topic {TOPIC}", True)
    assert topic_offsets(cluster, TOPIC).summary()["notTiered"] is None
    # A release that does not know one of them reports the others.
    cluster = ModelCluster(own=dict(TIERED), level=LEVEL_3_8, latest_tiered=99)
    assert topic_status(cluster, TOPIC, {}, NOW_MS, 0).findings == []
    assert topic_offsets(cluster, TOPIC).summary()["notTiered"] is None
    cluster = ModelCluster(own=dict(TIERED), latest_tiered=99)
    assert topic_offsets(cluster, TOPIC).summary()["notTiered"] == 900


def test_a_plan_to_enable_is_incomplete_without_the_bytes_of_a_broker(topic_command: TopicCommand) -> None:
    outcome = topic_command(ModelCluster(reporting=(2, 3)), "enable")
    assert (outcome.exit_code, "bytes on disks" in not_looked_at(outcome)) == (5, True)
    assert outcome.document()["summary"]["estimate"]["bytesToCopy"] is None


def test_the_doctor_names_brokers_that_do_not_answer() -> None:
    def findings(answering: tuple[int, ...]) -> list[Finding]:
        cluster = ModelCluster(own=dict(TIERED), answering=answering, voters=(4,))
        diagnosis = diagnose(gather_settings(cluster, Clock(NOW_MS, 0), None))
        return [finding for finding in diagnosis.findings if finding.subject == "brokers"]

    assert findings((1, 2, 3)) == []
    (finding,) = findings((1, 3))
    assert (finding.kind.incomplete, finding.message.startswith("broker 2 did not answer")) == (True, True)
    # Where no broker's settings may be seen, that is what is said.
    assert findings(()) == []


def test_an_estimate_that_rests_on_bytes_is_not_made_without_them() -> None:
    cases: list[tuple[list[str], int | None]] = [(["replica_bytes"], 1), ([], None)]
    for denied, leader in cases:
        cluster = ModelCluster(denied=denied, leader=leader, topic_id=TOPIC_ID)
        with pytest.raises(TieredctlError):
            leader_bytes(cluster, TOPIC, cluster.topic(TOPIC).partitions[0])
