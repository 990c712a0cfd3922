"""Shows something again and again until it is interrupted: in place on a terminal, one after the other elsewhere."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

from tieredctl.cli.terminal import width_of
from tieredctl.cli.trouble.interruption import clear_interrupt
from tieredctl.errors import ExitCode
from tieredctl.process import steady_time
from tieredctl.process.progress import heard_by
from tieredctl.process.run_metrics import run_metrics

_CLEAR, _HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


def watch(show: Callable[[], ExitCode], interval_ms: int) -> ExitCode:
    """Calls `show` now and after each interval, until Ctrl-C; gives its last exit code. Raises KeyboardInterrupt where
    nothing was shown yet."""
    code: ExitCode | None = None
    is_first, out = True, sys.stdout
    try:
        while True:
            screen = io.StringIO()
            steady_time.begin()
            with redirect_stdout(screen), redirect_stderr(screen), heard_by(None):
                code = show()
            run_metrics.get().write(code)
            out.write(
                _in_place(screen.getvalue(), is_first)
                if out.isatty()
                else f"{'' if is_first else os.linesep}{screen.getvalue()}"
            )
            out.flush()
            is_first = False
            time.sleep(interval_ms / 1000)
    except KeyboardInterrupt:
        if code is None:
            raise
        clear_interrupt()
        return code


def _in_place(text: str, is_first: bool) -> str:
    """What replaces the screen without clearing it first, which would flicker. Long lines are the terminal's to break:
    a command that was cut could not be pasted."""
    width, lines = width_of(sys.stdout), text.splitlines()
    try:
        height = os.get_terminal_size(sys.stdout.fileno()).lines or len(lines) + 1
    except OSError:
        height = len(lines) + 1
    body, rows = "", 0
    for line in lines:
        rows += 1 if width is None else max(1, -(-len(line) // width))
        if rows >= height:
            break
        # A line that fills its rows leaves the cursor on the last character: clearing there would take that away.
        is_full = width is not None and line and len(line) % width == 0
        body += f"{line}{'' if is_full else _REST_OF_LINE}\n"
    return f"{_CLEAR if is_first else ''}{_HOME}{body}{_REST_OF_SCREEN}"
