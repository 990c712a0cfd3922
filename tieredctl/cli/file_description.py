"""A broker's file as text for people: what it is, its fields, then its entries as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any, TextIO

from tieredctl.cli.output import Item, TableColumn, write_table
from tieredctl.model.printable import printable
from tieredctl.ops.inspection.inspect import FileKind, InspectedFile

_INSIDE_NAME = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def describe(file: InspectedFile, out: TextIO, *, wide: bool) -> None:
    """Writes what a file holds. Streams its entries, and raises what reading them raises."""
    facts = {"path": file.path, "fileKind": file.kind.value, **file.fields}
    width = max(map(len, facts))
    out.writelines(printable(f"{name}:".ljust(width + 2) + str(_cell(value))) + "\n" for name, value in facts.items())
    entries = iter(file.entries)
    first = list(islice(entries, 1))
    if first:
        out.write("\n")
        write_table(_columns(file.kind, first[0]), chain(first, entries), out, wide=wide)


def _columns(kind: FileKind, first: Item) -> list[TableColumn]:
    """The columns that people look for; in a wide table, all others too."""
    chosen = list(_CHOSEN.get(kind, ())) or list(map(_column, first))
    headings = {column.heading for column in chosen}
    return chosen + [_column(name, wide=True) for name in first if _heading(name) not in headings]


def _column(name: str, *, wide: bool = False) -> TableColumn:
    return TableColumn(_heading(name), lambda item: _cell(item.get(name)), wide)


def _heading(name: str) -> str:
    return _INSIDE_NAME.sub("-", name).upper()


def _cell(value: Any) -> object:
    if value is None:
        return "-"
    return json.dumps(value) if isinstance(value, dict | list) else value


def _epochs(item: Item) -> str | None:
    epochs = item.get("segmentLeaderEpochs")
    return epochs and ",".join(f"{epoch['leaderEpoch']}={epoch['offset']}" for epoch in epochs)


def _validity(item: Item) -> str:
    return "yes" if item["isValid"] else f"NO: {item['reason']}"


def _record_type(item: Item) -> object:
    return item.get("type") or item.get("controlType") or f"apiKey {item.get('apiKey')}"


def _record_content(item: Item) -> object:
    return _cell(item.get("fields", item.get("payload")))


def _named(names: Iterable[str]) -> tuple[TableColumn, ...]:
    return tuple(map(_column, names))


_SEGMENT_COLUMNS = (
    *_named(("segmentId", "startOffset", "endOffset", "segmentSizeInBytes")),
    TableColumn("SEGMENT-LEADER-EPOCHS", _epochs),
    _column("state"),
)
_BATCH_COLUMNS = (
    *_named(("position", "size", "baseOffset", "lastOffset", "recordsCount", "partitionLeaderEpoch")),
    *_named(("maxTimestamp", "compressionType", "producerId", "controlType")),
    TableColumn("IS-VALID", _validity),
)
_CHOSEN: Mapping[FileKind, tuple[TableColumn, ...]] = {
    FileKind.LOG: _BATCH_COLUMNS,
    FileKind.DISKLESS_OBJECT: _BATCH_COLUMNS,
    FileKind.KRAFT_SNAPSHOT: (
        _column("offset"),
        TableColumn("TYPE", _record_type),
        TableColumn("FIELDS", _record_content),
    ),
    FileKind.REMOTE_LOG_SNAPSHOT: _SEGMENT_COLUMNS,
    FileKind.FLAT_FILE: _SEGMENT_COLUMNS,
}
"""The columns of kinds whose entries have more fields than a terminal has room for."""
