"""The real command in a process of its own, stopped right before it changes a file: by a signal, or by a full disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.cli.command_line import SECONDS, Outcome, environment
from tieredctl.ops.guards.own_objects import LEASE_KEY

STARTUP = Path(__file__).parent / "stopping"


class Moment(NamedTuple):
    """Right before the nth change that a pattern is found in: `remove KEY`, `rename KEY`, `link KEY` or `open NAME` of
    a new file."""

    change: str
    number: int = 1


class FullDisk:
    """From some moment on no file can be made."""


FULL_DISK = FullDisk()
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
Stop = signal.Signals | FullDisk
_INTERRUPTED = 130


def run_until(moment: Moment, stop: Stop, folder: Path, words: Iterable[str | Path]) -> Outcome:
    """Runs tieredctl, and stops it at a moment of its work below a folder: how it ended. Raises AssertionError where
    the moment did not come."""
    told, tell = os.pipe()
    waits, go_on = os.pipe()
    command = [sys.executable, "-m", "tieredctl", *map(str, words)]
    variables = environment(TIEREDCTL_STOPPING=f"{folder}:{tell}:{waits}")
    variables["PYTHONPATH"] = os.pathsep.join([str(STARTUP), variables["PYTHONPATH"]])
    with subprocess.Popen(
        *(command,),
        env=variables,
        pass_fds=(tell, waits),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        os.close(tell)
        os.close(waits)
        with os.fdopen(told) as changes:
            seen = _supervise(process, changes, go_on, moment, stop)
        os.close(go_on)
        out, error = process.communicate(timeout=SECONDS)
    assert _count(seen, moment) >= moment.number, f"{moment} did not come: {seen}\n{error}"
    return Outcome(process.returncode, out, error)


def let_the_lease_run_out(store: Path, stop: Stop) -> None:
    """What a few minutes would do where a run was killed."""
    lease = store / LEASE_KEY
    if stop is KILL and lease.exists():
        long_ago = lease.stat().st_mtime - 3_600
        os.utime(lease, (long_ago, long_ago))


def demand_said(stopped: Outcome, stop: Stop) -> None:
    """An exit code that fits, and one sentence with a hint, without a traceback."""
    if stop is KILL:
        assert stopped.exit_code == -KILL
        return
    said = [line for line in stopped.err.splitlines() if line.startswith("tieredctl: ")]
    assert len(said) == 1, stopped.err
    assert "Traceback" not in stopped.err
    if isinstance(stop, FullDisk):
        assert (stopped.exit_code, "No space left on device" in said[0]) == (1, True), stopped
    else:
        assert (stopped.exit_code, said[0]) == (_INTERRUPTED, "tieredctl: Interrupted."), stopped
        assert "it resumes where it stopped" in stopped.err


def _supervise(
    process: subprocess.Popen[str],
    changes: Iterable[str],
    go_on: int,
    moment: Moment,
    stop: Stop,
) -> list[str]:
    seen: list[str] = []
    answer = b"."
    for line in changes:
        seen.append(line.rstrip("\n"))
        is_now = re.search(moment.change, line) and _count(seen, moment) == moment.number
        if not is_now:
            os.write(go_on, answer)
        elif isinstance(stop, FullDisk):
            answer = b"F"
            os.write(go_on, answer)
        else:
            # Until it is handled, the process waits for an answer that does not come.
            process.send_signal(stop)
    return seen


def _count(seen: Iterable[str], moment: Moment) -> int:
    return sum(bool(re.search(moment.change, change)) for change in seen)
