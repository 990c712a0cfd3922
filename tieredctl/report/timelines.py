"""A plot of a partition over its offsets: a lane for each thing that segments are, as the terminal draws it."""

from __future__ import annotations

import numpy as np

from tieredctl.drawing.scale import Scale, runs
from tieredctl.drawing.timeline import MEANINGS, Lane, Part, Timeline
from tieredctl.model.counted import counted
from tieredctl.report.plot import CRITICAL, ERROR, GOOD, GRID, MUTED, PAPER, SERIES, UNKNOWN, WARNING, Drawing, Plot

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

    drawing = Drawing(name, height, _WIDTH)
    for number, lane in enumerate(lanes):
        _draw_lane(drawing, lane, top + _LANE * number)
    _draw_foot(drawing, timeline, scale, height - _FOOT)

    rows = [_row(part, timeline) for part in sorted(timeline.parts, reverse=True)]
    headings = ("", "Segments", "Offsets")
    return Plot(name, title, _sentences(timeline), drawing.svg(), headings, rows, is_wide=True)


def _x(cell: float) -> float:
    """Where a cell begins, in pixels."""
    return (_NAMES + cell) * _WIDTH / (_NAMES + _CELLS)


def _draw_lane(drawing: Drawing, lane: Lane, top: int) -> None:
    drawing.text(0, top + _BAR / 2, lane.name, MUTED)
    for number, first, end in runs(lane.cells):
        if number:
            drawing.rectangle(_x(first), top, _x(end) - _x(first), _BAR, _COLOURS[Part(number)])
    for cell in np.flatnonzero(lane.begins).tolist():
        if cell:
            drawing.line([(_x(cell), top), (_x(cell), top + _BAR)], PAPER)
    _draw_signs(drawing, lane, top)


def _draw_signs(drawing: Drawing, lane: Lane, top: int) -> None:
    free = -_DIGIT
    for number, first, end in runs(lane.cells):
        sign = _SIGNS.get(Part(number)) if number else None
        middle = (first + end) / 2
        if sign and middle >= free:
            drawing.text(_x(middle), top - 8, sign, _COLOURS[Part(number)], anchor="middle", weight="bold")
            free = end + _DIGIT


def _draw_foot(drawing: Drawing, timeline: Timeline, scale: Scale, top: int) -> None:
    drawing.text(0, top + 6, "epoch", MUTED)
    drawing.text(0, top + 26, "offset", MUTED)
    free = 0
    for cell, epoch in timeline.epochs_on(scale):
        drawing.line([(_x(cell), top - 6), (_x(cell), top - 2)], MUTED)
        end = cell + _DIGIT * (len(str(epoch)) + 1)
        if cell >= free and end <= _CELLS + _DIGIT:
            drawing.text(_x(cell), top + 6, str(epoch))
            free = end
    last = str(scale.last)
    room = _CELLS - _DIGIT * (len(last) + 2)
    for number in range(_TICKS):
        cell = number * _CELLS // _TICKS
        text = str(scale.offset(cell))
        if cell + _DIGIT * len(text) <= room and _DIGIT * (len(text) + 2) <= _CELLS // _TICKS:
            drawing.text(_x(cell), top + 26, text, MUTED)
    drawing.text(_WIDTH, top + 26, last, MUTED, anchor="end")


def _sentences(timeline: Timeline) -> str:
    """What is amiss with the copies, under the signs of the drawing."""
    segments = sum(part.segments for part in timeline.parts.values())
    trouble = [part for part in sorted(_SIGNS, reverse=True) if part in timeline.parts]
    signs = [f"{_SIGNS[part]} {MEANINGS[part]} {timeline.of(part).text(_MOST_OFFSETS)}." for part in trouble]
    return " ".join([f"By the metadata: {counted(segments, 'segment')} over the partition's offsets.", *signs])


def _row(part: Part, timeline: Timeline) -> tuple[str, int | None, str]:
    part_ranges = timeline.parts[part]
    return (
        MEANINGS[part].removesuffix(":"),
        part_ranges.segments or None,
        part_ranges.ranges.joined().text(_MOST_OFFSETS),
    )
