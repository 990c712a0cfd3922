"""A plot of how long something took, over time: the median and the longest of each stretch of time."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.model.quantities import duration_text
from tieredctl.report.plot import CHARACTER, GRID, MUTED, SERIES, WIDTH, Drawing, Plot

_STRETCHES = 32
_HEIGHT, _TOP, _BOTTOM = 230, 18, 190
"""In pixels: all of it, and between what durations are."""
_LEAST_MS = 1
_DAY_MS = 86_400_000
_TICKS_MS = (
    *(1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000),
    *(_DAY_MS, 7 * _DAY_MS, 30 * _DAY_MS, 365 * _DAY_MS, 3650 * _DAY_MS),
)
_STYLES = ((600_000, "%H:%M:%S"), (2 * _DAY_MS, "%H:%M"), (300 * _DAY_MS, "%b %d"), (float("inf"), "%b %Y"))
"""How times are told apart that are closer than this."""
_LATEST_MS = 253_402_300_799_000
"""The last that a calendar has."""


class _Stretch(NamedTuple):
    begins_ms: int
    many: int
    median_ms: int
    longest_ms: int


def delays(
    name: str, title: str, description: str, times_ms: NDArray[np.int64], delays_ms: NDArray[np.int64], counted: str
) -> Plot | None:
    """A plot of what took `delays_ms` (not negative) until `times_ms` (since the epoch, ascending); `counted` says of
    what there are so many. None where nothing has a time that a calendar has."""
    dated = (times_ms >= 0) & (times_ms <= _LATEST_MS)
    times, waited = times_ms[dated], delays_ms[dated]
    if not len(times):
        return None
    first, last = int(times[0]), int(times[-1])
    length = max(1, -(-(last - first + 1) // _STRETCHES))
    stretches = _stretches(times, waited, first, length)

    medians = [max(_LEAST_MS, one.median_ms) for one in stretches]
    longest = [max(_LEAST_MS, one.longest_ms) for one in stretches]
    axes = _Axes(Drawing(name, _HEIGHT), first, last, min(medians), max(longest))
    middles = [axes.x(one.begins_ms + length / 2) for one in stretches]
    for x, median, most in zip(middles, medians, longest, strict=True):
        axes.drawing.line([(x, axes.y(median)), (x, axes.y(most))], GRID, 2)
    axes.drawing.line([(x, axes.y(median)) for x, median in zip(middles, medians, strict=True)], SERIES[0], 1.5)
    for colour, values in ((SERIES[1], longest), (SERIES[0], medians)):
        for x, value in zip(middles, values, strict=True):
            axes.drawing.dot(x, axes.y(value), colour)

    rows = [
        (
            _moment(one.begins_ms, "%Y-%m-%d %H:%M:%S"),
            one.many,
            duration_text(one.median_ms),
            duration_text(one.longest_ms),
        )
        for one in stretches
    ]
    headings = ("From (UTC)", counted, "Median", "Longest")
    return Plot(name, title, description, axes.drawing.svg(), headings, rows)


def _stretches(times: NDArray[np.int64], waited: NDArray[np.int64], first: int, length: int) -> list[_Stretch]:
    numbers = (times - first) // length
    stretch_numbers, begins = np.unique(numbers, return_index=True)
    parts = np.split(waited, begins[1:])
    return [
        _Stretch(first + int(number) * length, len(part), int(np.median(part)), int(part.max()))
        for number, part in zip(stretch_numbers.tolist(), parts, strict=True)
    ]


class _Axes:
    """Times below and durations to the left, each of them on a line across."""

    def __init__(self, drawing: Drawing, first: int, last: int, least: int, greatest: int) -> None:
        self.drawing = drawing
        shown = [tick for tick in _TICKS_MS if least / 3 <= tick <= greatest * 3] or [least]
        names = [duration_text(tick) for tick in shown]
        self._left = CHARACTER * max(map(len, names)) + 8
        self._lowest, self._highest = math.log(min(shown[0], least) / 1.5), math.log(max(shown[-1], greatest) * 1.5)
        span = max(1, last - first)
        self._first, self._width_ms = first - span * 0.03, span * 1.12
        drawing.text(self._left, 8, "● median", SERIES[0])
        drawing.text(self._left + 90, 8, "● longest", SERIES[1])
        for tick, text in zip(shown, names, strict=True):
            drawing.line([(self._left, self.y(tick)), (WIDTH, self.y(tick))], GRID)
            drawing.text(self._left - 6, self.y(tick), text, MUTED, anchor="end")
        drawing.line([(self._left, _BOTTOM), (WIDTH, _BOTTOM)], GRID)
        self._name_times(first, last, span)

    def _name_times(self, first: int, last: int, span: int) -> None:
        style = next(style for below, style in _STYLES if span < below)
        for tick in [first, first + span / 3, first + 2 * span / 3, last] if span > 3 else [first]:
            self.drawing.text(self.x(tick), _BOTTOM + 12, _moment(tick, style), MUTED, anchor="middle")
        day = _moment(first, "%Y-%m-%d UTC") if span < 2 * _DAY_MS else "UTC"
        self.drawing.text(self._left, _BOTTOM + 30, day, MUTED)

    def x(self, time_ms: float) -> float:
        """Where a time is."""
        return self._left + (time_ms - self._first) / self._width_ms * (WIDTH - self._left)

    def y(self, duration_ms: float) -> float:
        """Where a duration is, by its logarithm."""
        share = (math.log(duration_ms) - self._lowest) / (self._highest - self._lowest)
        return _BOTTOM - share * (_BOTTOM - _TOP)


def _moment(timestamp_ms: float, style: str) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime(style)
