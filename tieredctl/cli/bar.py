"""A bar on a terminal that shows how far long work is, and goes out of the way of anything else."""

from __future__ import annotations

import time
from threading import RLock
from typing import TYPE_CHECKING

from tieredctl.process.progress import Step

if TYPE_CHECKING:
    from rich.progress import Progress


_LEAST_SECONDS_SHOWN = 0.1
"""No eye is faster, and work goes on meanwhile."""


class Bar:
    """The bar of a command. It appears with the first step that is told after something else was written."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._what = ""
        self._shown_at = 0.0
        self._is_over = False
        self._changing = RLock()

    def show(self, step: Step) -> None:
        """Shows a step instead of the one before it, if that was not just now."""
        now = time.monotonic()
        if step.what == self._what and now < self._shown_at + _LEAST_SECONDS_SHOWN:
            return
        self._shown_at = now
        with self._changing:
            if self._is_over:
                return
            if self._progress is None:
                self._progress, self._what = _drawn(), ""
            (task,) = self._progress.task_ids or (self._progress.add_task("", total=None),)
            if step.what != self._what:
                self._progress.reset(task)
                self._what = step.what
            self._progress.update(task, description=step.text("/"), completed=step.done, total=step.total)

    def take_off(self, *, for_good: bool = False) -> None:
        """Frees the terminal."""
        with self._changing:
            self._is_over = self._is_over or for_good
            if self._progress is not None:
                self._progress.stop()
                self._progress = None


_bars: list[Bar] = []
"""The bars of the running command, after those of the commands that run it."""


def put_up() -> Bar:
    """The bar of a command that begins."""
    _bars.append(Bar())
    return _bars[-1]


def put_away(bar: Bar) -> None:
    """At a command's end."""
    bar.take_off(for_good=True)
    _bars.remove(bar)


def make_room(*, for_good: bool = False) -> None:
    """To be called before anything else is written to the terminal; `for_good` where that goes on piece by piece."""
    for bar in _bars:
        bar.take_off(for_good=for_good)


def _drawn() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        *(TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn(elapsed_when_finished=True)),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    progress.start()
    return progress
