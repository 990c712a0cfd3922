"""`remote du` for people: the largest first, with bars as long as there is room for, and the total."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TextIO

from tieredctl.cli.output import Item, TableColumn, write_table
from tieredctl.cli.shown_quantities import size_column
from tieredctl.cli.terminal import coloured, has_blocks, width_of
from tieredctl.drawing.bars import bars
from tieredctl.ops.remote.inventory import Depth, Totals

_USUAL_WIDTH = 80
_LEAST_BAR, _MOST_BAR = 6, 60
_GAP = "  "
_COLOUR = "34"


def usage_columns(rows: Sequence[Item], depth: Depth) -> list[TableColumn]:
    """What rows of this depth show. Ids stay in sight where a topic was made again, and one name has several."""
    names = {(row["topic"], row["topicId"]) for row in rows}
    is_again = len({topic for topic, _ in names}) < len(names)
    columns = [
        TableColumn("TOPIC", lambda row: "(owner unknown)" if row["topic"] is None else row["topic"], importance=2),
        TableColumn("TOPIC-ID", "topicId", wide=not is_again, importance=2),
    ]
    if depth is not Depth.TOPIC:
        columns.append(TableColumn("PARTITION", "partition", importance=2))
    if depth is Depth.PART:
        columns.append(TableColumn("PART", "part", importance=2))
    return [*columns, TableColumn("OBJECTS", "objects"), size_column("bytes", importance=2)]


def with_total(rows: Sequence[Item], total: Totals) -> list[Item]:
    """The largest first, and the total at the end; no name of a topic has parentheses."""
    last = {"topic": "(total)", "topicId": None, "partition": None, "part": None}
    largest_first = sorted(rows, key=lambda row: -row["bytes"])
    return [*largest_first, last | {"objects": total.objects, "bytes": total.bytes}] if rows else []


def write_usage(rows: Sequence[Item], columns: Sequence[TableColumn], out: TextIO) -> None:
    """Rows as `with_total` gives them."""
    if not rows:
        return
    width = width_of(out) or _USUAL_WIDTH
    table = StringIO()
    write_table(columns, rows, table, wide=False, width=width)
    lines = table.getvalue().splitlines()
    longest = max(map(len, lines))
    room = min(width - longest - len(_GAP), _MOST_BAR)
    if room < _LEAST_BAR:
        out.writelines(f"{line}\n" for line in lines)
        return
    drawn = bars([row["bytes"] for row in rows[:-1]], room, ascii_only=not has_blocks(out))
    for line, bar in zip(lines, ["", *drawn, ""], strict=True):
        padded = f"{line:<{longest}}{_GAP}" if bar else line
        out.write(padded + (coloured(bar, _COLOUR, out) if bar else "") + "\n")
