"""How results look: one document in any of six formats. Renderers write to the stream they are given, and no other.

JSON and YAML are pure ASCII, with everything else escaped; tables and CSV escape what a terminal would act upon, and
CSV puts an apostrophe before what a spreadsheet would act upon.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Protocol, TextIO, runtime_checkable

from tieredctl.cli.bar import make_room
from tieredctl.model.printable import printable

API_VERSION = "tieredctl/v1"

Item = Mapping[str, Any]

_MEASURED_ROWS = 1_000
GAP = "  "
_LEAST, _STAYS = 0, 2
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)( (B|[KMGTPE]iB))?")
"""Also one of bytes."""
_FORMULA_STARTS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, also at full width."""
_HARMLESS = re.compile(r"[A-Za-z0-9_-]{22}|[+-]?[0-9]+(\.[0-9]+)?")
"""Kafka's ids, which other programs than Kafka may begin with a dash, and numbers."""


class OutputFormat(StrEnum):
    """`-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"

    @property
    def is_table(self) -> bool:
        """Whether it is for people to read."""
        return self in (OutputFormat.TABLE, OutputFormat.WIDE)


@runtime_checkable
class JsonLines(Protocol):
    """Items that are written many at a time."""

    def json_lines(self) -> Iterator[str]:
        """What `json.dumps` makes of each, a line each, in pieces of whole lines."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the table: its heading, and the item's field or how to make its text. `wide` shows it only there;
    there, a value is shown as it is, and elsewhere as people read it, if `people_read` says how."""

    heading: str
    value: str | Callable[[Item], object]
    wide: bool = False
    people_read: Callable[[Any], str] | None = None
    importance: int = 1
    """Where the terminal is too narrow, columns of 0 are left out first, then those of 1; those of 2 stay."""

    def text(self, item: Item, *, wide: bool = True) -> str:
        value = item.get(self.value) if isinstance(self.value, str) else self.value(item)
        if self.people_read is not None and not wide and value is not None:
            return self.people_read(value)
        if isinstance(value, bool):
            return str(value).lower()
        return "-" if value is None else str(value)


def known(name: str) -> Callable[[Item], object]:
    """For a column: the item's field, where nothing is what is not known."""
    return lambda item: "unknown" if item.get(name) is None else item[name]


@dataclass(frozen=True, slots=True)
class Listing:
    """A command's output: items, and a summary that may only be known after the last of them."""

    kind: str
    source: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    items: Iterable[Item]
    columns: Sequence[TableColumn]
    summary: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    fields: Sequence[str]
    """Columns of the CSV, whose header is there without any item too."""
    write_text: Callable[[TextIO], None] | None = None
    """What `-o table` has instead of a table."""
    reads_on: bool = False
    """Whether all items are read though nobody reads the output any more: what they find is the answer."""


def render(listing: Listing, output: OutputFormat, out: TextIO, width: int | None = None) -> Sequence[str]:
    """Writes a listing; gives the headings of the columns that are left out because a table of this `width` has no room
    for them. `json` and `yaml` hold all items; the others stream."""
    if out.isatty():
        make_room(for_good=True)
    if output is OutputFormat.JSONL:
        out.writelines(_json_lines(listing.items))
    elif output is OutputFormat.CSV:
        _render_csv(listing, out)
    elif output is OutputFormat.JSON:
        json.dump(_document(listing), out, indent=2)
        out.write("\n")
    elif output is OutputFormat.YAML:
        _write_yaml(_document(listing), out)
    elif output is OutputFormat.TABLE and listing.write_text is not None:
        listing.write_text(out)
    else:
        wide = output is OutputFormat.WIDE
        return write_table(listing.columns, listing.items, out, wide=wide, width=None if wide else width)
    return ()


def _write_yaml(document: Mapping[str, Any], out: TextIO) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Knows text of any class, such as the codes of findings."""

    Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))
    yaml.dump(document, out, Dumper, sort_keys=False)


def _json_lines(items: Iterable[Item]) -> Iterator[str]:
    return items.json_lines() if isinstance(items, JsonLines) else (json.dumps(item) + "\n" for item in items)


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
    items = iter(listing.items)
    first = list(islice(items, 1))  # before the header: what is wrong may show only where items are read
    writer = csv.DictWriter(out, listing.fields, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in item.items()} for item in chain(first, items))


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = printable(value)
        return "'" + shown if shown.startswith(_FORMULA_STARTS) and not _HARMLESS.fullmatch(shown) else shown
    return json.dumps(value) if isinstance(value, list | dict) else value


def write_table(
    columns: Sequence[TableColumn], items: Iterable[Item], out: TextIO, *, wide: bool, width: int | None = None
) -> Sequence[str]:
    """A table of items, or nothing where there are none; gives the headings of the columns that are left out to fit
    `width`. Streams: the first rows decide how wide the columns are."""
    shown = [column for column in columns if wide or not column.wide]
    rows = ([printable(column.text(item, wide=wide)) for column in shown] for item in items)
    measured = list(islice(rows, _MEASURED_ROWS))
    if not measured:
        return ()
    headings = [column.heading for column in shown]
    widths = [max(map(len, cells)) for cells in zip(headings, *measured, strict=True)]
    numeric = [all(_is_number(row[index]) for row in measured) for index in range(len(shown))]
    fitting = _fitting(shown, widths, width)
    for row in chain([headings], measured, rows):
        cells = (row[at].rjust(widths[at]) if numeric[at] else row[at].ljust(widths[at]) for at in fitting)
        out.write(GAP.join(cells).rstrip() + "\n")
    return [heading for at, heading in enumerate(headings) if at not in fitting]


def _fitting(columns: Sequence[TableColumn], widths: Sequence[int], width: int | None) -> list[int]:
    """The columns that a line has room for: the least important are left out first, of these the last. Where those that
    stay are too wide anyway, only what matters least is left out."""
    kept = list(range(len(columns)))
    while width is not None and sum(widths[at] for at in kept) + len(GAP) * (len(kept) - 1) > width:
        may_go = [at for at in kept[1:] if columns[at].importance < _STAYS]
        if not may_go:
            return [at for at in range(len(columns)) if at in kept or columns[at].importance > _LEAST]
        kept.remove(min(may_go, key=lambda at: (columns[at].importance, -at)))
    return kept


def _is_number(text: str) -> bool:
    return text == "-" or _NUMBER.fullmatch(text) is not None
