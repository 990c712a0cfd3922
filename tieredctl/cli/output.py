"""How results look: one document in any of six formats. Renderers write to the stream they are given, and no other."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TextIO

API_VERSION = "tieredctl/v1"

Item = Mapping[str, Any]


class OutputFormat(str, Enum):
    """`-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table: its heading, and the item's field or how to make its text. `wide` shows it only there."""

    heading: str
    value: str | Callable[[Item], object]
    wide: bool = False

    def text(self, item: Item) -> str:
        value = item.get(self.value) if isinstance(self.value, str) else self.value(item)
        return "-" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command has to say: items, and a summary that may only be known after the last of them."""

    kind: str
    source: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    items: Iterable[Item]
    columns: Sequence[TableColumn]
    summary: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    fields: Sequence[str] = ()
    """Columns of the CSV; by default the fields of the first item."""


def render(listing: Listing, output: OutputFormat, out: TextIO) -> None:
    """Writes a listing. `jsonl` and `csv` stream; the others hold all items."""
    if output is OutputFormat.JSONL:
        for item in listing.items:
            out.write(json.dumps(item, ensure_ascii=False) + "\n")
    elif output is OutputFormat.CSV:
        _render_csv(listing, out)
    elif output is OutputFormat.JSON:
        json.dump(_document(listing), out, ensure_ascii=False, indent=2)
        out.write("\n")
    elif output is OutputFormat.YAML:
        import yaml

        yaml.safe_dump(_document(listing), out, sort_keys=False, allow_unicode=True)
    else:
        _render_table(listing, out, wide=output is OutputFormat.WIDE)


def _document(listing: Listing) -> dict[str, Any]:
    items = [dict(item) for item in listing.items]
    return {
        "kind": listing.kind,
        "apiVersion": API_VERSION,
        "source": dict(_now(listing.source)),
        "summary": dict(_now(listing.summary)),
        "items": items,
    }


def _now(value: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    return value() if callable(value) else value


def _render_csv(listing: Listing, out: TextIO) -> None:
    writer = None
    for item in listing.items:
        if writer is None:
            writer = csv.DictWriter(out, listing.fields or list(item), extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _csv_cell(value) for name, value in item.items()})
    if writer is None and listing.fields:
        csv.writer(out, lineterminator="\n").writerow(listing.fields)


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _render_table(listing: Listing, out: TextIO, *, wide: bool) -> None:
    columns = [column for column in listing.columns if wide or not column.wide]
    rows = [[_printable(column.text(item)) for column in columns] for item in listing.items]
    headings = [column.heading for column in columns]
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    numeric = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(columns))]
    for row in [headings, *rows] if rows else []:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        out.write("  ".join(cells).rstrip() + "\n")


def _printable(text: str) -> str:
    """Names come from outside: nothing in them may move the cursor or colour the terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def _is_number(text: str) -> bool:
    return text == "-" or text.removeprefix("-").replace(".", "", 1).isdigit()


def render_text(listing: Listing, output: OutputFormat) -> str:
    """The same as a string."""
    out = io.StringIO()
    render(listing, output, out)
    return out.getvalue()
