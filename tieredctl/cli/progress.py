"""Long work on stderr: a bar on a terminal, a line every few seconds elsewhere. Never on stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING

from tieredctl.cli.outcome import say

if TYPE_CHECKING:
    from tieredctl.ops.verification.report import SegmentReport

_SECONDS_BETWEEN_LINES = 5.0

Told = Callable[["SegmentReport", int, int], None]


class ProgressMode(StrEnum):
    """`--progress`."""

    AUTO = "auto"
    BAR = "bar"
    PLAIN = "plain"
    NONE = "none"


@contextmanager
def segment_progress(mode: ProgressMode, quiet: bool) -> Iterator[Told | None]:
    """Shows each segment that was read; None where nothing is to be shown."""
    if mode is ProgressMode.AUTO:
        mode = ProgressMode.BAR if sys.stderr.isatty() else ProgressMode.PLAIN
    if quiet or mode is ProgressMode.NONE:
        yield None
    elif mode is ProgressMode.PLAIN:
        yield _lines()
    else:
        with _bar() as told:
            yield told


@contextmanager
def counted_progress(mode: ProgressMode, quiet: bool, what: str) -> Iterator[Callable[[int, int], None]]:
    """Shows how many there are so far of what is waited for, and of how many."""
    if mode is ProgressMode.AUTO:
        mode = ProgressMode.BAR if sys.stderr.isatty() else ProgressMode.PLAIN
    if quiet or mode is ProgressMode.NONE:
        yield _unheard
    elif mode is ProgressMode.PLAIN:
        yield _counted_lines(what)
    else:
        with _counted_bar(what) as told:
            yield told


class LinesApart:
    """Decides when the next line about long work is due, so that some seconds lie between two of them."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Whether to print one now; the next is then not due at once."""
        if time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return False
        self._last = time.monotonic()
        return True


def _lines() -> Told:
    lines = LinesApart()
    read = 0

    def tell(report: SegmentReport, done: int, total: int) -> None:
        nonlocal read
        read += report.bytes_read
        if lines.is_due():
            say(f"{done} of {total} segments, {read / 1e6:.0f} MB read")

    return tell


@contextmanager
def _bar() -> Iterator[Told]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("segments"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[read]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("segments", total=None, read="")
        read = 0

        def tell(report: SegmentReport, done: int, total: int) -> None:
            nonlocal read
            read += report.bytes_read
            progress.update(task, completed=done, total=total, read=f"{read / 1e6:.0f} MB")

        yield tell


def _unheard(done: int, total: int) -> None:
    """Tells nobody."""


def _counted_lines(what: str) -> Callable[[int, int], None]:
    lines = LinesApart()

    def tell(done: int, total: int) -> None:
        if lines.is_due():
            say(f"{done} of {total} {what}")

    return tell


@contextmanager
def _counted_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
