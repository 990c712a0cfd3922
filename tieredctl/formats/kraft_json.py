"""Records of the metadata log and its snapshots as dump-log's decoder prints them: `{"type", "version", "data"}`.

Control records have the names of their messages, and an unknown type its number; the data of what is not known are its
bytes in base64.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.control_records import ControlRecord
from tieredctl.formats.event_frame import FRAME_BYTES, FRAME_VERSION
from tieredctl.formats.json_text import RARE, JsonWriter, json_writer
from tieredctl.formats.kafka_json import base64_text, json_document
from tieredctl.formats.kraft_log import (
    KraftRecord,
    KraftRecordType,
    batch_records,
    decode_kraft_record,
    kraft_schema,
    undecodable,
)
from tieredctl.formats.log_scan import Damage, LogBlock
from tieredctl.formats.record_batches import Attributes, BatchHeader
from tieredctl.formats.record_columns import NO_VALUE, RecordColumns, record_values
from tieredctl.formats.windows import Ints

_LINES_AT_ONCE = 1 << 13
_CODEC_BITS = 7
_RARE_BATCH = Attributes.CONTROL | _CODEC_BITS
"""Controllers do not compress."""


class RecordKind(NamedTuple):
    """A record's type and version, as in its document."""

    type: str
    version: int | None
    is_known: bool = True


def kind_of(content: ControlRecord | KraftRecord) -> RecordKind:
    """A record's type, version, and whether both are known here."""
    if isinstance(content, KraftRecord):
        return RecordKind(content.type_name, content.version, content.fields is not None)
    if content.schema is None or content.fields is None:
        return RecordKind(f"ControlRecord{content.type}", None, is_known=False)
    return RecordKind(content.schema.name, content.fields["Version"])


def record_document(content: ControlRecord | KraftRecord) -> dict[str, Any]:
    """A record as dump-log prints it."""
    kind = kind_of(content)
    data: Any = None
    if content.schema is not None and content.fields is not None:
        data = json_document(content.schema, content.fields)
    elif content.payload is not None:
        data = base64_text(content.payload)
    return {"type": kind.type, "version": kind.version, "data": data}


class RecordLines:
    """The records of sound batches as lines of JSON: what `json.dumps` makes of `record_document`, many at a time."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        """`wanted`: by its type, whether a record is to be shown."""
        self._wanted = wanted
        self._frames = _Frames(wanted)
        self._rare: Counter[RecordKind] = Counter()

    @property
    def counts(self) -> Counter[RecordKind]:
        """How many records of each kind were shown."""
        frequent = {frame.kind: frame.shown for frame in self._frames.values() if frame.shown}
        return self._rare + Counter(frequent)

    def of_block(self, block: LogBlock[HeaderColumns]) -> Iterator[str | Damage]:
        """Text of whole lines, and the batches with a record that cannot be decoded."""
        positions = np.asarray(block.positions, np.int64)
        for run in _runs(block.headers):
            starts, headers = positions[run], block.headers[run]
            if headers["attributes"][0] & _RARE_BATCH:
                yield from self._one_by_one(block, starts, headers)
                continue
            for stretch, records in record_values(block.buffer, cast("Sequence[int]", starts), headers):
                if records is None:
                    yield from self._one_by_one(block, starts[stretch], headers[stretch])
                else:
                    yield from self._many(block, starts[stretch], headers[stretch], records)

    def _many(
        self, block: LogBlock[HeaderColumns], positions: Ints, headers: HeaderColumns, records: RecordColumns
    ) -> Iterator[str | Damage]:
        for first in range(0, len(records.starts), _LINES_AT_ONCE):
            some = slice(first, first + _LINES_AT_ONCE)
            spans = zip(records.starts[some].tolist(), records.ends[some].tolist(), strict=True)
            lines, damaged_at = self._lines(block.buffer, spans)
            yield "".join(lines)
            for position, error in damaged_at:
                batch = int(np.searchsorted(positions, position)) - 1
                header = _header(headers[batch])
                yield undecodable(block.file_position + int(positions[batch]), header, error)

    def _lines(
        self, buffer: bytes, spans: Iterator[tuple[int, int]]
    ) -> tuple[list[str], list[tuple[int, DecodeError]]]:
        """The lines of metadata records that lie in a buffer, and where one ends that cannot be decoded."""
        lines: list[str] = []
        undecoded: list[tuple[int, DecodeError]] = []
        frames, append = self._frames, lines.append
        for start, end in spans:
            value = buffer[start:end] if start != NO_VALUE else b""
            try:
                frame = frames[value[:FRAME_BYTES]]
                if frame.wanted:
                    append(frame.prefix + frame.write(value, FRAME_BYTES) + "}\n")
                    frame.shown += 1
            except (KeyError, *RARE):
                try:
                    append(self._line(decode_kraft_record(value)))
                except DecodeError as error:
                    undecoded.append((end, error))
        return lines, undecoded

    def _one_by_one(
        self, block: LogBlock[HeaderColumns], positions: Ints, headers: HeaderColumns
    ) -> Iterator[str | Damage]:
        for position, row in zip(positions.tolist(), headers, strict=True):
            header = _header(row)
            batch = memoryview(block.buffer)[position : position + header.size]
            for part in batch_records(block.file_position + position, header, batch):
                yield part if isinstance(part, Damage) else self._line(part.content)

    def _line(self, content: ControlRecord | KraftRecord) -> str:
        """The line of one record; nothing where it is not wanted."""
        kind = kind_of(content)
        if not self._wanted(kind.type):
            return ""
        self._rare[kind] += 1
        return json.dumps(record_document(content)) + "\n"


@dataclass(slots=True)
class _Frame:
    """What begins all records of a type and version."""

    kind: RecordKind
    wanted: bool
    prefix: str
    write: JsonWriter
    shown: int = 0


class _Frames(dict[bytes, _Frame]):
    """By the three bytes that a record begins with: frame version, apiKey and version."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        super().__init__()
        self._wanted = wanted

    def __missing__(self, head: bytes) -> _Frame:
        """Raises KeyError for what `decode_kraft_record` has to look at."""
        if len(head) < FRAME_BYTES or head[0] != FRAME_VERSION:
            raise KeyError(head)
        _, api_key, version = head
        schema = kraft_schema(api_key, version)
        if schema is None:
            raise KeyError(head)
        kind = RecordKind(KraftRecordType(api_key).kafka_name, version)
        prefix = f'{{"type": "{kind.type}", "version": {version}, "data": '
        frame = self[head] = _Frame(kind, self._wanted(kind.type), prefix, json_writer(schema))
        return frame


def _runs(headers: HeaderColumns) -> Iterator[slice]:
    """Batches in a row of which all are rare, or none."""
    rare = (headers["attributes"] & _RARE_BATCH) != 0
    borders = [0, *(np.flatnonzero(rare[1:] != rare[:-1]) + 1).tolist(), len(headers)]
    return (slice(first, after) for first, after in pairwise(borders) if first < after)


def _header(row: HeaderColumns) -> BatchHeader:
    return BatchHeader._make(row.item())
