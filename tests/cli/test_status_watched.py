"""`status --watch` shows the screen again and again, until it is stopped."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, environment
from tieredctl.cli.watching import watch
from tieredctl.errors import ExitCode


def test_watched_on_no_terminal_it_is_plain_and_ends_cleanly(log_dir: Path) -> None:
    command = [sys.executable, "-m", "tieredctl", "status", "--log-dir", str(log_dir), "--watch", "--interval", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as run:
        assert run.stdout is not None
        seen: list[str] = []
        while sum(line.startswith("ABOUT") for line in seen) < 2:
            seen.append(run.stdout.readline())
            assert seen[-1], run.communicate()
        run.send_signal(signal.SIGTERM)
        rest, err = run.communicate(timeout=60)

    assert run.returncode == 3
    assert err == ""
    assert "\x1b" not in "".join(seen) + rest


def watched_on_a_terminal(times: int, *words: str | Path, **variables: str) -> tuple[int, bytes]:
    """The exit code of a run that is stopped once it has shown its screen so often, and what the terminal was sent."""
    command = [sys.executable, "-m", "tieredctl", "status", "--watch", *map(str, words)]
    ours, theirs = pty.openpty()
    in_terminal = environment(TERM="xterm", **variables)
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=in_terminal) as run:
        os.close(theirs)
        seen = b""
        while seen.count(b"\x1b[J") < times:
            seen += os.read(ours, 65536)  # fails once the run has ended
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
    os.close(ours)
    return run.returncode, seen


def test_watched_on_a_terminal_it_is_cleared_once(log_dir: Path) -> None:
    code, seen = watched_on_a_terminal(2, "--log-dir", log_dir, "--interval", "1s")

    assert (code, seen.count(b"\x1b[2J"), b"Traceback" in seen) == (3, 1, False)


def test_watched_on_a_narrow_terminal_no_command_is_cut(log_dir: Path) -> None:
    folder = log_dir / ("a-folder-with-a-long-name-" * 3)
    folder.symlink_to(log_dir)

    _, seen = watched_on_a_terminal(1, "--log-dir", folder, "-o", "wide", COLUMNS="80")

    assert 0 < seen.count(b"tieredctl ") == seen.count(f" --log-dir {folder}".encode())


def test_what_cannot_be_watched_is_wrong_use(log_dir: Path, tieredctl: Tieredctl) -> None:
    for words in (("--interval", "0s"), ("-o", "json")):
        assert tieredctl("status", "--log-dir", log_dir, "--watch", *words).exit_code == 2, words


def test_interrupted_before_anything_was_shown_it_is_not_clean() -> None:
    def interrupted() -> ExitCode:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(interrupted, 1000)
