"""A plot is a function from values to SVG: here is what such a function draws on, and what it gives.

Its text is text, its colours are those of the page (dark or light), and its numbers are a table too.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tieredctl.model.printable import printable
from tieredctl.report.table import Cell, cell_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#010101", "#010102", "#010103", "#010104"
"""Colours of a plot that the page decides upon: each stands for a class of its style."""
SERIES = ("#010111", "#010112", "#010113", "#010114", "#010115", "#010116")
GOOD, WARNING, ERROR, CRITICAL, UNKNOWN = "#010121", "#010122", "#010123", "#010124", "#010125"
_CLASSES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    **{colour: f"series-{number}" for number, colour in enumerate(SERIES, 1)},
    GOOD: "good",
    WARNING: "warning",
    ERROR: "error",
    CRITICAL: "critical",
    UNKNOWN: "unknown",
}
WIDTH = 380
"""Of a plot, in pixels of the page: so narrow that a phone shows its text in a size to read."""
_PER_INCH = 72
_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_KEPT_STYLE = (
    *("fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity"),
    *("fill-opacity", "stroke-opacity", "text-anchor", "font-weight"),
)
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tieredctl",
    "text.parse_math": False,  # a topic's name may have dollars
    "font.size": 12,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 1,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "legend.frameon": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
}


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


def drawn(name: str, draw: Callable[[Figure], None], height: int, width: int = WIDTH) -> str:
    """The SVG element of what `draw` puts on a figure of this size in pixels. Only the colours of this module may be
    used; texts may be hostile. `name` begins the element's ids."""
    # It would speak of its font cache, of a folder that it may not write to, and of letters that its font lacks.
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    out = io.BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width / _PER_INCH, height / _PER_INCH), layout="constrained")
        draw(figure)
        for text in figure.findobj(Text):
            text.set_text(printable(text.get_text()))
        FigureCanvasSVG(figure)
        figure.savefig(out, format="svg", metadata={"Date": None})
    return _embedded(out.getvalue(), name)


def _embedded(svg: bytes, name: str) -> str:
    """The drawing as an element of a page: no style of its own, no ids but its own, the page's colours."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    used = _references(root)
    for element in root.iter():
        _take_style_off(element)
        if (own := element.attrib.pop("id", None)) in used:
            element.set("id", f"{name}-{own}")
        if href := element.attrib.pop(_HREF, None):
            element.set("href", f"#{name}-{href.removeprefix('#')}")
        for attribute, value in element.attrib.items():
            element.set(attribute, _REFERENCE.sub(rf"url(#{name}-\1)", value))
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title")
    root.set("aria-describedby", f"{name}-description")
    return ElementTree.tostring(root, encoding="unicode")


def _references(root: ElementTree.Element) -> set[str]:
    found = {element.attrib[_HREF].removeprefix("#") for element in root.iter() if _HREF in element.attrib}
    for element in root.iter():
        for value in element.attrib.values():
            found.update(_REFERENCE.findall(value))
    return found


def _take_style_off(element: ElementTree.Element) -> None:
    """A style becomes attributes, and a colour a class: the page's policy allows no inline styles."""
    declared = (part.partition(":") for part in element.attrib.pop("style", "").split(";"))
    classes = []
    for name, _, value in ((name.strip(), colon, value.strip()) for name, colon, value in declared):
        if name in ("fill", "stroke") and value in _CLASSES:
            classes.append(f"{name}-{_CLASSES[value]}")
        elif name in _KEPT_STYLE:
            element.set(name, value)
        elif name == "font":
            classes.append("small" if float(value.partition("px")[0].split()[-1]) < 12 else "text")
    if classes:
        element.set("class", " ".join(classes))


def label(text: str, most: int = 24) -> str:
    """A name on a plot: harmless, and cut in the middle where it is too long."""
    shown = printable(text)
    if len(shown) <= most:
        return shown
    half = (most - 1) // 2
    return f"{shown[: most - 1 - half]}…{shown[-half:]}"
