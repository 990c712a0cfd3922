"""A plot is a function from values to SVG: here is what such a function draws on, and what it gives.

Its text is text, its colours are those of the page (dark or light), and its numbers are a table too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from tieredctl.model.printable import printable
from tieredctl.report.table import Cell, cell_text

INK, MUTED, GRID, TRACK, PAPER = "ink", "muted", "grid", "track", "paper"
"""Colours of a plot that the page decides upon: each is the end of a class of its style."""
SERIES = ("series-1", "series-2", "series-3", "series-4", "series-5", "series-6")
GOOD, WARNING, ERROR, CRITICAL, UNKNOWN = "good", "warning", "error", "critical", "unknown"
WIDTH = 380
"""The width of a plot, in pixels of the page: so narrow that a phone shows its text in a size to read."""
CHARACTER = 6.5
"""Pixels that a character of a plot's text takes, about."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with what it says in words and in numbers. `name` tells it apart on its page."""

    name: str
    title: str
    description: str
    svg: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_wide: bool = False
    """Whether it has a line of the page for itself; a phone scrolls it."""

    @property
    def numbers(self) -> list[list[str]]:
        """The cells of its table."""
        return [[printable(cell_text(cell)) for cell in row] for row in self.rows]


class Drawing:
    """An SVG element of this size in pixels, drawn on from its upper left corner. Only the colours of this module may
    be used, since the page's policy allows no inline styles; texts may be hostile."""

    def __init__(self, name: str, height: float, width: float = WIDTH) -> None:
        """`name` is that of the plot, whose title and description tell what is drawn."""
        self.height, self.width = height, width
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "role": "img",
                "aria-labelledby": f"{name}-title",
                "aria-describedby": f"{name}-description",
            },
        )

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A filled one."""
        self._add("rect", f"fill-{colour}", x=x, y=y, width=width, height=height)

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1) -> None:
        """From each point to the next."""
        places = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polyline", f"stroke-{colour}", points=places, fill="none", stroke_width=width)

    def dot(self, x: float, y: float, colour: str) -> None:
        """A small disc."""
        self._add("circle", f"fill-{colour}", cx=x, cy=y, r=2.2)

    def text(self, x: float, y: float, text: str, colour: str = INK, anchor: str = "start", weight: str = "") -> None:
        """A line of text whose middle is at the height `y`; `anchor` is what of it is at `x`: start, middle or end."""
        optional = {"text_anchor": anchor} if anchor != "start" else {}
        optional |= {"font_weight": weight} if weight else {}
        self._add("text", f"fill-{colour}", x=x, y=y, dy="0.35em", **optional).text = printable(text)

    def svg(self) -> str:
        """The element."""
        return ElementTree.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, style: str, **attributes: float | str) -> ElementTree.Element:
        element = ElementTree.SubElement(self._root, tag, {"class": style})
        for name, value in attributes.items():
            element.set(name.replace("_", "-"), value if isinstance(value, str) else _number(value))
        return element


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


def label(text: str, most: int = 24) -> str:
    """A name on a plot: harmless, and cut in the middle where it is too long."""
    shown = printable(text)
    if len(shown) <= most:
        return shown
    half = (most - 1) // 2
    return f"{shown[: most - 1 - half]}…{shown[-half:]}"
