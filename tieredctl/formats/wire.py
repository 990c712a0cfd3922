"""Reads and writes one value at a time, by its schema.

A schema is turned into a closure once (`reader`, `writer`); runs of fixed-width fields become one `struct` call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import UNKNOWN_TAGS, Array, Field, Length, Primitive, Struct
from tieredctl.formats.varints import Buffer, read_unsigned_varint, unsigned_varint

Values = dict[str, Any]
Reader = Callable[[Buffer, int, int], tuple[Values, int]]
"""(buffer, position, end) -> (values by field name, position after them). Never reads at or beyond `end`."""
Writer = Callable[[Mapping[str, Any]], bytes]

_Step = Callable[[Buffer, int, int, Values], int]
_NULLABLE = (Length.NULLABLE_STRING, Length.NULLABLE_BYTES)
_TEXT = (Length.STRING, Length.NULLABLE_STRING)


@cache
def reader(schema: Struct) -> Reader:
    """The reader of a struct. What it returns raises DecodeError on any bytes that the schema does not allow."""
    steps = list(_steps(schema))

    def read(buffer: Buffer, position: int, end: int) -> tuple[Values, int]:
        values: Values = {}
        for step in steps:
            position = step(buffer, position, end, values)
        return values, position

    return read


@cache
def writer(schema: Struct) -> Writer:
    """The writer of a struct: takes what the reader returns, gives its bytes in the shortest encoding."""

    def write(values: Mapping[str, Any]) -> bytes:
        parts = [_encode(field.type, values[field.name], schema.flexible) for field in schema.positional]
        if schema.flexible:
            parts.append(_encode_tags(schema, values))
        return b"".join(parts)

    return write


def read_whole(schema: Struct, buffer: Buffer) -> Values:
    """A buffer that holds one struct and nothing else."""
    values, position = reader(schema)(buffer, 0, len(buffer))
    if position != len(buffer):
        raise DecodeError(f"{len(buffer) - position} bytes left over after {schema.name}", position)
    return values


def _steps(schema: Struct) -> Iterator[_Step]:
    for fixed, run in groupby(schema.positional, lambda field: isinstance(field.type, Primitive)):
        fields = list(run)
        if fixed:
            yield _fixed_step(schema, fields)
        else:
            yield from (_step(schema, field) for field in fields)
    if schema.flexible:
        yield _tags_step(schema)


def _fixed_step(schema: Struct, fields: list[Field]) -> _Step:
    layout = struct.Struct(Struct(schema.name, tuple(fields)).fixed_format)
    names = tuple(field.name for field in fields)
    unpack, width = layout.unpack_from, layout.size

    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        if position + width > end:
            raise DecodeError(f"{schema.name} ends inside {', '.join(names)}", position)
        values.update(zip(names, unpack(buffer, position), strict=True))
        return position + width

    return step


def _step(schema: Struct, field: Field) -> _Step:
    name, where = field.name, f"{schema.name}.{field.name}"
    if isinstance(field.type, Struct):
        read = reader(field.type)

        def nested(buffer: Buffer, position: int, end: int, values: Values) -> int:
            values[name], position = read(buffer, position, end)
            return position

        return nested
    read_length = _compact_length if schema.flexible else _plain_length(field.type)
    if isinstance(field.type, Array):
        return _array_step(name, where, reader(field.type.element), read_length)
    return _length_step(name, where, field.type, read_length)


def _array_step(name: str, where: str, read_element: Reader, read_length: Callable[..., tuple[int, int]]) -> _Step:
    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        start = position
        count, position = read_length(buffer, position, end)
        if count < 0 or count > end - position:  # an element takes at least a byte
            raise DecodeError(f"{where} claims {count} elements", start)
        elements = values[name] = []
        for _ in range(count):
            element, position = read_element(buffer, position, end)
            elements.append(element)
        return position

    return step


def _length_step(name: str, where: str, kind: Length | Primitive, read_length: Callable[..., tuple[int, int]]) -> _Step:
    nullable, is_text = kind in _NULLABLE, kind in _TEXT

    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        start = position
        length, position = read_length(buffer, position, end)
        if length < 0:
            if not nullable or length != -1:
                raise DecodeError(f"{where} claims {length} bytes", start)
            values[name] = None
            return position
        if length > end - position:
            raise DecodeError(f"{where} claims {length} bytes where {end - position} are left", start)
        data = bytes(buffer[position : position + length])
        try:
            values[name] = data.decode("utf-8") if is_text else data
        except UnicodeDecodeError as error:
            raise DecodeError(f"{where} is not UTF-8", position + error.start) from None
        return position + length

    return step


def _compact_length(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    length, position = read_unsigned_varint(buffer, position, end)
    return length - 1, position


def _plain_length(kind: object) -> Callable[[Buffer, int, int], tuple[int, int]]:
    layout = struct.Struct(">h" if kind in _TEXT else ">i")

    def read_length(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
        if position + layout.size > end:
            raise DecodeError("input ends inside a length", position)
        return layout.unpack_from(buffer, position)[0], position + layout.size

    return read_length


def _tags_step(schema: Struct) -> _Step:
    known = {tag: (field.name, _tag_reader(field)) for tag, field in schema.tagged.items()}
    defaults = {field.name: field.default for field in schema.tagged.values()}

    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        values.update(defaults)
        if position < end and buffer[position] == 0:
            return position + 1
        count, position = read_unsigned_varint(buffer, position, end)
        last = -1
        for _ in range(count):
            start = position
            tag, position = read_unsigned_varint(buffer, position, end)
            size, position = read_unsigned_varint(buffer, position, end)
            if tag <= last:
                raise DecodeError(f"{schema.name} has tag {tag} after tag {last}", start)
            if size > end - position:
                raise DecodeError(f"{schema.name} tag {tag} claims {size} bytes where {end - position} are left", start)
            last, stop = tag, position + size
            if tag in known:
                name, read = known[tag]
                values[name], position = read(buffer, position, stop)
                if position != stop:
                    raise DecodeError(f"{schema.name}.{name} has bytes left over", position)
            else:
                values.setdefault(UNKNOWN_TAGS, []).append((tag, bytes(buffer[position:stop])))
                position = stop
        return position

    return step


def _tag_reader(field: Field) -> Callable[[Buffer, int, int], tuple[Any, int]]:
    # Encoded as in the flexible struct around it, without a tagged section of its own.
    holder = Struct(field.name, (), flexible=True)
    step = _fixed_step(holder, [field]) if isinstance(field.type, Primitive) else _step(holder, field)

    def read_one(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        values: Values = {}
        position = step(buffer, position, end, values)
        return values[field.name], position

    return read_one


def _encode(kind: Primitive | Length | Array | Struct, value: Any, flexible: bool) -> bytes:
    if isinstance(kind, Primitive):
        return struct.pack(">" + kind.code, value)
    if isinstance(kind, Struct):
        return writer(kind)(value)
    if isinstance(kind, Array):
        return _length(len(value), flexible, ">i") + b"".join(map(writer(kind.element), value))
    data = value.encode("utf-8") if isinstance(value, str) else value
    size = _length(-1 if data is None else len(data), flexible, ">h" if kind in _TEXT else ">i")
    return size if data is None else size + data


def _length(length: int, flexible: bool, plain: str) -> bytes:
    return unsigned_varint(length + 1) if flexible else struct.pack(plain, length)


def _encode_tags(schema: Struct, values: Mapping[str, Any]) -> bytes:
    present = {
        tag: _encode(field.type, values[field.name], schema.flexible)
        for tag, field in schema.tagged.items()
        if values[field.name] != field.default
    }
    present.update(values.get(UNKNOWN_TAGS, ()))
    sections = [unsigned_varint(tag) + unsigned_varint(len(present[tag])) + present[tag] for tag in sorted(present)]
    return unsigned_varint(len(sections)) + b"".join(sections)
