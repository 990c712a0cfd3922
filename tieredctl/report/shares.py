"""A plot of shares: of how much of a whole something is true, and of how much it is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.report.plot import Plot, drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LEAST = 0.006
"""Of the width: one lost segment among a million is seen."""


class Share(NamedTuple):
    """A part of a whole, in a colour of `report.plot`."""

    name: str
    amount: int
    colour: str


def shares(name: str, title: str, description: str, parts: Sequence[Share], counted: str) -> Plot:
    """One bar of all parts, and a line for each: how many (`counted` says of what) and how much of the whole."""
    whole = sum(part.amount for part in parts)
    shown = [(part.colour, max(part.amount / whole, _LEAST)) for part in parts if part.amount]
    width = sum(share for _, share in shown)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(0, 1)
        axes.set_ylim(-len(parts) - 0.4, 1)
        done = 0.0
        for colour, share in shown:
            axes.barh(0.5, share / width, left=done / width, height=0.8, color=colour, clip_on=False)
            done += share
        for line, part in enumerate(parts):
            y = -line - 0.7
            axes.barh(y, 0.022, height=0.5, color=part.colour, clip_on=False)
            axes.text(0.04, y, part.name, va="center", clip_on=False)
            said = f"{part.amount:,}  ({_percent(part.amount, whole)})"
            axes.text(1, y, said, va="center", ha="right", clip_on=False)

    rows = [(part.name, part.amount, _percent(part.amount, whole)) for part in parts]
    svg = drawn(name, draw, 50 + 24 * len(parts))
    return Plot(name, title, description, svg, ("", counted, "Share"), rows)


def _percent(amount: int, whole: int) -> str:
    """Never 0% of something, nor 100% of less than all."""
    if not whole:
        return "-"
    share = 100 * amount / whole
    if 0 < share < 1:
        return "<1%"
    if 99 < share < 100:
        return ">99%"
    return f"{share:.0f}%"
