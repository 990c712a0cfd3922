"""Removing old snapshots and segments of a stopped node: what goes, what never goes, and any interruption."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cleaned_nodes import CLUSTER_ID, FOLDER, LIMIT_MS, NOW_MS, OLD_MS, TOPIC_ID, applied, names
from tests.kraft_snapshots import snapshot_bytes, topic_record
from tests.rigs.line_program import LineProgram
from tests.rigs.maven import kafka_jars
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.node_folder import NodeFolder
from tieredctl.kraft.retention import RetentionLimits
from tieredctl.ops.snapshots.snapshot_list import ListedSnapshot, node_rows
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.snapshot_cleaning import snapshot_cleaning


class Killed(BaseException):
    """The process ends here."""


CLEANED = [
    "00000000000000000013-0000000001.checkpoint",
    "00000000000000000013.index",
    "00000000000000000013.log",
]


def test_old_snapshots_go_and_the_segments_that_a_later_one_contains(log_dir: Path) -> None:
    before = OfflineClusterPlace(log_dir).read()

    outcome = applied(log_dir)

    assert outcome.is_complete, outcome.stopped
    assert names(log_dir) == CLEANED
    after = OfflineClusterPlace(log_dir).read()
    assert (after.image, after.snapshot) == (before.image, before.snapshot)


def test_a_plan_changes_nothing(log_dir: Path) -> None:
    before = names(log_dir)

    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        rows = cleaning.plan.rows()

    assert names(log_dir) == before
    assert {row.file for row in rows if row.action == "keep"} == {
        name for name in CLEANED if not name.endswith("index")
    }
    assert {row.reason for row in rows if row.kind == "snapshot"} == {
        "its last record is 17 min old, more than 1.0 s",
        "it is the latest snapshot, with which a node starts",
    }


class Interrupted(NodeFolder):
    """Ends the process at one of the steps: before or after a file goes."""

    steps = 0
    at = 0

    def remove(self, name: str) -> None:
        Interrupted._step()
        super().remove(name)
        Interrupted._step()

    @staticmethod
    def _step() -> None:
        Interrupted.steps += 1
        if Interrupted.steps == Interrupted.at:
            raise Killed


def killed_at(log_dir: Path, step: int) -> bool:
    """Whether the run came to that step."""
    Interrupted.steps, Interrupted.at = 0, step
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        folder = Interrupted(cleaning._folder.path, cleaning._folder.descriptor)
        try:
            assert replace(cleaning, _folder=folder).apply(log_dir.parent / "receipts").is_complete
        except Killed:
            return True
    return False


def interruptions(log_dir: Path, copies: Path) -> Iterator[Path]:
    """A copy of the node for each step at which a run may end, so ended."""
    for step in range(1, 1_000):
        copy = copies / str(step)
        shutil.copytree(log_dir, copy / "node")
        if not killed_at(copy / "node", step):
            return
        yield copy / "node"


def test_killed_between_any_two_steps_the_cluster_is_the_same_and_another_run_ends_it(
    log_dir: Path, tmp_path: Path
) -> None:
    image = OfflineClusterPlace(log_dir).read().image
    ended = 0
    for copy in interruptions(log_dir, tmp_path / "copies"):
        assert OfflineClusterPlace(copy).read().image == image

        assert applied(copy).is_complete
        assert names(copy) == CLEANED
        ended += 1
    assert ended > 15


@pytest.mark.integration
def test_kafka_starts_on_whatever_an_interruption_leaves(log_dir: Path, tmp_path: Path) -> None:
    with LineProgram(kafka_jars("4.3.1"), "MetadataLogOracle") as kafka:
        for copy in interruptions(log_dir, tmp_path / "copies"):
            answer = kafka.ask([f"{copy}/__cluster_metadata-0 -1 -1 {NOW_MS} 15:1"])

            assert answer["answers"] == [["VALID", 15, 1]]
            assert "00000000000000000013-0000000001.checkpoint" in answer["cleaned"]


def test_receipts_say_before_and_after_each_file_what_is_done(log_dir: Path, tmp_path: Path) -> None:
    receipts = tmp_path / "receipts"
    receipts.write_text('{"step":"remov')  # of a run that was killed while it wrote
    before = set(names(log_dir))

    applied(log_dir, receipts=receipts)

    lines = [json.loads(line) for line in receipts.read_text().splitlines()[1:]]
    gone = before - set(names(log_dir))
    assert {line["file"] for line in lines} == gone
    assert [line["step"] for line in lines] == ["removing", "removed"] * len(gone)
    assert {line["clusterId"] for line in lines} == {CLUSTER_ID}


@pytest.mark.parametrize(
    ("receipts", "code"),
    [
        (".", ErrorCode.UNWRITABLE),
        ("missing/receipts", ErrorCode.UNWRITABLE),
        ("other.json", ErrorCode.UNWRITABLE),
        ("node/receipts", ErrorCode.USAGE),
        ("link/receipts", ErrorCode.USAGE),
        ("node/.lock", ErrorCode.USAGE),
        ("node/__cluster_metadata-0/receipts", ErrorCode.USAGE),
        ("node/__cluster_metadata-0/00000000000000000013-0000000001.checkpoint", ErrorCode.USAGE),
        ("same", ErrorCode.UNWRITABLE),
    ],
)
def test_without_receipts_in_a_place_of_their_own_nothing_goes(
    log_dir: Path, tmp_path: Path, receipts: str, code: ErrorCode
) -> None:
    (tmp_path / "link").symlink_to(log_dir)
    (tmp_path / "other.json").write_text('{"kind": "plan"}')
    (tmp_path / "same").hardlink_to(log_dir / FOLDER / f"{13:020}-0000000001.checkpoint")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    with (
        snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning,
        pytest.raises(TieredctlError) as error,
    ):
        cleaning.apply(tmp_path / receipts)

    assert error.value.code is code
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("changed", ["the log grows", "a snapshot comes", "the latest changes", "an old one changes"])
def test_what_changed_after_the_plan_was_shown_stops_it(log_dir: Path, changed: str) -> None:
    folder = log_dir / "__cluster_metadata-0"
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        if changed == "the log grows":
            with (folder / "00000000000000000013.log").open("ab") as log:
                log.write(b"x")
        elif changed == "a snapshot comes":
            shutil.copy(
                folder / "00000000000000000013-0000000001.checkpoint", folder / f"{14:020}-0000000001.checkpoint"
            )
        else:
            name = f"{13 if changed.startswith('the latest') else 7:020}-0000000001.checkpoint"
            data = (folder / name).read_bytes()
            (folder / "new").write_bytes(data)
            (folder / "new").replace(folder / name)
        before = names(log_dir)

        outcome = cleaning.apply(log_dir.parent / "receipts")

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED
    assert names(log_dir) == before


def test_what_changes_in_the_middle_stops_it_there(log_dir: Path) -> None:
    class Growing(NodeFolder):
        def remove(self, name: str) -> None:
            super().remove(name)
            with (log_dir / "__cluster_metadata-0/00000000000000000013.log").open("ab") as log:
                log.write(b"x")

    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        folder = Growing(cleaning._folder.path, cleaning._folder.descriptor)
        outcome = replace(cleaning, _folder=folder).apply(log_dir.parent / "receipts")

    assert outcome.done == 1
    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED


def test_an_age_that_cannot_be_read_is_not_too_high(log_dir: Path) -> None:
    oldest = log_dir / "__cluster_metadata-0/00000000000000000007-0000000001.checkpoint"
    oldest.write_bytes(b"damaged")

    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        summary, findings = cleaning.plan.summary(), cleaning.plan.findings()

    assert (summary["snapshots"], summary["segments"], summary["leftOver"]) == (0, 0, 2)
    assert [finding.code for finding in findings] == ["unreadable"]


def test_a_snapshot_before_the_log_goes_in_any_case_and_costs_no_segment(log_dir: Path) -> None:
    """As `snapshot ls` says it of the same files."""
    folder = log_dir / FOLDER
    (folder / f"{2:020}-0000000001.checkpoint").write_bytes(snapshot_bytes(OLD_MS, topic_record(TOPIC_ID)))
    for first in (0, 1, 4, 7):
        (folder / f"{first:020}.log").unlink()
        (folder / f"{first:020}.index").unlink(missing_ok=True)
    limits = RetentionLimits(-1, 0)

    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=-1, max_bytes=1 << 40) as cleaning:
        plan = {row.file: row.action == "remove" for row in cleaning.plan.rows() if row.kind == "snapshot"}
    rows, _ = node_rows(folder, NOW_MS, RetentionLimits(-1, 1 << 40))
    small, _ = node_rows(folder, NOW_MS, limits)
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=-1, max_bytes=0) as cleaning:
        smallest = {row.file: row.action == "remove" for row in cleaning.plan.rows() if row.kind == "snapshot"}

    assert plan == {name_of(2): True, name_of(7): True, name_of(10): False, name_of(13): False}
    assert listed(rows) == plan
    assert listed(small) == smallest


def name_of(end_offset: int) -> str:
    return f"{end_offset:020}-0000000001.checkpoint"


def listed(rows: list[ListedSnapshot]) -> dict[str, bool | None]:
    return {Path(row.file).name: row.may_be_deleted for row in rows if row.state == "complete"}


@pytest.mark.parametrize(("suffix", "reason"), [(".part", "never finished"), (".deleted", "was deleting it")])
def test_why_an_unfinished_snapshot_may_go(log_dir: Path, suffix: str, reason: str) -> None:
    rows, _ = node_rows(log_dir / FOLDER, NOW_MS, RetentionLimits())

    (row,) = (row for row in rows if row.file.endswith(suffix))
    assert row.reason is not None
    assert reason in row.reason
