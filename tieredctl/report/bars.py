"""A plot of amounts by name: a bar for each, in parts of several kinds if there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tieredctl.report.plot import CHARACTER, MUTED, TRACK, WIDTH, Drawing, Plot, label

MOST_BARS = 12
"""More are not told apart: the caller joins the rest."""
_LINE, _LEGEND, _BAR = 34, 22, 8
"""Heights, in pixels."""
_LEAST = 0.004
"""The least share of the width: what is there is seen."""


class Series(NamedTuple):
    """What each bar has of one kind, in a colour of `report.plot`; None is unknown."""

    name: str
    colour: str
    amounts: Sequence[int | None]


def bars(
    name: str,
    title: str,
    description: str,
    names: Sequence[str],
    series: Sequence[Series],
    text: Callable[[int], str] = "{:,}".format,
) -> Plot:
    """A bar for each of `names`, under its name and its amount as `text` says it. Where a part is unknown, so is the
    amount, and no bar is drawn."""
    columns = list(zip(*(one.amounts for one in series), strict=True))
    totals = [None if None in parts else sum(part or 0 for part in parts) for parts in columns]
    greatest = max((total for total in totals if total), default=0) or 1
    legend = _LEGEND if len(series) > 1 else 0

    drawing = Drawing(name, legend + _LINE * len(names))
    if legend:
        _draw_legend(drawing, series)
    for line, (shown, total) in enumerate(zip(names, totals, strict=True)):
        top = legend + _LINE * line
        amount = "unknown" if total is None else text(total)
        drawing.text(0, top + 9, label(shown, 52 - len(amount)))
        drawing.text(WIDTH, top + 9, amount, MUTED, anchor="end")
        drawing.rectangle(0, top + 19, WIDTH, _BAR, TRACK)
        if total is not None:
            _draw_bar(drawing, top + 19, [(one.colour, (one.amounts[line] or 0) / greatest) for one in series])

    rows = [
        (shown, *("unknown" if part is None else text(part) for part in parts))
        for shown, parts in zip(names, columns, strict=True)
    ]
    return Plot(name, title, description, drawing.svg(), ("", *(one.name for one in series)), rows)


def _draw_bar(drawing: Drawing, y: float, parts: Sequence[tuple[str, float]]) -> None:
    done = 0.0
    for colour, share in parts:
        if share:
            drawing.rectangle(WIDTH * done, y, WIDTH * max(share, _LEAST), _BAR, colour)
            done += share


def _draw_legend(drawing: Drawing, series: Sequence[Series]) -> None:
    x = 0.0
    for one in series:
        drawing.rectangle(x, 3, 8, 10, one.colour)
        drawing.text(x + 12, 8, one.name, MUTED)
        x += 26 + CHARACTER * len(one.name)
