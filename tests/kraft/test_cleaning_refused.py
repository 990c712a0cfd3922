"""A node that could not start on what stays, or that may be running, is not cleaned."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cleaned_nodes import FOLDER, LIMIT_MS, NEW_MS, NOW_MS, OTHER_TOPIC_ID, TOPIC_ID, applied, names, refused
from tests.kraft_snapshots import remove_topic_record, snapshot_bytes, topic_record
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.errors import ErrorCode
from tieredctl.wiring.snapshot_cleaning import snapshot_cleaning

LATER_RELEASE = b"\x01\x63\x00x"
"""Frame version 1, a record of type 99 and version 0."""


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


def test_the_lock_is_free_afterwards(log_dir: Path) -> None:
    applied(log_dir)

    with (log_dir / ".lock").open("r+") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
