"""A plot of a partition over its offsets: a lane for each thing that segments are, as the terminal draws it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tieredctl.drawing.scale import Scale, runs
from tieredctl.drawing.timeline import MEANINGS, Lane, Part, Timeline
from tieredctl.model.counted import counted
from tieredctl.report.plot import CRITICAL, ERROR, GOOD, GRID, INK, MUTED, PAPER, SERIES, UNKNOWN, WARNING, Plot, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 900
_CELLS = 600
_NAMES = 80
"""Cells that the lanes' names take."""
_SIGNS_ABOVE, _LANE, _BAR, _FOOT = 20, 26, 16, 42
"""Heights, in pixels."""
_TICKS = 6
_DIGIT = 6
"""Cells that a digit takes."""
_MOST_OFFSETS = 200
"""Characters of offsets in a line of numbers."""
_COLOURS = {
    Part.COPIED: GOOD,
    Part.LOCAL: SERIES[0],
    Part.DELETED: GRID,
    Part.UNREACHED: SERIES[4],
    Part.OVERLAP: SERIES[3],
    Part.DELETING: SERIES[5],
    Part.COPYING: WARNING,
    Part.UNKNOWN: UNKNOWN,
    Part.GAP: ERROR,
    Part.MISSING: CRITICAL,
}
_SIGNS = {Part.OVERLAP: "=", Part.UNKNOWN: "?", Part.GAP: "X", Part.MISSING: "!"}
"""What stands over trouble among copies: a colour is never all that says it."""


def timeline_plot(name: str, title: str, timeline: Timeline) -> Plot:
    """A partition that has something: raises ValueError as `Timeline.scale` does."""
    scale = timeline.scale(_CELLS)
    lanes = timeline.lanes(scale)
    top = _SIGNS_ABOVE if any(part in timeline.parts for part in _SIGNS) else 0
    height = top + _LANE * len(lanes) + _FOOT

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(-_NAMES, _CELLS)
        axes.set_ylim(height, 0)
        for number, lane in enumerate(lanes):
            _draw_lane(axes, lane, top + _LANE * number)
        _draw_foot(axes, timeline, scale, height - _FOOT)

    rows = [_row(part, timeline) for part in sorted(timeline.parts, reverse=True)]
    headings = ("", "Segments", "Offsets")
    return Plot(name, title, _said(timeline), drawn(name, draw, height, _WIDTH), headings, rows, is_wide=True)


def _draw_lane(axes: Axes, lane: Lane, top: int) -> None:
    middle = top + _BAR / 2
    axes.text(-_NAMES, middle, lane.name, va="center", color=MUTED, clip_on=False)
    spans = defaultdict(list)
    for number, first, end in runs(lane.cells):
        if number:
            spans[Part(number)].append((first, end - first))
    for part, found in sorted(spans.items()):
        axes.broken_barh(found, (top, _BAR), facecolors=_COLOURS[part], linewidth=0)
    begins = np.flatnonzero(lane.begins)
    axes.vlines(begins[begins > 0], top, top + _BAR, colors=PAPER, linewidth=1)
    _draw_signs(axes, lane, top)


def _draw_signs(axes: Axes, lane: Lane, top: int) -> None:
    free = -_DIGIT
    for number, first, end in runs(lane.cells):
        sign = _SIGNS.get(Part(number)) if number else None
        if sign and (first + end) / 2 >= free:
            colour = _COLOURS[Part(number)]
            axes.text((first + end) / 2, top - 8, sign, va="center", ha="center", color=colour, weight="bold")
            free = end + _DIGIT


def _draw_foot(axes: Axes, timeline: Timeline, scale: Scale, top: int) -> None:
    axes.text(-_NAMES, top + 6, "epoch", va="center", color=MUTED, clip_on=False)
    axes.text(-_NAMES, top + 26, "offset", va="center", color=MUTED, clip_on=False)
    free = 0
    for cell, epoch in timeline.epochs_on(scale):
        axes.vlines([cell], top - 6, top - 2, colors=MUTED, linewidth=1)
        end = cell + _DIGIT * (len(str(epoch)) + 1)
        if cell >= free and end <= _CELLS + _DIGIT:
            axes.text(cell, top + 6, str(epoch), va="center", color=INK)
            free = end
    last = str(scale.last)
    room = _CELLS - _DIGIT * (len(last) + 2)
    for number in range(_TICKS):
        cell = number * _CELLS // _TICKS
        text = str(scale.offset(cell))
        if cell + _DIGIT * len(text) <= room and _DIGIT * (len(text) + 2) <= _CELLS // _TICKS:
            axes.text(cell, top + 26, text, va="center", color=MUTED)
    axes.text(_CELLS, top + 26, last, va="center", ha="right", color=MUTED)


def _said(timeline: Timeline) -> str:
    """What is amiss with the copies, under the signs of the drawing."""
    segments = sum(part.segments for part in timeline.parts.values())
    trouble = [part for part in sorted(_SIGNS, reverse=True) if part in timeline.parts]
    signs = [f"{_SIGNS[part]} {MEANINGS[part]} {timeline.of(part).text(_MOST_OFFSETS)}." for part in trouble]
    return " ".join([f"By the metadata: {counted(segments, 'segment')} over the partition's offsets.", *signs])


def _row(part: Part, timeline: Timeline) -> tuple[str, int | None, str]:
    found = timeline.parts[part]
    return MEANINGS[part].removesuffix(":"), found.segments or None, found.ranges.joined().text(_MOST_OFFSETS)
