"""`doctor connect` without a cluster: what a user may do by what one tells, and what is missing in old servers."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.needed_versions import missing_for_all, missing_for_some, release_in_words
from tieredctl.ops.cluster.connection import all_steps, exit_code, summary
from tieredctl.ports.connection_steps import AllowedOperations, ConnectionReport, ConnectionStep

ALL = frozenset({"Describe", "Read", "Write", "DescribeConfigs", "AlterConfigs"})
NOTHING = frozenset[str]()
EVERYTHING = AllowedOperations(
    ALL, {"orders": ALL}, ALL, dict.fromkeys(("Describe", "DescribeConfigs", "ClusterAction"), True), ALL
)
METADATA, FETCH, LIST_OFFSETS, DESCRIBE_CONFIGS = 3, 1, 2, 32
KAFKA_4 = {METADATA: (0, 13), FETCH: (4, 18), LIST_OFFSETS: (1, 11), DESCRIBE_CONFIGS: (1, 4)}


def judged(allowed: AllowedOperations) -> tuple[ExitCode, Mapping[str, ConnectionStep]]:
    """The exit code, and the step of each command."""
    report = ConnectionReport((), (), "id", "broker:9092", allowed)
    steps = all_steps(report)
    by_command = {command: step for step in steps for command in step.evidence["commands"]}  # type: ignore[attr-defined]
    return exit_code(report, steps), by_command


def test_who_may_do_all_has_the_rights_for_every_command() -> None:
    code, steps = judged(EVERYTHING)

    assert (code, {step.outcome for step in steps.values()}) == (ExitCode.CLEAN, {"ok"})
    assert {"verify", "topic enable", "diskless explain", "wal clean", "snapshot fetch"} <= set(steps)


def test_a_right_that_is_missing_is_named_and_no_finding() -> None:
    for allowed, command, lacking in (
        (EVERYTHING._replace(metadata_topic=NOTHING | {"Describe"}), "verify", "Read on topic __remote_log_metadata"),
        (EVERYTHING._replace(topics={"a": ALL, "b": NOTHING}), "offsets", "Describe on topic b"),
        (EVERYTHING._replace(topics={}, any_topic=NOTHING), "offsets", "Describe on topics"),
        (EVERYTHING._replace(cluster={"Describe": False}), "topic list", "Describe on the cluster"),
        (EVERYTHING._replace(any_group=NOTHING), "doctor", "Describe on groups of any name"),
    ):
        _, steps = judged(allowed)

        assert (steps[command].outcome, steps[command].evidence["lacking"]) == ("denied", [lacking])
    assert judged(EVERYTHING._replace(any_group=NOTHING))[0] is ExitCode.CLEAN


def test_who_sees_some_topics_is_judged_by_these() -> None:
    _, steps = judged(EVERYTHING._replace(any_topic=NOTHING))

    assert steps["offsets"].outcome == "ok"
    assert "others are hidden" in steps["offsets"].found


def test_what_a_cluster_does_not_tell_is_unknown() -> None:
    for allowed, command in (
        (EVERYTHING._replace(metadata_topic=None), "verify"),
        (EVERYTHING._replace(topics=None), "offsets"),
        (EVERYTHING._replace(topics={"a": None}), "offsets"),
        (EVERYTHING._replace(topics={}), "topic enable"),
        (EVERYTHING._replace(cluster={}), "doctor store"),
        (EVERYTHING._replace(any_group=None), "doctor"),
    ):
        code, steps = judged(allowed)

        assert (code, steps[command].outcome) == (ExitCode.INCOMPLETE, "unknown"), command


def test_who_may_do_nothing_needs_attention() -> None:
    code, steps = judged(
        AllowedOperations(NOTHING, {}, NOTHING, {"Describe": False, "DescribeConfigs": False}, NOTHING)
    )

    assert (code, {step.outcome for step in steps.values()}) == (ExitCode.FINDINGS, {"denied"})


def test_where_no_server_accepts_the_client_the_code_is_that_of_the_worst_error() -> None:
    errors = [TieredctlError(ErrorCode.BROKER_REFUSED, "No."), TieredctlError(ErrorCode.BROKER_UNREACHABLE, "Where?")]
    report = ConnectionReport((), errors)

    assert (exit_code(report, []), summary(report, [])["accepted"]) == (ExitCode.FAILURE, False)


def test_what_a_server_lacks_is_named() -> None:
    before_tiering = {**KAFKA_4, LIST_OFFSETS: (1, 7)}
    before_topic_ids = {**KAFKA_4, METADATA: (0, 9)}
    of_the_future = {**KAFKA_4, FETCH: (99, 100)}

    assert missing_for_all(KAFKA_4) == []
    assert [one.partition(" ")[0] for one in missing_for_all(before_topic_ids)] == ["Metadata"]
    assert [one.partition(" ")[0] for one in missing_for_all(of_the_future)] == ["Fetch"]
    assert sum(one.startswith("ListOffsets") for one in missing_for_some(before_tiering)) == 3
    assert missing_for_all({}) != []


def test_a_release_is_said_as_far_as_it_shows() -> None:
    assert release_in_words(KAFKA_4, 21).startswith("Kafka 3.9 by")
    assert "or later" in release_in_words(KAFKA_4, None)
    assert "does not know" in release_in_words(KAFKA_4, 9_999)
