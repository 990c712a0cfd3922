"""`topic disable`: what each form sets, deletes and needs, and which releases cannot."""

from __future__ import annotations

import pytest

from tests.cli.command_line import Outcome
from tests.metadata_logs import copied, segment_id
from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import DEFAULTS, LEVEL_3_8, LEVEL_3_9, LEVEL_4_3, ModelCluster
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.tiering.disable import MOST_SEGMENTS

TIERED = {"remote.storage.enable": "true", "local.retention.ms": "1000", "local.retention.bytes": "2000"}
THREE = {1: (0, 99), 2: (100, 199), 3: (200, 299)}
MANY = {number: (number, number) for number in range(1, MOST_SEGMENTS + 2)}
"""One segment more than may be deleted at once."""


def tiered(**changes: object) -> ModelCluster:
    """Three segments of 1,000 bytes are remote, of which the leader's disk has the last one and half of the second."""
    return ModelCluster(**{"own": dict(TIERED), "remote_segments": THREE, "earliest_local": 150, **changes})  # type: ignore[arg-type]


def found(outcome: Outcome) -> dict[str, str]:
    return {item["code"]: item["severity"] for item in outcome.document()["items"]}


def test_deletion_tells_what_goes_and_what_part_is_nowhere_else(topic_command: TopicCommand) -> None:
    cluster = tiered()
    outcome = topic_command(cluster, "disable", "--delete")
    summary = outcome.document()["summary"]
    (partition,) = summary["partitions"]
    assert (outcome.exit_code, found(outcome)) == (3, {"topic-disable-deletes": "warning"})
    assert (summary["remoteSegments"], summary["remoteBytes"], summary["bytesOnlyRemote"]) == (3, 3000, 1500)
    assert partition["offsetsOnlyRemote"] == [0, 149]
    assert [broker["localBytesNeeded"] for broker in summary["brokers"]] == [1500] * 3
    assert cluster.alterations == []
    # Where the local log begins nobody knows all may be nowhere else.
    outcome = topic_command(tiered(earliest_local=None), "disable", "--delete")
    summary = outcome.document()["summary"]
    (partition,) = summary["partitions"]
    assert (summary["bytesOnlyRemote"], partition["offsetsOnlyRemote"]) == (3000, [0, 299])


def test_deletion_is_one_request(applied: TopicCommand) -> None:
    cases: list[int] = [LEVEL_3_9, LEVEL_4_3]
    for level in cases:
        cluster = tiered(level=level)
        outcome = applied(cluster, "disable", "--delete")
        assert outcome.exit_code == 0, outcome.err
        assert cluster.alterations == [{"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}]
    # Deletion after copying was stopped leaves no trace of that.
    cluster = tiered(own={"remote.storage.enable": "true", "remote.log.copy.disable": "true"})
    applied(cluster, "disable", "--delete")
    assert "remote.log.copy.disable" not in cluster.own


def test_deletion_needs_leaders_and_whole_metadata(applied: TopicCommand) -> None:
    # Deletion needs a leader of every partition.
    cluster = tiered(leader=None)
    outcome = applied(cluster, "disable", "--delete")
    assert (outcome.exit_code, found(outcome)["topic-without-leader"]) == (3, "error")
    assert cluster.alterations == []
    # Nothing is deleted while the metadata topic cannot record it.
    cluster = tiered(metadata_leader=None)
    outcome = applied(cluster, "disable", "--delete")
    (without,) = (item for item in outcome.document()["items"] if item["code"] == "topic-without-leader")
    assert (outcome.exit_code, without["subject"]) == (3, "topic __remote_log_metadata")
    assert cluster.alterations == []
    # Metadata that cannot be read whole does not prove that nothing goes.
    cluster = tiered()
    cluster.source_findings = [
        Finding(FindingCode.METADATA_TRUNCATED, "__remote_log_metadata-0", "it begins at offset 7")
    ]
    outcome = applied(cluster, "disable", "--delete")
    assert (outcome.exit_code, "metadata-truncated" in outcome.err) == (5, True)
    assert cluster.alterations == []


def test_stopping_deletes_nothing_and_keeps_locally_what_all_of_retention_keeps(applied: TopicCommand) -> None:
    cluster = tiered()
    outcome = applied(cluster, "disable", "--stop-copying")
    assert (outcome.exit_code, found(outcome)) == (0, {})
    assert cluster.alterations == [
        {"remote.log.copy.disable": "true", "local.retention.ms": "-2", "local.retention.bytes": "-2"}
    ]
    # Local retention that is the total one stays.
    own = {"remote.storage.enable": "true", "local.retention.ms": DEFAULTS["retention.ms"]}
    cluster = tiered(own=own)
    applied(cluster, "disable", "--stop-copying")
    assert cluster.alterations == [{"remote.log.copy.disable": "true"}]


def test_disks_that_may_not_hold_it_are_named(topic_command: TopicCommand) -> None:
    outcome = topic_command(tiered(free={1: 1499, 2: 1500, 3: 1500}), "disable", "--stop-copying")

    (finding,) = outcome.document()["items"]
    assert (finding["code"], finding["subject"]) == ("topic-disable-fills-disks", "broker 1")
    # A broker that is down reports no free space.
    outcome = topic_command(tiered(free={1: 1500, 2: 1500}), "disable", "--stop-copying")
    (finding,) = outcome.document()["items"]
    assert (outcome.exit_code, finding["code"], finding["subject"]) == (5, "check-not-made", "free bytes on disks")
    assert "those of broker 3" in finding["message"]


def test_releases_before_3_9_are_refused_with_the_way_around(applied: TopicCommand) -> None:
    for form in ["--delete", "--stop-copying"]:
        cluster = tiered(level=LEVEL_3_8)
        outcome = applied(cluster, "disable", form)
        summary = outcome.document()["summary"]
        assert (outcome.exit_code, found(outcome)) == (3, {"topic-disable-unsupported": "error"}), form
        assert any("--create --topic t.local" in step for step in summary["steps"]), form
        assert any("tieredctl partition remove" in step for step in summary["steps"]), form
        assert all(step in outcome.err for step in summary["steps"]), form
        assert cluster.alterations == [], form


def test_what_is_left_of_a_topic_that_is_not_tiered_is_found(topic_command: TopicCommand) -> None:
    cases: list[tuple[int, str]] = [(LEVEL_3_8, "tieredctl topic enable t"), (LEVEL_3_9, "tieredctl partition remove")]
    for level, remedy in cases:
        outcome = topic_command(tiered(own={}, level=level), "disable", "--delete")
        (left,) = outcome.document()["items"]
        assert (outcome.exit_code, left["code"], left["evidence"]["segments"]) == (3, "remote-data-left", 3), level
        assert left["remedy"].startswith(remedy), (level, remedy)


def test_a_topic_that_is_not_tiered_or_not_copied_any_more_is_left_alone(applied: TopicCommand) -> None:
    # A topic that is not tiered is left alone.
    for form in ["--delete", "--stop-copying"]:
        cluster = ModelCluster()
        outcome = applied(cluster, "disable", form)
        assert (outcome.exit_code, found(outcome), cluster.alterations) == (0, {}, []), form
    # A topic that is not copied any more is left alone.
    cluster = tiered(own={"remote.storage.enable": "true", "remote.log.copy.disable": "true"})
    outcome = applied(cluster, "disable", "--stop-copying")
    assert (outcome.exit_code, cluster.alterations) == (0, [])
    assert "is no longer copied: nothing to change" in outcome.err


def test_one_form_has_to_be_named(topic_command: TopicCommand) -> None:
    cases: list[tuple[str, ...]] = [(), ("--delete", "--stop-copying")]
    for forms in cases:
        outcome = topic_command(tiered(), "disable", *forms)
        assert (outcome.exit_code, "--stop-copying and --delete" in outcome.err) == (2, True), forms
    # At once says nothing about stopping.
    outcome = topic_command(tiered(), "disable", "--stop-copying", "--at-once")
    assert (outcome.exit_code, "--at-once is for --delete" in outcome.err) == (2, True)


def test_so_much_that_brokers_hear_of_nothing_meanwhile_is_deleted_at_once_only_where_that_is_asked_for(
    applied: TopicCommand,
) -> None:
    # So much that brokers hear of nothing meanwhile is not deleted at once.
    cluster = tiered(remote_segments=MANY)
    outcome = applied(cluster, "disable", "--delete")
    steps = outcome.document()["summary"]["steps"]
    assert (outcome.exit_code, found(outcome)["topic-disable-at-once"]) == (3, "error")
    assert f"leaders would delete {len(MANY)} segments" in outcome.out
    assert ("--stop-copying" in steps[0], "retention.ms=1000" in steps[2]) == (True, True)
    assert all(step in outcome.err for step in steps)
    assert cluster.alterations == []
    # It is where that is asked for or there is little.
    cases: list[tuple[dict[int, tuple[int, int]], tuple[str, ...]]] = [
        (MANY, ("--at-once",)),
        (dict(list(MANY.items())[1:]), ()),
    ]
    for segments, words in cases:
        cluster = tiered(remote_segments=segments)
        outcome = applied(cluster, "disable", "--delete", *words)
        assert (outcome.exit_code, len(cluster.alterations), outcome.document()["summary"]["steps"]) == (0, 1, [])
        assert found(outcome).get("topic-disable-at-once") == ("warning" if words else None), (segments, words)


def test_what_is_to_be_confirmed_names_the_number_of_segments(topic_command: TopicCommand) -> None:
    outcome = topic_command(tiered(remote_segments=MANY), "disable", "--delete", "--at-once", "--apply")

    assert (outcome.exit_code, f"deleting {len(MANY)} segments" in outcome.err) == (2, True), outcome.err


@pytest.mark.parametrize(("form", "exit_code"), [("--delete", 5), ("--stop-copying", 0)])
def test_segments_that_came_since_the_plan_was_shown_are_named_and_nothing_is_deleted(
    topic_command: TopicCommand, monkeypatch: pytest.MonkeyPatch, form: str, exit_code: int
) -> None:
    cluster = tiered()

    def confirmed(*_arguments: object, **_options: object) -> None:
        cluster.events += copied(4, 300, 399)

    monkeypatch.setattr("tieredctl.cli.commands.topic_change.demand_confirmation", confirmed)
    outcome = topic_command(cluster, "disable", form, "--apply")

    assert outcome.exit_code == exit_code, outcome.err
    assert (segment_id(4) in outcome.err) is (exit_code == 5)
    assert bool(cluster.alterations) is (exit_code == 0)
