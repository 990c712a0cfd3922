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


def test_watched_on_a_terminal_it_is_cleared_once(log_dir: Path) -> None:
    command = [sys.executable, "-m", "tieredctl", "status", "--log-dir", str(log_dir), "--watch", "--interval", "1s"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment(TERM="xterm")) as run:
        os.close(theirs)
        seen = b""
        while seen.count(b"\x1b[J") < 2:
            seen += os.read(ours, 65536)  # fails once the run has ended
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
    os.close(ours)

    assert run.returncode == 3
    assert seen.count(b"\x1b[2J") == 1
    assert b"Traceback" not in seen


def test_watched_on_a_narrow_terminal_no_command_is_cut(log_dir: Path) -> None:
    folder = log_dir / ("a-folder-with-a-long-name-" * 3)
    folder.symlink_to(log_dir)
    command = [sys.executable, "-m", "tieredctl", "status", "--log-dir", str(folder), "--watch", "-o", "wide"]
    ours, theirs = pty.openpty()
    in_terminal = environment(TERM="xterm", COLUMNS="80")
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=in_terminal) as run:
        os.close(theirs)
        seen = b""
        while b"\x1b[J" not in seen:
            seen += os.read(ours, 65536)  # fails once the run has ended
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
    os.close(ours)

    assert 0 < seen.count(b"tieredctl ") == seen.count(f" --log-dir {folder}".encode())


@pytest.mark.parametrize("words", [("--watch", "--interval", "0s"), ("--watch", "-o", "json")])
def test_what_cannot_be_watched_is_wrong_use(words: tuple[str, ...], log_dir: Path, tieredctl: Tieredctl) -> None:
    assert tieredctl("status", "--log-dir", log_dir, *words).exit_code == 2


def test_interrupted_before_anything_was_shown_it_is_not_clean() -> None:
    def interrupted() -> ExitCode:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(interrupted, 1000)
