"""`recover log-starts`: the files of a stopped node say what the plan wants, or nothing is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl, this_process
from tests.moved_log_starts import (
    CLUSTER_ID,
    EPOCHS,
    EPOCHS_BACK,
    EPOCHS_MOVED,
    RIGHT,
    STARTS,
    STARTS_MOVED,
    checkpoint,
    contents,
    is_right,
    item,
    kept,
    moved_node,
    plan,
    put_back,
    written,
)
from tieredctl.errors import ExitCode

OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAg"
Spoil = Callable[[Path, dict[str, Any]], object]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    moved_node(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    return written(tmp_path / "plan.json", plan())


def test_log_starts_and_leader_epochs_are_put_back_and_nothing_else_changes(node: Path, plan_file: Path) -> None:
    before = contents(node)

    shown = this_process("recover", "log-starts", plan_file, "--log-dir", node, "-o", "json")
    untouched = contents(node)
    outcome = put_back(plan_file, node, "-o", "json")
    again = put_back(plan_file, node, "-o", "json")

    assert (shown.exit_code, untouched == before) == (ExitCode.FINDINGS, True), shown.err
    assert [one["action"] for one in shown.document()["items"]] == ["restore", "restore"]
    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["written"]) == (ExitCode.CLEAN, 2, 3), outcome.err
    assert {name: text for name, text in contents(node).items() if "-kept-" not in name} == before | RIGHT
    assert kept(node) == {name: before[name] for name in RIGHT}
    assert (node / f"orders-0/{EPOCHS}").stat().st_mode & 0o777 == 0o640
    assert (again.exit_code, again.document()["summary"]["inPlace"]) == (ExitCode.CLEAN, 2), again.err


LAWFUL: Mapping[str, tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]] = {
    "as planned": (((2, 22), (4, 26)), ((0, 0), (2, 9), (4, 26))),
    "a leader since": (((2, 22), (4, 26), (6, 50)), ((0, 0), (2, 9), (4, 26), (6, 50))),
    "a lagging replica": (((2, 22),), ((0, 0), (2, 9))),
    "a leader since, at the offset of one that wrote nothing": (((2, 22), (6, 26)), ((0, 0), (2, 9), (6, 26))),
    "a leader since, which lacked what was not committed": (((2, 22), (6, 25)), ((0, 0), (2, 9), (6, 25))),
    "an empty local log": (((4, 22),), ((0, 0), (2, 9), (4, 22))),
    "an empty local log, and a leader since": (((6, 22), (7, 40)), ((0, 0), (2, 9), (6, 22), (7, 40))),
    "never truncated": (((0, 0), (2, 9), (4, 26)), ((0, 0), (2, 9), (4, 26))),
}
"""Epochs that a replica may have by the time that its broker is stopped, and those that it has to have."""


def test_epochs_of_leaders_elected_since_stay_and_none_that_the_replica_has_not_seen_is_added(tmp_path: Path) -> None:
    for name, (present, expected) in LAWFUL.items():
        node, document = tmp_path / name / "data", plan()
        moved_node(node)
        (node / f"orders-0/{EPOCHS}").write_text(checkpoint(*present))
        if present[0] == (4, 22):
            document["items"][0]["restore"]["leaderEpochCheckpoint"] = checkpoint((0, 0), (2, 9), (4, 22))
        plan_file = written(tmp_path / name / "plan.json", document)

        outcomes = [put_back(plan_file, node).exit_code for _ in range(2)]

        assert outcomes == [ExitCode.CLEAN] * 2, name
        assert (node / f"orders-0/{EPOCHS}").read_text() == checkpoint(*expected), name


def test_a_node_that_died_with_the_old_log_start_and_cut_epochs_gets_the_epochs_alone(
    node: Path, plan_file: Path
) -> None:
    (node / STARTS).write_text(STARTS_MOVED.replace("orders 0 22", "orders 0 0"))

    assert put_back(plan_file, node).exit_code == ExitCode.CLEAN
    assert is_right(node)


def replaced(name: str, text: str) -> Spoil:
    return lambda node, _plan: (node / name).write_text(text)


def removed(name: str) -> Spoil:
    return lambda node, _plan: (node / name).unlink()


def of_item(name: str, value: object) -> Spoil:
    return lambda _node, plan: plan["items"][0].update({name: value})


def of_restore(name: str, value: object) -> Spoil:
    return lambda _node, plan: plan["items"][0]["restore"].update({name: value})


def a_link(node: Path, _plan: object) -> None:
    (node / "orders-0").rename(node.parent / "elsewhere")
    (node / "orders-0").symlink_to(node.parent / "elsewhere")


def file_that_is_a_link(node: Path, _plan: object) -> None:
    (node / f"orders-0/{EPOCHS}").rename(node.parent / EPOCHS)
    (node / f"orders-0/{EPOCHS}").symlink_to(node.parent / EPOCHS)


def a_pipe(node: Path, _plan: object) -> None:
    (node / f"orders-0/{EPOCHS}").unlink()
    os.mkfifo(node / f"orders-0/{EPOCHS}")


METADATA = "orders-0/partition.metadata"
REFUSED: Mapping[str, tuple[Spoil, ExitCode]] = {
    "another topic id": (replaced(METADATA, f"version: 0\ntopic_id: {OTHER_ID}"), ExitCode.INCOMPLETE),
    "no topic id": (removed(METADATA), ExitCode.INCOMPLETE),
    "a damaged topic id": (replaced(METADATA, "version: 0\n"), ExitCode.INCOMPLETE),
    "another log start": (replaced(STARTS, STARTS_MOVED.replace("0 22", "0 23")), ExitCode.INCOMPLETE),
    "an earlier log start": (replaced(STARTS, STARTS_MOVED.replace("0 22", "0 10")), ExitCode.INCOMPLETE),
    "no log start": (replaced(STARTS, "0\n1\norders 1 40\n"), ExitCode.INCOMPLETE),
    "no epochs": (removed(f"orders-0/{EPOCHS}"), ExitCode.INCOMPLETE),
    "empty epochs": (replaced(f"orders-0/{EPOCHS}", ""), ExitCode.INCOMPLETE),
    "zero epochs": (replaced(f"orders-0/{EPOCHS}", "0\n0\n"), ExitCode.INCOMPLETE),
    "damaged epochs": (replaced(f"orders-0/{EPOCHS}", "0\n3\n2 22\n4 26\n"), ExitCode.INCOMPLETE),
    "epochs that fall": (replaced(f"orders-0/{EPOCHS}", "0\n2\n2 22\n1 26\n"), ExitCode.INCOMPLETE),
    "epochs after the log start": (replaced(f"orders-0/{EPOCHS}", checkpoint((2, 23), (4, 26))), ExitCode.INCOMPLETE),
    "an epoch that begins earlier": (replaced(f"orders-0/{EPOCHS}", checkpoint((2, 8), (4, 26))), ExitCode.INCOMPLETE),
    "an epoch elsewhere": (replaced(f"orders-0/{EPOCHS}", checkpoint((2, 22), (4, 27))), ExitCode.INCOMPLETE),
    "an epoch between": (replaced(f"orders-0/{EPOCHS}", checkpoint((2, 22), (3, 24), (4, 26))), ExitCode.INCOMPLETE),
    "another first epoch": (replaced(f"orders-0/{EPOCHS}", checkpoint((3, 22), (4, 26))), ExitCode.INCOMPLETE),
    "epochs since from before the move": (replaced(f"orders-0/{EPOCHS}", checkpoint((9, 20))), ExitCode.INCOMPLETE),
    "a leader since, after what is lacking": (
        replaced(f"orders-0/{EPOCHS}", checkpoint((2, 22), (9, 27))),
        ExitCode.INCOMPLETE,
    ),
    "a folder that is a link": (a_link, ExitCode.FAILURE),
    "a file that is a link": (file_that_is_a_link, ExitCode.FAILURE),
    "a pipe": (a_pipe, ExitCode.FAILURE),
    "no checkpoint": (removed(STARTS), ExitCode.USAGE),
    "an empty checkpoint": (replaced(STARTS, ""), ExitCode.CORRUPTION),
    "a cut checkpoint": (replaced(STARTS, STARTS_MOVED[:-40]), ExitCode.CORRUPTION),
    "a line twice": (replaced(STARTS, "0\n3\norders 0 22\norders 0 22\norders 1 40\n"), ExitCode.CORRUPTION),
    "a negative line": (replaced(STARTS, "0\n3\norders 0 22\norders 1 40\nother 0 -1\n"), ExitCode.CORRUPTION),
    "nobody's directory": (removed("meta.properties"), ExitCode.USAGE),
    "a damaged owner": (replaced("meta.properties", "version=1\n"), ExitCode.CORRUPTION),
    "no cluster": (replaced("meta.properties", "version=0\nbroker.id=1\n"), ExitCode.USAGE),
    "another cluster": (lambda _node, plan: plan["source"].update(clusterId=OTHER_ID), ExitCode.USAGE),
    "a plan of no cluster": (lambda _node, plan: plan["source"].update(clusterId=None), ExitCode.USAGE),
    "another kind": (lambda _node, plan: plan.update(kind="MetadataRecovery"), ExitCode.USAGE),
    "another version": (lambda _node, plan: plan.update(apiVersion="tieredctl/v9"), ExitCode.USAGE),
    "no items": (lambda _node, plan: plan.pop("items"), ExitCode.USAGE),
    "an item that is none": (lambda _node, plan: plan["items"].append(7), ExitCode.USAGE),
    "a partition twice": (lambda _node, plan: plan["items"].append(plan["items"][0]), ExitCode.USAGE),
    "a path": (of_item("topic", "../data/orders"), ExitCode.USAGE),
    "a path to the root": (of_item("topic", "/data/orders"), ExitCode.USAGE),
    "no name": (of_item("topic", ""), ExitCode.USAGE),
    "a name with an end of a line": (of_item("topic", "orders\n"), ExitCode.USAGE),
    "no topic id in the plan": (of_item("topicId", None), ExitCode.USAGE),
    "a wrong topic id in the plan": (of_item("topicId", "é" * 22), ExitCode.USAGE),
    "a negative partition": (of_item("partition", -1), ExitCode.USAGE),
    "a huge partition": (of_item("partition", 1 << 31), ExitCode.USAGE),
    "a partition that is true": (of_item("partition", True), ExitCode.USAGE),
    "a negative leader's start": (of_item("logStartOffset", -1), ExitCode.USAGE),
    "no leader's start": (of_item("logStartOffset", None), ExitCode.USAGE),
    "a negative start": (of_restore("logStartOffset", -1), ExitCode.USAGE),
    "a start above the leader's": (of_restore("logStartOffset", 23), ExitCode.USAGE),
    "a huge start": (of_restore("logStartOffset", 1 << 63), ExitCode.USAGE),
    "a start that is a text": (of_restore("logStartOffset", "0"), ExitCode.USAGE),
    "a start before the first epoch": (of_restore("leaderEpochCheckpoint", "0\n1\n2 9\n"), ExitCode.USAGE),
    "no epochs in the plan": (of_restore("leaderEpochCheckpoint", "0\n0\n"), ExitCode.USAGE),
    "damaged epochs in the plan": (of_restore("leaderEpochCheckpoint", "0\n9\n0 0\n"), ExitCode.USAGE),
    "epochs that fall in the plan": (of_restore("leaderEpochCheckpoint", "0\n2\n4 0\n2 9\n"), ExitCode.USAGE),
    "negative epochs in the plan": (of_restore("leaderEpochCheckpoint", "0\n2\n-1 0\n2 9\n"), ExitCode.USAGE),
    "epochs that are no text": (of_restore("leaderEpochCheckpoint", ["0 0"]), ExitCode.USAGE),
    "epochs that are not ASCII": (of_restore("leaderEpochCheckpoint", "0\n1\né é\n"), ExitCode.USAGE),
}
"""What is altered in the node's files or in the plan, and how the command ends."""


def test_what_is_not_as_the_plan_says_is_refused_and_nothing_at_all_is_written(tmp_path: Path) -> None:
    for name, (spoil, code) in REFUSED.items():
        node, document = tmp_path / name / "data", plan()
        moved_node(node)
        spoil(node, document)
        plan_file = written(tmp_path / name / "plan.json", document)
        before = state(node)

        shown = this_process("recover", "log-starts", plan_file, "--log-dir", node)
        outcome = put_back(plan_file, node)

        assert (shown.exit_code, outcome.exit_code) == (code, code), (name, shown.err, outcome.err)
        said = [line for line in outcome.err.splitlines() if line.startswith("tieredctl: ")]
        assert len(said) == 1, (name, outcome.err)
        assert state(node) == before, name


def state(node: Path) -> dict[str, tuple[int, int]]:
    """Of every file and folder: another file, or one that was written, differs."""
    found = {path: path.lstat() for path in node.rglob("*")}
    return {str(path): (status.st_ino, status.st_mtime_ns) for path, status in found.items()}


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"[" * 100_000, b'{"kind": "MetadataRecoveryPlan"}', b"\xff\xfe", b"9" * 5_000],
    ids=len,
)
def test_what_is_no_plan_is_a_wrong_argument(node: Path, plan_file: Path, text: bytes) -> None:
    plan_file.write_bytes(text)

    assert put_back(plan_file, node).exit_code == ExitCode.USAGE
    assert (node / STARTS).read_text() == STARTS_MOVED


def test_a_partition_in_another_of_the_nodes_log_directories_is_left_to_it(node: Path, plan_file: Path) -> None:
    other = node.parent / "other"
    shutil.copytree(node, other)
    shutil.rmtree(node / "orders-1")
    shutil.rmtree(other / "orders-0")

    outcome = put_back(plan_file, node, "-o", "json")
    there = put_back(plan_file, other, "-o", "json")

    assert [outcome.exit_code, there.exit_code] == [ExitCode.CLEAN] * 2, outcome.err
    assert [one["action"] for one in outcome.document()["items"]] == ["restore", "not-here"]
    assert [one["action"] for one in there.document()["items"]] == ["not-here", "restore"]
    assert (node / STARTS).read_text() == STARTS_MOVED.replace("orders 0 22", "orders 0 0")
    assert (node / f"orders-0/{EPOCHS}").read_text() == EPOCHS_BACK[0]
    assert (other / f"orders-1/{EPOCHS}").read_text() == EPOCHS_BACK[1]


def test_a_directory_without_any_of_them_is_the_wrong_one(node: Path, plan_file: Path) -> None:
    for number in EPOCHS_MOVED:
        shutil.rmtree(node / f"orders-{number}")

    outcome = put_back(plan_file, node)

    assert (outcome.exit_code, "has none of the partitions" in outcome.err) == (ExitCode.USAGE, True), outcome.err


def test_what_the_plan_does_not_know_is_unknown_and_the_rest_is_put_back(node: Path, plan_file: Path) -> None:
    document = plan()
    document["items"].append(item(2, 5, 0, "") | {"restore": None})
    document["items"].append(item(3, 5, 0, "") | {"restore": None, "leftOut": {}})
    written(plan_file, document)

    outcome = put_back(plan_file, node, "-o", "json")

    assert (outcome.exit_code, is_right(node)) == (ExitCode.INCOMPLETE, True), outcome.err
    assert [one["action"] for one in outcome.document()["items"]] == ["restore", "restore", "unknown"]


def test_a_plan_that_puts_nothing_back_has_nothing_to_do(node: Path, plan_file: Path) -> None:
    document = plan()
    document["items"] = [item(0, 22, 0, "") | {"restore": None, "leftOut": {}}]
    written(plan_file, document)

    assert put_back(plan_file, node).exit_code == ExitCode.CLEAN
    assert (node / STARTS).read_text() == STARTS_MOVED


def test_without_the_clusters_id_nothing_is_written(node: Path, plan_file: Path, tieredctl: Tieredctl) -> None:
    words = ("recover", "log-starts", plan_file, "--log-dir", node, "--apply")
    for more in ((), ("--yes",), ("--yes", "--cluster-id", OTHER_ID)):
        assert tieredctl(*words, *more).exit_code == ExitCode.USAGE, more
    assert tieredctl(*words, "--yes", "--cluster-id", CLUSTER_ID, "--dry-run").exit_code == ExitCode.FINDINGS
    assert (node / STARTS).read_text() == STARTS_MOVED
