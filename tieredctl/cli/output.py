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
_SPOOLED_IN_MEMORY = 1 << 20
"""Bytes of items that no file is made for."""
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

    def current_source(self) -> Mapping[str, Any]:
        """As far as it is known by now; so is the summary."""
        return self.source() if callable(self.source) else self.source

    def current_summary(self) -> Mapping[str, Any]:
        return self.summary() if callable(self.summary) else self.summary


def render(listing: Listing, output: OutputFormat, out: TextIO, width: int | None = None) -> Sequence[str]:
    """Writes a listing; gives the headings of the columns that are left out because a table of this `width` has no room
    for them. No format holds all items."""
    if out.isatty():
        make_room(for_good=True)
    if output is OutputFormat.JSONL:
        out.writelines(_json_lines(listing.items))
    elif output is OutputFormat.CSV:
        _render_csv(listing, out)
    elif output is OutputFormat.JSON:
        _write_document(listing, out, _JSON)
    elif output is OutputFormat.YAML:
        _write_document(listing, out, _yaml())
    elif output is OutputFormat.TABLE and listing.write_text is not None:
        listing.write_text(out)
    else:
        wide = output is OutputFormat.WIDE
        return write_table(listing.columns, listing.items, out, wide=wide, width=None if wide else width)
    return ()


@dataclass(frozen=True, slots=True)
class _DocumentSyntax:
    """How a document is written whose items follow the rest."""

    head: Callable[[Mapping[str, Any]], str]
    """All of it but its items, up to the first of them."""
    item: Callable[[Mapping[str, Any]], str]
    between: str
    end: str
    without_items: str
    """What follows the head where there are none."""


def _write_document(listing: Listing, out: TextIO, syntax: _DocumentSyntax) -> None:
    """The summary, known after the last item, stands before the first: they wait in a temporary file, so that memory
    does not grow with them, and nothing is written if one of them can't be read."""
    from shutil import copyfileobj
    from tempfile import SpooledTemporaryFile

    with SpooledTemporaryFile(_SPOOLED_IN_MEMORY, "w+", encoding="ascii", newline="") as items:
        count = 0
        for count, item in enumerate(listing.items, 1):
            items.write((syntax.between if count > 1 else "") + syntax.item(dict(item)))
        rest = {"source": dict(listing.current_source()), "summary": dict(listing.current_summary())}
        out.write(syntax.head({"kind": listing.kind, "apiVersion": API_VERSION, **rest}))
        items.seek(0)
        copyfileobj(items, out)
        out.write(syntax.end if count else syntax.without_items)


_INDENTED = json.JSONEncoder(indent=2)


def _indented_json(value: Mapping[str, Any], depth: int) -> str:
    return _INDENTED.encode(value).replace("\n", "\n" + "  " * depth)  # no text in JSON has line breaks of its own


_JSON = _DocumentSyntax(
    head=lambda rest: _indented_json(rest, 0).removesuffix("\n}") + ',\n  "items": [',
    item=lambda item: "\n    " + _indented_json(item, 2),
    between=",",
    end="\n  ]\n}\n",
    without_items="]\n}\n",
)


def _yaml() -> _DocumentSyntax:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Knows text of any class, such as the codes of findings."""

    def dumped(value: object) -> str:
        return str(yaml.dump(value, None, Dumper, sort_keys=False))

    Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))
    return _DocumentSyntax(
        head=lambda rest: dumped(rest) + "items:",
        item=lambda item: "\n" + dumped([item]).removesuffix("\n"),
        between="",
        end="\n",
        without_items=" []\n",
    )


def _json_lines(items: Iterable[Item]) -> Iterator[str]:
    return items.json_lines() if isinstance(items, JsonLines) else (json.dumps(item) + "\n" for item in items)


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
