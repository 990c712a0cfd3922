"""What a terminal shows of a command line."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.cli.command_line import SECONDS, environment
from tieredctl.cli.main import run

FOLDER = Path(__file__).parent / "screens"
"""What is expected."""
ROWS = 24
WIDTH = 80
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def screen(folder: Path, *words: str, **variables: str) -> str:
    """All that it writes, run in `folder`, in the order in which it does."""
    command = [sys.executable, "-m", "tieredctl", *words]
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(**variables),
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


def screen_of_this_process(folder: Path, *words: str, **variables: str) -> str:
    """The same of the test's own process: in its locale, and as if nothing waited in one stream while the other is
    written."""
    shown = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(shown), redirect_stderr(shown):
        patch.chdir(folder)
        for name, value in {"NO_COLOR": "", "COLUMNS": "", **variables}.items():
            patch.setenv(name, value)
        run([*words])
    return shown.buffer.getvalue().decode()


def everything_shown(terminal: int) -> str:
    """All that is written to a terminal until its last writer has gone; closes our end of it."""
    shown = bytearray()
    while True:
        try:
            shown += os.read(terminal, 1 << 16)
        except OSError:  # Linux says so where the last writer has gone
            break
    os.close(terminal)
    return shown.decode()


def rows(shown: str) -> int:
    """How many lines of a terminal it takes."""
    return sum(1 + (len(line) - 1) // WIDTH for line in shown.splitlines())
