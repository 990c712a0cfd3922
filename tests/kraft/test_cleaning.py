"""Removing old snapshots and segments of a stopped node: what goes, what never goes, and any interruption."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kraft_snapshots import remove_topic_record, snapshot_bytes, topic_record
from tests.metadata_quorum_files import MetadataFolder
from tests.rigs.line_program import LineProgram
from tests.rigs.maven import kafka_jars
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.kafka.node_folder import NodeFolder
from tieredctl.kraft.retention import RetentionLimits
from tieredctl.model.ids import uuid_text
from tieredctl.ops.documents import Document
from tieredctl.ops.snapshots.cleaning import CleaningOutcome
from tieredctl.ops.snapshots.snapshot_list import node_rows
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.snapshot_cleaning import SnapshotCleaning, snapshot_cleaning

CLUSTER_ID, TOPIC_ID = "5lgVbV_vRSmEjoqjPWDZrA", uuid_text(bytes(range(16)))
OTHER_TOPIC_ID = uuid_text(bytes(range(1, 17)))
NOW_MS, OLD_MS, NEW_MS = 1_000_000, 1, 999_990
LIMIT_MS = 1_000
FOLDER = "__cluster_metadata-0"
LATER_RELEASE = b"\x01\x63\x00x"
"""Frame version 1, a record of type 99 and version 0."""


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Of a node that was killed, with six segments, three snapshots (two of them old) and two left-overs."""
    folder = MetadataFolder(tmp_path / "node/__cluster_metadata-0")
    topic = topic_record(TOPIC_ID)
    folder.append(topic)
    for number in range(5):
        folder.roll()
        for _ in range(3):
            folder.append(timestamp=OLD_MS if number < 3 else NEW_MS)
        (folder.path / f"{folder.end_offset - 3:020}.index").write_bytes(b"")
        if number in (1, 2, 3):
            folder.snapshot(NEW_MS if number == 3 else OLD_MS, [topic])
    (folder.path / "00000000000000000003-0000000001-77.checkpoint.part").write_bytes(b"half")
    (folder.path / "00000000000000000002-0000000001.checkpoint.deleted").write_bytes(b"gone")
    (folder.path.parent / ".lock").touch()
    meta = MetaProperties(KRAFT_VERSION, CLUSTER_ID, 1, None)
    (folder.path.parent / "meta.properties").write_bytes(encode_meta_properties(meta))
    (folder.path.parent / "server.properties").write_text("node.id=1\n")
    return folder.path.parent


def applied(log_dir: Path, *, receipts: Path | None = None) -> CleaningOutcome:
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        return cleaning.apply(receipts or log_dir.parent / "receipts")


def names(log_dir: Path) -> list[str]:
    return sorted(os.listdir(log_dir / "__cluster_metadata-0"))


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
    assert {row["file"] for row in rows if row["action"] == "keep"} == {
        name for name in CLEANED if not name.endswith("index")
    }
    assert {row["reason"] for row in rows if row["kind"] == "snapshot"} == {
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


def refused(log_dir: Path) -> ErrorCode:
    before = names(log_dir)
    with pytest.raises(TieredctlError) as error, snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS):
        pass
    assert names(log_dir) == before
    return error.value.code


@pytest.mark.parametrize(
    "fault",
    ["another's end", "another's time", "another history", "the log ends before", "no log", "refused record"],
)
def test_a_latest_snapshot_that_does_not_fit_the_log_costs_no_other(log_dir: Path, fault: str) -> None:
    folder = log_dir / FOLDER
    true, latest = folder / f"{10:020}-0000000001.checkpoint", folder / f"{13:020}-0000000001.checkpoint"
    topic, other = topic_record(TOPIC_ID), topic_record(OTHER_TOPIC_ID, "other")
    if fault == "another's end":
        latest.unlink()
        shutil.copy(true, folder / f"{14:020}-0000000001.checkpoint")
    elif fault == "another's time":
        latest.write_bytes(snapshot_bytes(NEW_MS + 1, topic))
    elif fault == "another history":
        latest.write_bytes(snapshot_bytes(NEW_MS - 1, other))
    elif fault == "the log ends before":
        (folder / f"{13:020}.log").unlink()
        latest.rename(folder / f"{99:020}-0000000001.checkpoint")
    elif fault == "no log":
        for log in folder.glob("*.log"):
            log.unlink()
    else:
        twice = MetadataFolder(folder, end_offset=16)
        twice._segment = folder / f"{13:020}.log"
        twice.append(remove_topic_record(OTHER_TOPIC_ID), timestamp=NEW_MS)

    assert refused(log_dir) is ErrorCode.UNDECODABLE


def test_records_of_a_later_release_make_it_unknown_what_may_go(log_dir: Path) -> None:
    later = MetadataFolder(log_dir / FOLDER, end_offset=16)
    later._segment = log_dir / FOLDER / f"{13:020}.log"
    later.append(LATER_RELEASE, timestamp=NEW_MS)

    assert refused(log_dir) is ErrorCode.METADATA_INCOMPLETE


@pytest.mark.parametrize("foreign", ["50-1 as 85-1", "76-1 of 3.9.1 as 85-1"])
def test_of_a_real_node_the_true_snapshots_stay_while_a_wrong_one_is_the_latest(
    captures: Path, tmp_path: Path, foreign: str
) -> None:
    shutil.copytree(captures / "kafka-4.3.1/data", tmp_path / "data")
    folder = tmp_path / "data" / FOLDER
    release, end_offset = ("4.3.1", 50) if foreign.startswith("50") else ("3.9.1", 76)
    (wrong,) = (captures / f"kafka-{release}/data" / FOLDER).glob(f"{end_offset:020}-*.checkpoint")
    shutil.copy(wrong, folder / f"{85:020}-0000000001.checkpoint")

    assert refused(tmp_path / "data") is ErrorCode.UNDECODABLE


@pytest.mark.parametrize(
    "damage", ["latest cut", "latest flipped", "log flipped", "gap", "another epoch", "no snapshot"]
)
def test_a_node_that_could_not_start_on_what_stays_is_not_cleaned(log_dir: Path, damage: str) -> None:
    folder = log_dir / "__cluster_metadata-0"
    latest, log = folder / "00000000000000000013-0000000001.checkpoint", folder / "00000000000000000013.log"
    if damage == "latest cut":
        latest.write_bytes(latest.read_bytes()[:-1])
    elif damage == "gap":
        log.rename(folder / "00000000000000000099.log")
    elif damage == "another epoch":
        latest.rename(folder / "00000000000000000013-0000000002.checkpoint")
    elif damage == "no snapshot":
        for file in folder.glob("*.checkpoint"):
            file.unlink()
    else:
        flipped = latest if damage == "latest flipped" else log
        data = flipped.read_bytes()
        flipped.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))

    assert refused(log_dir) is ErrorCode.UNDECODABLE


HOLD = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_node_that_holds_its_lock_is_running(log_dir: Path) -> None:
    words = [sys.executable, "-c", HOLD, str(log_dir / ".lock")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"

        assert refused(log_dir) is ErrorCode.NODE_RUNNING
        holder.communicate("")
    assert applied(log_dir).is_complete


def test_without_a_lock_and_the_mark_of_a_clean_stop_it_is_not_certain_that_no_node_runs(log_dir: Path) -> None:
    (log_dir / ".lock").unlink()
    assert refused(log_dir) is ErrorCode.NODE_UNCLEAR

    (log_dir / ".kafka_cleanshutdown").touch()
    assert applied(log_dir).is_complete
    assert not (log_dir / ".lock").exists()


def test_a_lock_that_is_a_link_proves_nothing(log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (log_dir / ".lock").unlink()
    (log_dir / ".lock").symlink_to(tmp_path / "elsewhere")

    assert refused(log_dir) is ErrorCode.NODE_UNCLEAR


def test_no_node_can_start_while_it_is_cleaned(log_dir: Path) -> None:
    with snapshot_cleaning(log_dir, NOW_MS):
        words = [sys.executable, "-c", HOLD.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB"), str(log_dir / ".lock")]
        started = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert "BlockingIOError" in started.stderr


@pytest.mark.parametrize("sign", ["lock replaced", "mark gone"])
def test_a_node_that_may_have_started_in_between_stops_it(log_dir: Path, sign: str) -> None:
    if sign == "mark gone":
        (log_dir / ".lock").unlink()
        (log_dir / ".kafka_cleanshutdown").touch()
    before = names(log_dir)
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        if sign == "mark gone":
            (log_dir / ".kafka_cleanshutdown").unlink()
        else:
            (log_dir / "new").touch()
            (log_dir / "new").replace(log_dir / ".lock")

        outcome = cleaning.apply(log_dir.parent / "receipts")

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.NODE_RUNNING
    assert names(log_dir) == before


def limits_of(cleaning: SnapshotCleaning) -> tuple[int, int]:
    return cleaning.plan.limits.max_age_ms, cleaning.plan.limits.max_bytes


def test_limits_are_the_nodes_own_or_kafkas(log_dir: Path) -> None:
    own, default = log_dir / "server.properties", "Kafka's default: "
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (604_800_000, 104_857_600)
        assert set(sources_of(cleaning)) == {f"{default}{own} has none"}

    (log_dir.parent / "server.properties").write_text("node.id=2\nmetadata.max.retention.ms=1\n")
    own.unlink()
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (604_800_000, 104_857_600)
        assert set(sources_of(cleaning)) == {f"{default}no file of the node was found"}

    beside = log_dir.parent / "server.properties"
    beside.write_text("node.id=1\nmetadata.max.retention.ms=5\nmetadata.max.retention.bytes=-1\n")
    with snapshot_cleaning(log_dir, NOW_MS) as cleaning:
        assert limits_of(cleaning) == (5, -1)
        assert set(sources_of(cleaning)) == {str(beside)}
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=7) as cleaning:
        assert limits_of(cleaning) == (7, -1)
        assert sources_of(cleaning) == ["--metadata-max-retention-ms", str(beside)]

    beside.write_text("node.id=1\nmetadata.max.retention.ms=soon\n")
    assert refused_settings(log_dir) is ErrorCode.USAGE


def sources_of(cleaning: SnapshotCleaning) -> list[str]:
    return list(cleaning.plan.summary()["limitsFrom"].values())


def test_by_limits_that_may_not_be_the_nodes_nothing_goes(log_dir: Path, tmp_path: Path) -> None:
    (log_dir / "server.properties").unlink()
    before, receipts = names(log_dir), tmp_path / "receipts"

    for max_age_ms, max_bytes in ((None, None), (LIMIT_MS, None), (None, 1)):
        with (
            snapshot_cleaning(log_dir, NOW_MS, max_age_ms=max_age_ms, max_bytes=max_bytes) as cleaning,
            pytest.raises(TieredctlError, match="is not known") as error,
        ):
            cleaning.apply(receipts)
        assert error.value.code is ErrorCode.USAGE
    assert (names(log_dir), receipts.exists()) == (before, False)

    elsewhere = tmp_path / "etc.properties"
    elsewhere.write_text("node.id=1\nmetadata.max.retention.ms=1000\n")
    with snapshot_cleaning(log_dir, NOW_MS, server_properties=elsewhere) as cleaning:
        assert cleaning.apply(receipts).is_complete


@pytest.mark.parametrize("text", [None, "node.id=2\n", "", "node.id=\\u12"])
def test_a_named_file_must_be_the_nodes(log_dir: Path, tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "etc.properties"
    if text is not None:
        file.write_text(text)

    with (
        pytest.raises(TieredctlError) as error,
        snapshot_cleaning(log_dir, NOW_MS, server_properties=file),
    ):
        pass

    assert error.value.code is ErrorCode.USAGE


def refused_settings(log_dir: Path) -> ErrorCode:
    with pytest.raises(TieredctlError) as error, snapshot_cleaning(log_dir, NOW_MS):
        pass
    return error.value.code


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
        plan = {row["file"]: row["action"] == "remove" for row in cleaning.plan.rows() if row["kind"] == "snapshot"}
    rows, _ = node_rows(folder, NOW_MS, RetentionLimits(-1, 1 << 40))
    small, _ = node_rows(folder, NOW_MS, limits)
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=-1, max_bytes=0) as cleaning:
        smallest = {row["file"]: row["action"] == "remove" for row in cleaning.plan.rows() if row["kind"] == "snapshot"}

    assert plan == {name_of(2): True, name_of(7): True, name_of(10): False, name_of(13): False}
    assert listed(rows) == plan
    assert listed(small) == smallest


def name_of(end_offset: int) -> str:
    return f"{end_offset:020}-0000000001.checkpoint"


def listed(rows: list[Document]) -> dict[str, bool]:
    return {Path(row["file"]).name: row["mayBeDeleted"] for row in rows if row["state"] == "complete"}


@pytest.mark.parametrize(("suffix", "reason"), [(".part", "never finished"), (".deleted", "was deleting it")])
def test_why_an_unfinished_snapshot_may_go(log_dir: Path, suffix: str, reason: str) -> None:
    rows, _ = node_rows(log_dir / FOLDER, NOW_MS, RetentionLimits())

    (row,) = (row for row in rows if row["file"].endswith(suffix))
    assert reason in row["reason"]


def test_the_lock_is_free_afterwards(log_dir: Path) -> None:
    applied(log_dir)

    with (log_dir / ".lock").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
