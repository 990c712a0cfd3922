"""After the change: what is waited for, and how each wait ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import LEVEL_3_8, TOPIC, ModelCluster
from tieredctl.wiring import topic_change

TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
THREE = {1: (0, 99), 2: (100, 199), 3: (200, 299)}


def test_the_first_segment_is_waited_for(applied: TopicCommand) -> None:
    outcome = applied(ModelCluster(looks_until_tiered=4), "enable")
    assert (outcome.exit_code, "has its first segment in remote storage" in outcome.err) == (0, True)
    # A small segment is closed by its age.
    outcome = applied(ModelCluster(size=1000, first_young_offset=None), "enable")
    assert "has its first segment in remote storage" in outcome.err
    # What does not come in time is incomplete.
    outcome = applied(ModelCluster(looks_until_tiered=10**9), "enable", "--timeout", "0s")
    (finding,) = [item for item in outcome.document()["items"] if item["code"] == "tiering-not-seen"]
    assert outcome.exit_code == 5
    assert "the change was made, but no segment was seen" in finding["message"]


def taken_out(applied: TopicCommand, **cluster: Any) -> ModelCluster:
    """A cluster whose topic was tiered up to offset 299, and has nothing left in remote storage."""
    made = ModelCluster(own=dict(TIERED), remote_segments=THREE, earliest_local=300, **cluster)
    assert applied(made, "disable", "--delete").exit_code == 0
    return made


def test_only_a_first_segment_after_the_topic_was_taken_out_is_one(applied: TopicCommand) -> None:
    # What was copied before the topic was taken out is not a first segment.
    cluster = taken_out(applied, looks_until_tiered=10**9)
    outcome = applied(cluster, "enable", "--timeout", "0s")
    assert (outcome.exit_code, "first segment in remote storage" in outcome.err) == (5, False), outcome.err
    # The first segment after it was taken out is.
    cluster = taken_out(applied, looks_until_tiered=4)
    outcome = applied(cluster, "enable")
    assert (outcome.exit_code, "has its first segment in remote storage" in outcome.err) == (0, True), outcome.err
    # A first segment is not said where what was there before is unknown.
    cluster = taken_out(applied)
    cluster.denied = ["source"]
    outcome = applied(cluster, "enable")
    unseen = {item["subject"] for item in outcome.document()["items"] if item["code"] == "check-not-made"}
    assert (outcome.exit_code, unseen) == (0, {"what was in remote storage before"})
    assert "has its first segment" not in outcome.err
    assert "had in remote storage before is unknown" in outcome.err


def test_nobody_waits_for_what_does_not_come(applied: TopicCommand) -> None:
    # Nobody waits where nothing is closed.
    outcome = applied(ModelCluster(size=1000, first_young_offset=0, looks_until_tiered=10), "enable")
    assert (outcome.exit_code, "no closed segment yet" in outcome.err) == (0, True)
    # Nobody waits who does not want to.
    cluster = ModelCluster(looks_until_tiered=10**9)
    outcome = applied(cluster, "enable", "--no-wait")
    assert (outcome.exit_code, cluster.own["remote.storage.enable"]) == (0, "true")
    # Nobody waits for a topic that was copied before.
    cluster = ModelCluster(own={"remote.storage.enable": "true"}, looks_until_tiered=10**9)
    outcome = applied(cluster, "enable", "--local-retention-ms", 3_600_000, "--timeout", "0s")
    assert (outcome.exit_code, cluster.alterations) == (0, [{"local.retention.ms": "3600000"}])
    # Brokers that do not tell are not waited for.
    outcome = applied(ModelCluster(level=LEVEL_3_8), "enable")
    assert (outcome.exit_code, "do not report what is tiered" in outcome.err) == (0, True)


def test_what_ends_the_wait_is_told_with_the_change_that_is_made(
    applied: TopicCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(topic_change, "await_first_segment", interrupted)

    outcome = applied(ModelCluster(), "enable")

    assert outcome.exit_code == 130
    assert f"The change of topic {TOPIC} is made (remote.storage.enable: false -> true)" in outcome.err


def test_the_last_deletion_is_waited_for(applied: TopicCommand) -> None:
    outcome = applied(ModelCluster(own=TIERED, remote_segments=THREE), "disable", "--delete")
    assert (outcome.exit_code, "nothing left in remote storage" in outcome.err) == (0, True)
    # Deletions that do not end in time are incomplete and found by another run.
    cluster = ModelCluster(own=TIERED, remote_segments=THREE, deletes=False)
    outcome = applied(cluster, "disable", "--delete", "--timeout", "0s")
    again = applied(cluster, "disable", "--delete")
    (left,) = again.document()["items"]
    assert outcome.exit_code == 5
    assert (again.exit_code, left["code"], left["evidence"]["segments"]) == (3, "remote-data-left", 3)


def test_progress_is_none_of_the_answer(applied: TopicCommand) -> None:
    for style in ["auto", "bar", "plain", "none"]:
        outcome = applied(ModelCluster(), "enable", "--progress", style)
        assert (outcome.exit_code, outcome.document()["summary"]["applied"]) == (0, True), style
    # Quiet says nothing.
    assert applied(ModelCluster(), "enable", "--quiet").err == ""
