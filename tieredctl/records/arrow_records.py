"""Records as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.record_batches import Attributes
from tieredctl.formats.record_fields import HeaderSpans, RecordFields, Spans
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ids import TopicIdPartition

_HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
RECORD_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64()),
        pa.field("timestampType", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("item", _HEADER, nullable=False))),
        pa.field("leaderEpoch", pa.int32()),
        pa.field("producerId", pa.int64()),
        pa.field("producerEpoch", pa.int16()),
        pa.field("sequence", pa.int32()),
        pa.field("isTransactional", pa.bool_()),
        pa.field("segmentId", pa.string()),
    ]
)
"""`timestamp` in milliseconds, -1 where the record has none; `timestampType` as Kafka's TimestampType prints it;
`headers` in order, repeated keys kept. Null is what a record does not have: a key, a value, a producer, the leader
epoch of magic 0 and 1."""
DAMAGE = pa.field("damage", pa.string())
"""Beside these with `OnDamage.ROW`: why the offsets from this row's to the next row's cannot be read; else null."""

_TIMESTAMP_TYPES = pa.array(["CreateTime", "LogAppendTime", "NoTimestampType"])
_MOST_SEQUENCES = 1 << 31


def chosen_schema(columns: Sequence[str] | None, *, with_damage: bool) -> pa.Schema:
    """The schema of some columns, by their names; of all of them for None."""
    fields = list(RECORD_SCHEMA) if columns is None else [RECORD_SCHEMA.field(name) for name in columns]
    return pa.schema([*fields, DAMAGE] if with_damage else fields)


def arrow_records(
    schema: pa.Schema,
    partition: TopicIdPartition,
    segment_id: str,
    headers: HeaderColumns,
    fields: RecordFields,
    within: tuple[int, int],
) -> pa.RecordBatch:
    """The records with offsets in a range (inclusive); `headers` are of the batches that `fields` refer to."""
    first = int(np.searchsorted(fields.offsets, within[0]))
    last = int(np.searchsorted(fields.offsets, within[1], side="right"))  # an offset after the greatest overflows
    rows = slice(first, last)
    maker = _Columns(partition, segment_id, headers, fields, rows, max(last - first, 0))
    return pa.RecordBatch.from_arrays([maker.of(field) for field in schema], schema=schema)


def damage_row(
    schema: pa.Schema, partition: TopicIdPartition, segment_id: str | None, offset: int, reason: str
) -> pa.RecordBatch:
    """The row for offsets that cannot be read, from `offset` on."""
    stated = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": offset,
        "segmentId": segment_id,
        DAMAGE.name: reason,
    }
    return pa.RecordBatch.from_pylist([{name: stated.get(name) for name in schema.names}], schema=schema)


class _Columns:
    """Makes the columns of some rows, each when it is asked for."""

    def __init__(
        self,
        partition: TopicIdPartition,
        segment_id: str,
        headers: HeaderColumns,
        fields: RecordFields,
        rows: slice,
        count: int,
    ) -> None:
        self._partition = partition
        self._segment_id = segment_id
        self._headers = headers
        self._fields = fields
        self._rows = rows
        self._count = count
        self._batches = fields.batches[rows]

    def of(self, field: pa.Field) -> pa.Array:
        """The column of a field of the schema."""
        name = field.name
        if name in ("key", "value"):
            return _binary(self._fields.buffer, _some(getattr(self._fields, f"{name}s"), self._rows))
        if name in _OF_BATCHES:
            return self._of_batches(*_OF_BATCHES[name], field.type)
        made: dict[str, Callable[[], pa.Array]] = {
            "topic": lambda: pa.repeat(pa.scalar(self._partition.topic, pa.string()), self._count),
            "partition": lambda: pa.repeat(pa.scalar(self._partition.partition, pa.int32()), self._count),
            "offset": lambda: pa.array(self._fields.offsets[self._rows]),
            "timestamp": lambda: pa.array(self._fields.timestamps[self._rows]),
            "timestampType": self._timestamp_types,
            "headers": lambda: _header_lists(self._fields.buffer, self._fields.headers, self._rows),
            "sequence": self._sequences,
            "isTransactional": self._are_transactional,
            "segmentId": lambda: pa.repeat(pa.scalar(self._segment_id or None, pa.string()), self._count),
            DAMAGE.name: lambda: pa.nulls(self._count, pa.string()),
        }
        return made[name]()

    def _of_batches(self, column: str, least: int, kind: pa.DataType) -> pa.Array:
        values = self._headers[column].astype(kind.to_pandas_dtype())
        return _unless_below(values[self._batches], least, kind)

    def _timestamp_types(self) -> pa.Array:
        codes = ((self._headers["attributes"] & Attributes.LOG_APPEND_TIME) != 0).astype(np.int8)
        codes[self._headers["magic"] == 0] = 2
        if len(codes) and (codes == codes[0]).all():
            return pa.repeat(_TIMESTAMP_TYPES[int(codes[0])], self._count)
        return _TIMESTAMP_TYPES.take(pa.array(codes[self._batches]))

    def _sequences(self) -> pa.Array:
        bases = self._headers["baseSequence"].astype(np.int64)
        if (bases < 0).all():
            return pa.nulls(self._count, pa.int32())
        deltas = self._fields.offsets[self._rows] - self._headers["baseOffset"].astype(np.int64)[self._batches]
        own = bases[self._batches]
        return _unless_below(np.where(own < 0, -1, (own + deltas) % _MOST_SEQUENCES), 0, pa.int32())

    def _are_transactional(self) -> pa.Array:
        flags: Flags = (self._headers["attributes"] & Attributes.TRANSACTIONAL) != 0
        return pa.array(flags[self._batches])


_OF_BATCHES = {
    "leaderEpoch": ("partitionLeaderEpoch", 0),
    "producerId": ("producerId", 0),
    "producerEpoch": ("producerEpoch", 0),
}
"""The columns that all records of a batch share: the header's field, and below which value it means none."""


def _unless_below(values: Any, least: int, kind: pa.DataType) -> pa.Array:
    missing = values < least
    if not missing.any():
        return pa.array(values, kind)
    return pa.nulls(len(values), kind) if missing.all() else pa.array(values, kind, mask=missing)


def _some(spans: Spans, rows: slice) -> Spans:
    return Spans(spans.starts[rows], spans.ends[rows], spans.are_null[rows])


def _binary(buffer: bytes, spans: Spans) -> pa.Array:
    """The byte strings, copied together by Arrow: of a view, of which every second string is one of them and the others
    are what lies between."""
    count = len(spans.starts)
    if not count or spans.are_null.all():
        return pa.nulls(count, pa.binary())
    base = int(spans.starts[0])
    bounds = np.empty(2 * count, np.int32)
    bounds[::2], bounds[1::2] = spans.starts - base, spans.ends - base
    viewed = pa.py_buffer(buffer).slice(base, int(spans.ends[-1]) - base)
    view = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(bounds), viewed])
    strings = view.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
    return _with_nulls(strings, spans.are_null)


def _with_nulls(strings: pa.Array, are_null: Flags) -> pa.Array:
    if not are_null.any():
        return strings
    validity = pa.py_buffer(np.packbits(~are_null, bitorder="little"))
    _, bounds, data = strings.buffers()
    return pa.Array.from_buffers(strings.type, len(strings), [validity, bounds, data])


def _header_lists(buffer: bytes, headers: HeaderSpans, rows: slice) -> pa.Array:
    bounds: Ints = headers.bounds[rows.start : rows.stop + 1]
    own = slice(int(bounds[0]), int(bounds[-1]))
    keys = _binary(buffer, _some(headers.keys, own))
    values = _binary(buffer, _some(headers.values, own))
    pairs = pa.StructArray.from_arrays([as_text(keys), values], fields=list(_HEADER))
    return pa.ListArray.from_arrays(
        pa.array((bounds - bounds[0]).astype(np.int32)), pairs, type=RECORD_SCHEMA.field("headers").type
    )


def as_text(column: pa.Array) -> pa.Array:
    """Bytes as UTF-8, as Kafka's clients read it: what is not has U+FFFD."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        values = (None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist())
        return pa.array(values, pa.string())
