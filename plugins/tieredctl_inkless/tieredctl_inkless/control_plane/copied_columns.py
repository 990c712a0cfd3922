"""The rows of a query as Arrow columns, by PostgreSQL's binary COPY: no value becomes an object of Python's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.errors import DecodeError
from tieredctl.formats.arrow_columns import binary_array, number_array, numbers_in
from tieredctl.formats.windows import Ints
from tieredctl.process.progress import note_more

NULL = -(1 << 63)
"""What a query writes for a number that is null: all columns have one width then."""
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER_BYTES = len(_SIGNATURE) + 8
_TRAILER = b"\xff\xff"
_FRAME = np.dtype([("fields", ">i2"), ("length", ">i4")])
"""Before each text."""
_STRETCH = 8 << 20
_WIDTHS = {pa.int16(): ">i2", pa.int32(): ">i4", pa.int64(): ">i8", pa.binary(16): "V16"}
_TYPES = {pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint", pa.binary(16): "uuid"}


class Column(NamedTuple):
    """A column of the result, and what SQL computes it of."""

    name: str
    expression: str
    kind: pa.DataType


def copy_statement(columns: Sequence[Column], rest: str) -> str:
    """The COPY of columns of one width; `rest` is the query from FROM on, and orders the rows. Of a text, its length in
    bytes of UTF-8 is copied, whatever the database's encoding is."""
    narrow = map(_of_one_width, columns)
    selected = ", ".join(f"({column.expression})::{_TYPES[column.kind]}" for column in narrow)
    return f"COPY (SELECT {selected} {rest}) TO STDOUT (FORMAT BINARY)"


def text_statement(column: Column, rest: str) -> str:
    """The COPY of one column of text."""
    return f"COPY (SELECT ({column.expression})::text {rest}) TO STDOUT (FORMAT BINARY)"


def _of_one_width(column: Column) -> Column:
    if column.kind != pa.string():
        return column
    return Column(column.name, f"octet_length(convert_to(({column.expression})::text, 'UTF8'))", pa.int32())


def read_columns(pieces: Iterable[Any], columns: Sequence[Column]) -> pa.Table:
    """The table that `copy_statement` copied. Raises DecodeError where a row has another form."""
    narrow = [_of_one_width(column) for column in columns]
    schema = pa.schema([(column.name, column.kind) for column in narrow])
    layout = _row_layout(narrow)
    batches = [_record_batch(rows, schema) for rows in _rows(pieces, layout)]
    return pa.Table.from_batches(batches, schema).combine_chunks()


def read_texts(pieces: Iterable[Any], lengths: Ints) -> pa.Array:
    """The texts that `text_statement` copied, whose lengths in bytes are known. Raises DecodeError."""
    data = b"".join(pieces)
    ends = np.cumsum(lengths + _FRAME.itemsize) + _HEADER_BYTES
    if not data.startswith(_SIGNATURE) or len(data) != (ends[-1] if len(ends) else _HEADER_BYTES) + len(_TRAILER):
        raise DecodeError("PostgreSQL copied other texts than it measured", 0)
    copied = np.frombuffer(data, np.uint8)
    begins = ends - lengths - _FRAME.itemsize
    frames = np.ascontiguousarray(copied[begins[:, np.newaxis] + np.arange(_FRAME.itemsize)]).view(_FRAME).ravel()
    if not ((frames["fields"] == 1) & (frames["length"] == lengths)).all():
        raise DecodeError("PostgreSQL copied other texts than it measured", 0)
    texts = binary_array(copied, ends - lengths, ends).view(pa.string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise DecodeError("PostgreSQL copied a text that is not valid UTF-8", 0) from None
    return texts


def _row_layout(columns: Sequence[Column]) -> np.dtype[Any]:
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for number, column in enumerate(columns):
        fields += [(f"length{number}", ">i4"), (column.name, _WIDTHS[column.kind])]
    return np.dtype(fields)


def _rows(pieces: Iterable[Any], layout: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    """Whole rows, many at a time."""
    gathered, begun = bytearray(), False
    for piece in pieces:
        gathered += piece
        if not begun:
            if len(gathered) < _HEADER_BYTES:
                continue
            if not gathered.startswith(_SIGNATURE):
                raise DecodeError("PostgreSQL's copy does not begin as one", 0)
            del gathered[:_HEADER_BYTES]
            begun = True
        if len(gathered) >= _STRETCH:
            whole = len(gathered) // layout.itemsize * layout.itemsize
            rows = np.frombuffer(bytes(gathered[:whole]), layout)
            note_more("rows of the control plane read", len(rows))
            yield _checked(rows)
            del gathered[:whole]
    if not begun or bytes(gathered[-len(_TRAILER) :]) != _TRAILER:
        raise DecodeError("PostgreSQL's copy does not end", len(gathered))
    rest = bytes(gathered[: -len(_TRAILER)])
    if len(rest) % layout.itemsize:
        raise DecodeError("PostgreSQL copied rows of several widths", len(rest))
    yield _checked(np.frombuffer(rest, layout))


def _checked(rows: NDArray[Any]) -> NDArray[Any]:
    assert rows.dtype.names
    assert rows.dtype.fields
    lengths = [name for name in rows.dtype.names if name.startswith("length")]
    sound = rows["fields"] == len(lengths)
    for number, name in enumerate(lengths):
        width = rows.dtype.fields[rows.dtype.names[2 + 2 * number]][0].itemsize
        sound &= rows[name] == width
    if not sound.all():
        raise DecodeError("PostgreSQL copied a row without one of its values", int(np.argmin(sound)))
    return rows


def _record_batch(rows: NDArray[Any], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([_array(rows[field.name], field.type) for field in schema], schema=schema)


def _array(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.binary(16):
        data = np.ascontiguousarray(values)
        return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(data)])
    numbers = number_array(values)
    if kind != pa.int64() or not (numbers_in(numbers) == NULL).any():
        return numbers
    return pc.if_else(pc.equal(numbers, pa.scalar(NULL, kind)), pa.scalar(None, kind), numbers)
