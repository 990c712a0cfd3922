"""Long work on stderr: a bar on a terminal, a line every few seconds elsewhere. Never on stdout."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from threading import Lock

from tieredctl.cli import PROGRAM
from tieredctl.cli.bar import put_away, put_up
from tieredctl.cli.outcome import say
from tieredctl.model.quantities import duration_text, size_text
from tieredctl.process.progress import Step, heard_by

_SECONDS_BETWEEN_LINES = 5.0


class ProgressMode(StrEnum):
    """`--progress`."""

    AUTO = "auto"
    BAR = "bar"
    PLAIN = "plain"
    NONE = "none"


_is_shown: ContextVar[bool] = ContextVar("progress_is_shown", default=False)
"""Whether a command runs that shows it: those that it runs do not."""


@contextmanager
def shown_progress(mode: ProgressMode, *, quiet: bool) -> Iterator[None]:
    """Shows how far the work is that is done meanwhile."""
    is_silent = quiet or mode is ProgressMode.NONE or _is_shown.get()
    token = _is_shown.set(True)
    try:
        with heard_by(None) if is_silent else _bar() if _is_for_a_bar(mode) else heard_by(Lines().tell):
            yield
    finally:
        _is_shown.reset(token)


@contextmanager
def _bar() -> Iterator[None]:
    bar = put_up()
    try:
        with heard_by(bar.show):
            yield
    finally:
        put_away(bar)


def _is_for_a_bar(mode: ProgressMode) -> bool:
    """A terminal on which nothing else is written meanwhile: nor does what reads the output write to it, unless the
    user asks for a bar nevertheless."""
    if mode is ProgressMode.PLAIN or not sys.stderr.isatty():
        return False
    from tieredctl.process.tracing import is_traced

    if is_traced(PROGRAM):
        return False
    return mode is ProgressMode.BAR or not _is_piped_on()


def _is_piped_on() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # it is closed, or in memory
        return False


class LinesApart:
    """Decides when the next line about long work is due, so that some seconds lie between two of them; and says the
    time and the rate in it."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._first: int | None = None
        self._noted = 0

    def is_due(self) -> bool:
        """Whether to print one now; the next is then not due at once."""
        if time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = time.monotonic()
        return True

    def note(self, done: int) -> bool:
        """How many there were at first: earlier runs made those. False where it began again."""
        if self._first is None:
            self._first = done
        is_more, self._noted = done >= self._noted, done
        return is_more

    def timed(self, text: str, done: int, total: int | None = None, *, of_bytes: bool = False) -> str:
        """A line with the time, the rate of this run, and about how long the rest takes."""
        a_second = (done - (self._first or 0)) / max(time.monotonic() - self._began, 0.001)
        pace = size_text(round(a_second)) if of_bytes else f"{a_second:.0f}" if a_second >= 100 else f"{a_second:.3g}"
        rate = f", {pace}/s" if a_second > 0 else ""
        left = ""
        if total is not None and a_second > 0 and total > done:
            left = f", about {duration_text(int((total - done) / a_second * 1000))} left"
        return f"{time.strftime('%H:%M:%S')}  {text}{rate}{left}"


class Lines:
    """A line now and then, for each kind of step."""

    def __init__(self) -> None:
        self._kinds: dict[str, LinesApart] = {}
        self._telling = Lock()

    def tell(self, step: Step) -> None:
        """Says how far it is, if that is due."""
        with self._telling:
            lines = self._kinds.setdefault(step.what, LinesApart())
            if not lines.note(step.done):
                lines = self._kinds[step.what] = LinesApart()
            if lines.is_due():
                say(lines.timed(step.text(" of "), step.done, step.total, of_bytes=step.is_of_bytes))
