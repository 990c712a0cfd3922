"""`recover indexes` stopped in the middle, by a signal or by a disk that is full: each index is as it was or whole, and
another run finishes the work."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment
from tests.cli.test_recover_indexes import CONFIRMED, SEGMENT_ID, STEM
from tests.rigs.killed_runs import killed_runs
from tests.rigs.stopped_process import (
    FULL_DISK,
    TERM,
    Moment,
    Stop,
    demand_said,
    run_until,
)
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ports.object_store import RESERVED_FOLDER

DAMAGED, MISSING = f"{STEM}.index", f"{STEM}.timeindex"
GARBAGE = b"seven b"
EXHAUSTIVE = pytest.mark.exhaustive
REPLACES = rf"rename .*{DAMAGED}$"


def contents(store: Path) -> dict[str, bytes]:
    """All but what is tieredctl's own."""
    keys = {str(path.relative_to(store)): path for path in store.rglob("*") if path.is_file()}
    return {key: path.read_bytes() for key, path in keys.items() if not key.startswith(RESERVED_FOLDER)}


def segment_in_a_store(captures: Path, store: Path) -> tuple[str | Path, ...]:
    """Copies all that belongs to the segment; the words that recover its indexes."""
    folder, capture = STEM.partition("/")[0], captures / "kafka-4.3.1"
    shutil.copytree(capture / "remote/kafka-tiered-storage" / folder, store / folder)
    return ("recover", "indexes", SEGMENT_ID, "--store", f"file:{store}", "--log-dir", capture / "data", *CONFIRMED)


@pytest.mark.parametrize(
    ("stop", "moment"),
    [
        pytest.param(TERM, Moment(REPLACES), id="terminated-before-it-replaces", marks=EXHAUSTIVE),
        pytest.param(FULL_DISK, Moment(f"rename {LEASE_KEY}"), id="full-at-once", marks=EXHAUSTIVE),
        pytest.param(FULL_DISK, Moment(REPLACES), id="full-between-two-indexes"),
    ],
)
def test_a_recovery_of_indexes_that_is_stopped_leaves_each_whole_and_is_finished_by_another_run(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl, stop: Stop, moment: Moment
) -> None:
    store = tmp_path / "store"
    recover = segment_in_a_store(captures, store)
    right = contents(store)
    (store / DAMAGED).write_bytes(GARBAGE)
    (store / MISSING).unlink()

    stopped = run_until(moment, stop, store, recover)

    between = contents(store)
    finished = tieredctl(*recover)

    demand_said(stopped, stop)
    assert between[DAMAGED] in (GARBAGE, right[DAMAGED])
    assert between.get(MISSING) in (None, right[MISSING])
    assert between | {DAMAGED: b"", MISSING: b""} == right | {DAMAGED: b"", MISSING: b""}
    assert finished.exit_code == 0, finished.err
    assert contents(store) == right


def test_killed_at_any_moment_each_index_is_as_it_was_or_whole(captures: Path, tmp_path: Path) -> None:
    begun, store = tmp_path / "begun", tmp_path / "store"
    recover = segment_in_a_store(captures, store)
    right = contents(store)
    (store / DAMAGED).write_bytes(GARBAGE)
    (store / MISSING).unlink()
    store.rename(begun)

    def begin() -> None:
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(begun, store)

    capture = captures / "kafka-4.3.1"
    for moment in killed_runs(recover, store, begin, lambda: contents(store), [capture / "data", capture / "remote"]):
        between = contents(store)
        assert between[DAMAGED] in (GARBAGE, right[DAMAGED]), moment
        assert between.get(MISSING) in (None, right[MISSING]), moment
        assert between | {DAMAGED: b"", MISSING: b""} == right | {DAMAGED: b"", MISSING: b""}, moment
    assert contents(store) == right


def test_a_result_that_nothing_has_room_for_is_reported_and_the_work_is_done(
    captures: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    store = tmp_path / "store"
    recover = segment_in_a_store(captures, store)
    right = contents(store)
    (store / MISSING).unlink()

    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "tieredctl", *map(str, recover)]
        unseen = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    again = tieredctl(*recover)

    assert (unseen.returncode, "No space left on device" in unseen.stderr) == (1, True), unseen.stderr
    assert contents(store) == right
    assert (again.exit_code, "there is nothing to write" in again.err) == (0, True)
