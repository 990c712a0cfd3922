"""A plot of amounts by name: a bar for each, in parts of several kinds if there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.report.plot import GRID, MUTED, Plot, drawn, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 12
"""More are not told apart: the caller joins the rest."""
_LINE, _LEGEND, _MARGIN = 34, 22, 12
_LEAST = 0.004
"""Of the width: what is there is seen."""


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

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.set_ylim(legend + _LINE * len(names), 0)
        if legend:
            _draw_legend(axes, series)
        for line, (shown, total) in enumerate(zip(names, totals, strict=True)):
            top = legend + _LINE * line
            said = "unknown" if total is None else text(total)
            axes.text(0, top + 8, label(shown, 52 - len(said)), va="center", clip_on=False)
            axes.text(1, top + 8, said, va="center", ha="right", clip_on=False, color=MUTED)
            axes.barh(top + 22, 1, height=8, color=GRID, alpha=0.5, clip_on=False)
            if total is not None:
                _draw_bar(axes, top + 22, [(one.colour, (one.amounts[line] or 0) / greatest) for one in series])

    rows = [
        (shown, *("unknown" if part is None else text(part) for part in parts))
        for shown, parts in zip(names, columns, strict=True)
    ]
    svg = drawn(name, draw, legend + _LINE * len(names) + _MARGIN)
    return Plot(name, title, description, svg, ("", *(one.name for one in series)), rows)


def _draw_bar(axes: Axes, y: float, parts: Sequence[tuple[str, float]]) -> None:
    done = 0.0
    for colour, share in parts:
        if share:
            axes.barh(y, max(share, _LEAST), left=done, height=8, color=colour, clip_on=False)
            done += share


def _draw_legend(axes: Axes, series: Sequence[Series]) -> None:
    x = 0.0
    for one in series:
        axes.barh(8, 0.022, left=x, height=10, color=one.colour, clip_on=False)
        axes.text(x + 0.032, 8, one.name, va="center", color=MUTED, clip_on=False)
        x += 0.07 + 0.0175 * len(one.name)
