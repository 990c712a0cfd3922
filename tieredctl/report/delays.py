"""A plot of how long something took, over time: the median and the longest of each stretch of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tieredctl.model.quantities import duration_text
from tieredctl.report.plot import GRID, MUTED, SERIES, Plot, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STRETCHES = 32
_HEIGHT = 230
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
    """Of what took `delays_ms` (not negative) until `times_ms` (since the epoch, ascending); `counted` says of what
    there are so many. None where nothing has a time that a calendar has."""
    dated = (times_ms >= 0) & (times_ms <= _LATEST_MS)
    times, waited = times_ms[dated], delays_ms[dated]
    if not len(times):
        return None
    first, last = int(times[0]), int(times[-1])
    length = max(1, -(-(last - first + 1) // _STRETCHES))
    stretches = _stretches(times, waited, first, length)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_yscale("log")
        middles = [one.begins_ms + length / 2 for one in stretches]
        medians = [max(_LEAST_MS, one.median_ms) for one in stretches]
        longest = [max(_LEAST_MS, one.longest_ms) for one in stretches]
        axes.vlines(middles, medians, longest, color=GRID, linewidth=2, clip_on=False)
        axes.plot(middles, longest, "o", color=SERIES[1], markersize=4, clip_on=False)
        axes.plot(middles, medians, "o-", color=SERIES[0], markersize=4, linewidth=1.5, clip_on=False)
        _label(axes, first, last, min(medians), max(longest))
        axes.text(0, 1.06, "● median", color=SERIES[0], transform=axes.transAxes)
        axes.text(0.27, 1.06, "● longest", color=SERIES[1], transform=axes.transAxes)

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
    return Plot(name, title, description, drawn(name, draw, _HEIGHT), headings, rows)


def _stretches(times: NDArray[np.int64], waited: NDArray[np.int64], first: int, length: int) -> list[_Stretch]:
    numbers = (times - first) // length
    found, begins = np.unique(numbers, return_index=True)
    parts = np.split(waited, begins[1:])
    return [
        _Stretch(first + int(number) * length, len(part), int(np.median(part)), int(part.max()))
        for number, part in zip(found.tolist(), parts, strict=True)
    ]


def _label(axes: Axes, first: int, last: int, least: int, greatest: int) -> None:
    """Times below, durations to the left."""
    within = [tick for tick in _TICKS_MS if least / 3 <= tick <= greatest * 3] or [least]
    axes.set_ylim(min(within[0], least) / 1.5, max(within[-1], greatest) * 1.5)
    axes.set_yticks(within, [duration_text(tick) for tick in within])
    axes.yaxis.minorticks_off()
    axes.grid(axis="y", linewidth=1)
    axes.spines["left"].set_visible(False)
    span = max(1, last - first)
    axes.set_xlim(first - span * 0.03, last + span * 0.06)
    style = next(style for below, style in _STYLES if span < below)
    ticks: Sequence[float] = [first, first + span / 3, first + 2 * span / 3, last] if span > 3 else [first]
    axes.set_xticks(ticks, [_moment(tick, style) for tick in ticks])
    day = _moment(first, "%Y-%m-%d UTC") if span < 2 * _DAY_MS else "UTC"
    axes.set_xlabel(day, color=MUTED, loc="left")


def _moment(timestamp_ms: float, style: str) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime(style)
