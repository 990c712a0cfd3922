"""Records as the items of a listing, and as lines of a format such as kcat's users write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tieredctl.cli.output import Item, TableColumn
from tieredctl.cli.records.shown_bytes import BytesAs, ShownBytes, as_base64, json_line
from tieredctl.errors import ErrorCode, TieredctlError

if TYPE_CHECKING:
    import pyarrow as pa

ITEM_FIELDS = (
    *("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"),
    *("leaderEpoch", "segmentId"),
)
"""The fields of an item, which are the columns of records that are read for it."""
_CELL = 60
"""How many characters of a key or a value a table shows that is not wide, where no terminal is narrower."""
_OTHER_CELLS = 44
"""What an offset, a time and the gaps take."""
_NO_TIMESTAMP = -1
"""Kafka's; other negative ones are before 1970."""


@dataclass(frozen=True, slots=True)
class RecordLines:
    """Items that are written as lines of JSON, with their JSON as it is."""

    items: Iterable[Item]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def json_lines(self) -> Iterator[str]:
        """A line each."""
        return map(json_line, self.items)


def record_items(
    batches: Iterable[pa.RecordBatch], shown: ShownBytes, otherwise: BytesAs = BytesAs.BASE64
) -> Iterator[dict[str, Any]]:
    """A dictionary a record, in the order of `ITEM_FIELDS`; what could not be read has `damage` besides."""
    show_key, show_value = (shown.show(kind or otherwise) for kind in (shown.key, shown.value))
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in batch.schema.names]
        for cells in zip(*columns, strict=True):
            item = dict(zip(batch.schema.names, cells, strict=True))
            item["key"] = _shown(item["key"], show_key)
            item["value"] = _shown(item["value"], show_value)
            if item["headers"] is not None:
                item["headers"] = [
                    {"key": header["key"], "value": _shown(header["value"], as_base64)} for header in item["headers"]
                ]
            if item.get("damage", "") is None:
                del item["damage"]
            yield item


def shown_items(
    batches: Iterable[pa.RecordBatch], shown: ShownBytes, otherwise: BytesAs = BytesAs.BASE64
) -> Iterable[Item]:
    """The same, for a listing."""
    items = record_items(batches, shown, otherwise)
    return RecordLines(items) if shown.are_json else items


def _shown(data: bytes | None, show: Callable[[bytes], str]) -> str | None:
    return None if data is None else show(data)


def table_columns(*, of_several_partitions: bool, width: int | None = None) -> Sequence[TableColumn]:
    """What a table of records shows; on a terminal of some width, values have the room that the others leave."""
    key_cell, value_cell = _CELL, _CELL
    if width is not None:
        key_cell = min(max(width // 5, 8), _CELL)
        value_cell = max(width - _OTHER_CELLS - key_cell - (11 if of_several_partitions else 0), 16)
    return (
        TableColumn("PARTITION", "partition", wide=not of_several_partitions),
        TableColumn("OFFSET", "offset", importance=2),
        TableColumn("TIME", _time),
        TableColumn("KEY", "key", people_read=partial(_cell, key_cell)),
        TableColumn(
            "VALUE",
            lambda item: item.get("damage") or item["value"],
            people_read=partial(_cell, value_cell),
            importance=2,
        ),
        TableColumn("HEADERS", lambda item: json.dumps(item["headers"]) if item["headers"] else None, wide=True),
        TableColumn("EPOCH", "leaderEpoch", wide=True),
        TableColumn("SEGMENT-ID", "segmentId", wide=True),
    )


def _time(item: Item) -> str | None:
    timestamp = item["timestamp"]
    if timestamp is None or timestamp == _NO_TIMESTAMP:
        return None
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):  # what clients may send and no calendar has
        return str(timestamp)


def _cell(most: int, shown: object) -> str:
    text = str(shown)
    return text if len(text) <= most else f"{text[: most - 1]}…"


_TOKEN = re.compile(r"%(.?)|\\(n|t|r|0|\\|x[0-9A-Fa-f]{2})", re.DOTALL)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_Piece = Callable[[dict[str, Any]], bytes]


def _number(name: str) -> _Piece:
    return lambda row: b"-1" if row[name] is None else str(row[name]).encode()


def _length(name: str) -> _Piece:
    return lambda row: b"-1" if row[name] is None else str(len(row[name])).encode()


def _headers(row: dict[str, Any]) -> bytes:
    """As kcat: `name=value,name=value`, NULL for no value."""
    pairs = row["headers"] or ()
    return b",".join(one["key"].encode() + b"=" + (b"NULL" if one["value"] is None else one["value"]) for one in pairs)


_TOKENS: dict[str, _Piece] = {
    "t": lambda row: row["topic"].encode(),
    "p": _number("partition"),
    "o": _number("offset"),
    "T": _number("timestamp"),
    "h": _headers,
    "K": _length("key"),
    "S": _length("value"),
    "%": lambda _: b"%",
}


class RecordFormat:
    """`--format`: kcat's tokens %t %p %o %T %k %K %s %S %h %%, and its escapes."""

    def __init__(self, text: str, shown: ShownBytes) -> None:
        """Keys and values are written as they are unless something is asked for, and nothing for none. Raises
        TieredctlError `usage` for an unknown token, and for what is no text."""
        self._pieces: list[_Piece] = []
        tokens = {**_TOKENS, "k": _bytes_of("key", shown), "s": _bytes_of("value", shown)}
        reached = 0
        for match in _TOKEN.finditer(text):
            self._literal(_as_typed(text[reached : match.start()]))
            reached = match.end()
            token, escape = match.groups()
            if escape is not None:
                self._literal(_ESCAPES.get(escape) or bytes.fromhex(escape[1:]))
            elif token in tokens:
                self._pieces.append(tokens[token])
            else:
                hint = "Known are %t %p %o %T %k %K %s %S %h %%, as in kcat."
                raise TieredctlError(ErrorCode.USAGE, f"--format has the unknown token %{token}.", hint=hint)
        self._literal(_as_typed(text[reached:]))

    def lines(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """The bytes for each record."""
        for batch in batches:
            names = batch.schema.names
            for cells in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
                row = dict(zip(names, cells, strict=True))
                yield b"".join(piece(row) for piece in self._pieces)

    def _literal(self, data: bytes) -> None:
        if data:
            self._pieces.append(lambda _: data)


def _as_typed(text: str) -> bytes:
    """The bytes of a part of the command line, which Python decodes so that any can be had back."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise TieredctlError(ErrorCode.USAGE, f"--format {text!r} has a character that is none.") from None


def _bytes_of(name: str, shown: ShownBytes) -> _Piece:
    kind: BytesAs | None = getattr(shown, name)
    show = None if kind is None else shown.show(kind)

    def piece(row: dict[str, Any]) -> bytes:
        data = row[name]
        if data is None:
            return b""
        return bytes(data) if show is None else show(data).encode()

    return piece
