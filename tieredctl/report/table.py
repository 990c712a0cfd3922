"""A table of a page: its first rows stand in the page as they are, all of them in a block of JSON for its script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from tieredctl.model.printable import printable

MOST_ROWS = 100_000
"""More are cut, and the page says so."""
FIRST_ROWS = 50
"""As many are readable without the script; it shows so many at a time."""
_MOST_EXACT = (1 << 53) - 1
"""Scripts know no greater number to the last digit; offsets may be greater."""
_TO_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


class Shown(NamedTuple):
    """A cell that is sorted by something else than its text."""

    sorted_by: float | int | str
    text: str


Cell = str | int | float | Shown | None
"""None is what is not there."""


def cell_text(cell: Cell) -> str:
    """What a reader sees of a cell."""
    if cell is None:
        return "-"
    return cell.text if isinstance(cell, Shown) else str(cell)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. `left_out` is how many were cut; `how_to_see_all` says what shows those."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    how_to_see_all: str = ""

    @classmethod
    def of(cls, title: str, headings: Sequence[str], rows: Iterable[Sequence[Cell]], how_to_see_all: str = "") -> Table:
        """A table of rows that are read once; no more of them are held than a page can have."""
        reading = iter(rows)
        held = list(islice(reading, MOST_ROWS))
        return cls(title, headings, held, sum(1 for _ in reading), how_to_see_all)

    @property
    def first_rows(self) -> list[list[str]]:
        """What is readable without the script."""
        return [[printable(cell_text(cell)) for cell in row] for row in self.rows[:FIRST_ROWS]]

    @property
    def are_numeric(self) -> list[bool]:
        """Flags the columns that have numbers, or nothing, in every row."""
        columns = range(len(self.headings))
        return [bool(self.rows) and all(_is_number(row[column]) for row in self.rows) for column in columns]

    def json(self) -> str:
        """All rows, such that no text in them can end a script element."""
        rows = [[_json_cell(cell) for cell in row] for row in self.rows]
        # Pure ASCII: U+2028 and its like end lines in scripts.
        return json.dumps(rows, separators=(",", ":"), allow_nan=False).translate(_TO_SCRIPT)


def _is_number(cell: Cell) -> bool:
    value = cell.sorted_by if isinstance(cell, Shown) else cell
    return value is None or isinstance(value, int | float)


def _json_cell(cell: Cell) -> object:
    if isinstance(cell, Shown):
        return [cell.sorted_by, printable(cell.text)]
    if isinstance(cell, int) and abs(cell) > _MOST_EXACT:
        return [cell, str(cell)]
    return printable(cell) if isinstance(cell, str) else cell
