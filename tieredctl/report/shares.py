"""A plot of shares: of how much of a whole something is true, and of how much it is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.report.plot import WIDTH, Drawing, Plot

_BAR, _LINE = 22, 24
"""Heights, in pixels."""
_LEAST = 0.006
"""The least share of the width: one lost segment among a million is seen."""


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

    drawing = Drawing(name, _BAR + 8 + _LINE * len(parts))
    done = 0.0
    for colour, share in shown:
        drawing.rectangle(WIDTH * done / width, 0, WIDTH * share / width, _BAR, colour)
        done += share
    for line, part in enumerate(parts):
        y = _BAR + 8 + _LINE * (line + 0.5)
        drawing.rectangle(0, y - 6, 8, 12, part.colour)
        drawing.text(15, y, part.name)
        drawing.text(WIDTH, y, f"{part.amount:,}  ({_percent(part.amount, whole)})", anchor="end")
    rows = [(part.name, part.amount, _percent(part.amount, whole)) for part in parts]
    return Plot(name, title, description, drawing.svg(), ("", counted, "Share"), rows)


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
