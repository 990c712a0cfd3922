"""The real command in a process of its own, stopped right before it changes a file: by a signal, or by a full disk."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from tests.cli.command_line import SECONDS, Outcome, environment, own_process
from tieredctl.ops.guards.own_objects import LEASE_KEY

STARTUP = Path(__file__).parent / "stopping"


class Moment(NamedTuple):
    """Right before the nth change that a pattern is found in: `remove KEY`, `rename KEY`, `link KEY` or `open NAME` of
    a new file; or `call NAME`."""

    change: str
    number: int = 1


class FullDisk:
    """From some moment on no file can be made."""


class Twice:
    """Two signals, the second while the process waits."""


FULL_DISK = FullDisk()
TWICE = Twice()
INT, TERM, KILL = signal.SIGINT, signal.SIGTERM, signal.SIGKILL
Stop = signal.Signals | FullDisk | Twice
FINISHING = "Finishing this step; interrupt again to stop at once.\n"
RESUMES = "tieredctl: Interrupted.\n  Run it again, it resumes where it stopped: tieredctl orphans apply "
PROMPTLY = 60
"""Seconds: less than any of tieredctl's own timeouts together with its retries."""
_INTERRUPTED = 130


def ended(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """How a Python program ended, and what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PROMPTLY,
        check=False,
    )


def run_until(
    moment: Moment, stop: Stop, folder: Path, words: Iterable[str | Path], calls: Iterable[str] = ()
) -> Outcome:
    """Runs tieredctl, and stops it at a moment of its work below a folder, or right before it calls one of some
    functions of extension modules: how it ended. Raises AssertionError where the moment did not come."""
    outcome, seen = _run(moment, stop, folder, words, calls)
    assert _count(seen, moment) >= moment.number, f"{moment} did not come: {seen}\n{outcome.err}"
    return outcome


def run_to_its_end(
    folder: Path, words: Iterable[str | Path], calls: Iterable[str] = ()
) -> tuple[Outcome, Sequence[str]]:
    """Runs tieredctl: how it ended, and the changes and calls at which it can be stopped."""
    return _run(None, KILL, folder, words, calls)


def _run(
    moment: Moment | None, stop: Stop, folder: Path, words: Iterable[str | Path], calls: Iterable[str]
) -> tuple[Outcome, list[str]]:
    told, tell = os.pipe()
    waits, go_on = os.pipe()
    command = [sys.executable, "-m", "tieredctl", *map(str, words)]
    variables = environment(TIEREDCTL_STOPPING=f"{folder}:{tell}:{waits}:{','.join(calls)}")
    variables["PYTHONPATH"] = os.pathsep.join([str(STARTUP), variables["PYTHONPATH"]])
    # Into files: nobody reads what it prints until it has ended.
    with (
        TemporaryFile("w+") as out,
        TemporaryFile("w+") as err,
        subprocess.Popen(
            command, env=variables, pass_fds=(tell, waits), stdout=out, stderr=err, stdin=subprocess.DEVNULL
        ) as process,
    ):
        os.close(tell)
        os.close(waits)
        with os.fdopen(told) as changes:
            seen = _supervise(process, changes, go_on, moment, stop)
        os.close(go_on)
        process.wait(SECONDS)
        for printed in (out, err):
            printed.seek(0)
        return Outcome(process.returncode, out.read(), err.read()), seen


@dataclass(frozen=True)
class Change:
    """A command that changes files below a folder."""

    words: Sequence[str | Path]
    folder: Path
    step: str
    """A change in the middle of a step."""
    is_whole: Callable[[], bool]
    """Whether nothing is half done, and what is recorded is what was done."""
    is_done: Callable[[], bool]
    number: int = 2
    """Which of these changes."""
    is_last: bool = False
    """Whether the step is the last one of the work."""
    is_whole_at_once: bool = False
    """Whether it is whole after two signals too."""

    def stopped_by(self, stop: Stop) -> Outcome:
        outcome = run_until(Moment(self.step, self.number), stop, self.folder, self.words)
        let_the_lease_run_out(self.folder, stop)
        return outcome

    def demand_finished(self, stop: Stop) -> None:
        """That one signal lets the step be finished, and the work with it where nothing is left; that two do not; and
        that what is printed finishes the work."""
        stopped, at_once = self.stopped_by(stop), isinstance(stop, Twice)
        if self.is_last and not at_once:
            assert (stopped.exit_code, FINISHING in stopped.err, "Run it again" in stopped.err) == (0, True, False), (
                stopped
            )
        else:
            demand_interrupted(stopped, stop)
            assert (at_once and not self.is_whole_at_once) or self.is_whole()
            assert not at_once or not self.is_done()
            resumed = pasted(stopped)
            assert resumed.exit_code == 0, resumed.err
        assert (self.is_done(), self.is_whole()) == (True, True)


def let_the_lease_run_out(store: Path, stop: Stop) -> None:
    """What a few minutes would do where a run was killed, or stopped at once."""
    lease = store / LEASE_KEY
    if (stop is KILL or isinstance(stop, Twice)) and lease.exists():
        long_ago = lease.stat().st_mtime - 3_600
        os.utime(lease, (long_ago, long_ago))


def pasted(stopped: Outcome) -> Outcome:
    """The command line that an interrupted one says to go on with, run."""
    (words,) = re.findall(r"^  Run it again, it resumes where it stopped: tieredctl (.*)$", stopped.err, re.MULTILINE)
    return own_process(*shlex.split(words))


def demand_interrupted(stopped: Outcome, stop: Stop) -> None:
    """That the step was finished, or after a second signal not; one sentence, without a traceback."""
    said = [line for line in stopped.err.splitlines() if line.startswith("tieredctl: ")]
    expected = "tieredctl: Stopped at once." if isinstance(stop, Twice) else "tieredctl: Interrupted."
    assert (stopped.exit_code, said) == (_INTERRUPTED, [expected]), stopped.err
    assert "Traceback" not in stopped.err
    assert isinstance(stop, Twice) or FINISHING in stopped.err


def demand_said(stopped: Outcome, stop: Stop) -> None:
    """An exit code that fits, and one sentence with a hint, without a traceback."""
    if stop is KILL:
        assert stopped.exit_code == -KILL
        return
    if isinstance(stop, Twice):
        demand_interrupted(stopped, stop)
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
    process: subprocess.Popen[bytes],
    changes: Iterable[str],
    go_on: int,
    moment: Moment | None,
    stop: Stop,
) -> list[str]:
    seen: list[str] = []
    answer = b"."
    for line in changes:
        seen.append(line.rstrip("\n"))
        is_now = moment and re.search(moment.change, line) and _count(seen, moment) == moment.number
        if not is_now:
            _answer(go_on, answer)
        elif isinstance(stop, FullDisk):
            answer = b"F"
            _answer(go_on, answer)
        elif isinstance(stop, Twice):
            process.send_signal(INT)
            process.send_signal(TERM)
        else:
            process.send_signal(stop)
            # Handled before anything else, now that it is sent; only what is killed waits for its end.
            if stop is not KILL:
                _answer(go_on, answer)
    return seen


def _answer(go_on: int, answer: bytes) -> None:
    with suppress(BrokenPipeError):  # it was interrupted while it waited, and has ended since
        os.write(go_on, answer)


def _count(seen: Iterable[str], moment: Moment) -> int:
    return sum(bool(re.search(moment.change, change)) for change in seen)
