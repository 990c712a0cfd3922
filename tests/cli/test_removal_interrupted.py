"""Signals to a process that removes objects: the first ends it after its step, the second at once, and neither loses a
receipt."""

from __future__ import annotations

import json
import signal

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import CLUSTER_ID, ORPHANS, CrashedClusterOnDisk, planned_keys
from tests.rigs.stopped_process import (
    FINISHING,
    FULL_DISK,
    INT,
    RESUMES,
    TERM,
    TWICE,
    Moment,
    Stop,
    ended,
    let_the_lease_run_out,
    pasted,
    run_until,
)
from tieredctl.ops.guards.own_objects import LEASE_KEY

DELETION = "remove tiered/"


def apply_until(planned: CrashedClusterOnDisk, moment: Moment, stop: Stop) -> Outcome:
    confirmed = ("--offline-metadata", "--log-dir", planned.log_dir, "--yes", "--cluster-id", CLUSTER_ID)
    return run_until(moment, stop, planned.bucket, ["orphans", "apply", planned.plan_file, *confirmed])


def recorded(planned: CrashedClusterOnDisk) -> set[str]:
    """The keys whose removal the receipts have."""
    lines = [json.loads(line) for line in planned.receipts_file.read_text().splitlines()]
    return {line["key"] for line in lines if line.get("step") == "removed"}


def gone(planned: CrashedClusterOnDisk) -> set[str]:
    return planned_keys(planned.plan_file) - set(planned.objects())


def lease_is_free(planned: CrashedClusterOnDisk) -> bool:
    lease = planned.bucket / LEASE_KEY
    return not lease.exists() or bool(json.loads(lease.read_bytes())["expiresMs"] == 0)


@pytest.mark.parametrize(
    ("moment", "stop"),
    [
        (Moment("open "), INT),
        (Moment("lease", 1), TERM),
        (Moment("quarantine", 20), TERM),
    ],
)
def test_a_removal_that_is_interrupted_records_what_it_did_and_gives_its_lease_back(
    planned: CrashedClusterOnDisk, moment: Moment, stop: signal.Signals
) -> None:
    stopped = apply_until(planned, moment, stop)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (130, False)
    assert (FINISHING + RESUMES if moment.change == "lease" else RESUMES) in stopped.err
    assert not gone(planned) or recorded(planned) == gone(planned)
    assert lease_is_free(planned)
    assert pasted(stopped).exit_code == 0
    assert gone(planned) == planned_keys(planned.plan_file)


LAST_STEP = [Moment("lease", 2), Moment(DELETION, 1), Moment(DELETION, ORPHANS), Moment("lease", 3)]


@pytest.mark.parametrize(
    ("moment", "stop"),
    [
        (Moment(DELETION, 1), TERM),
        *(
            pytest.param(moment, stop, marks=pytest.mark.exhaustive)
            for moment in LAST_STEP
            for stop in (INT, TERM)
            if (moment, stop) != (Moment(DELETION, 1), TERM)
        ),
    ],
)
def test_a_removal_that_is_interrupted_in_its_last_step_is_finished_and_checked(
    planned: CrashedClusterOnDisk, moment: Moment, stop: signal.Signals
) -> None:
    stopped = apply_until(planned, moment, stop)

    demand_all_removed(planned, stopped)


def demand_all_removed(planned: CrashedClusterOnDisk, stopped: Outcome) -> None:
    assert (stopped.exit_code, "Traceback" in stopped.err) == (0, False), stopped.err
    assert FINISHING in stopped.err
    assert f"Removed {ORPHANS} of {ORPHANS}, " in stopped.err
    assert "Run it again" not in stopped.err
    assert gone(planned) == recorded(planned) == planned_keys(planned.plan_file)
    assert lease_is_free(planned)


def test_a_removal_for_whose_end_there_is_no_room_says_what_it_removed(planned: CrashedClusterOnDisk) -> None:
    stopped = apply_until(planned, Moment(DELETION, ORPHANS), FULL_DISK)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (1, False), stopped.err
    assert f"Removed {ORPHANS} of {ORPHANS}, " in stopped.err
    assert "No space left on device" in stopped.err
    assert gone(planned) == recorded(planned) == planned_keys(planned.plan_file)
    assert planned.apply().exit_code == 0


def apply_with_signals_in_the_check(planned: CrashedClusterOnDisk, *signals: signal.Signals) -> Outcome:
    """They come right before the metadata is asked for owners of what was removed."""
    program = (
        "import os, sys\n"
        "from tieredctl.cli.main import main\n"
        "from tieredctl.ops.orphan_removal.apply import Removal\n"
        "check = Removal._having_owners\n"
        "def interrupted(self, receipts):\n"
        f"    for number in {[*map(int, signals)]}:\n"
        "        os.kill(os.getpid(), number)\n"
        "    return check(self, receipts)\n"
        "Removal._having_owners = interrupted\n"
        "main()\n"
    )
    confirmed = ["--offline-metadata", "--log-dir", str(planned.log_dir), "--yes", "--cluster-id", CLUSTER_ID]
    done = ended(program, "orphans", "apply", str(planned.plan_file), *confirmed)
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("stop", [INT, pytest.param(TERM, marks=pytest.mark.exhaustive)])
def test_a_check_after_the_last_step_that_is_interrupted_is_finished(
    planned: CrashedClusterOnDisk, stop: signal.Signals
) -> None:
    demand_all_removed(planned, apply_with_signals_in_the_check(planned, stop))


def test_a_second_signal_in_the_check_stops_at_once_and_what_is_said_does_the_check(
    planned: CrashedClusterOnDisk,
) -> None:
    stopped = apply_with_signals_in_the_check(planned, INT, TERM)

    assert (stopped.exit_code, "Removed" in stopped.err) == (130, False)
    let_the_lease_run_out(planned.bucket, TWICE)
    resumed = pasted(stopped)
    assert (resumed.exit_code, f"Removed {ORPHANS} of {ORPHANS}, " in resumed.err) == (0, True)


def test_a_second_signal_stops_within_a_step_and_another_run_finishes_it(planned: CrashedClusterOnDisk) -> None:
    stopped = apply_until(planned, Moment(DELETION, 3), TWICE)

    assert (stopped.exit_code, "Traceback" in stopped.err) == (130, False)
    assert len(gone(planned)) == 2
    let_the_lease_run_out(planned.bucket, TWICE)
    assert pasted(stopped).exit_code == 0
    assert gone(planned) == planned_keys(planned.plan_file)
