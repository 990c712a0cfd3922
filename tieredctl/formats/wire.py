"""Reads and writes one value at a time, by its schema.

A schema is turned into a closure once (`reader`, `writer`); runs of fixed-width fields become one `struct` call.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from itertools import groupby
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.schema import UNKNOWN_TAGS, Array, Field, FieldType, Length, NullableStruct, Primitive, Struct
from tieredctl.formats.varints import Buffer, read_unsigned_varint, unsigned_varint

Values = dict[str, Any]
Reader = Callable[[Buffer, int, int], tuple[Values, int]]
"""(buffer, position, end) -> (values by field name, position after them). Never reads at or beyond `end`."""
Writer = Callable[[Mapping[str, Any]], bytes]

_Step = Callable[[Buffer, int, int, Values], int]
_WritingStep = Callable[[Mapping[str, Any]], bytes]
_ValueReader = Callable[[Buffer, int, int], tuple[Any, int]]
_LengthReader = Callable[[Buffer, int, int], tuple[int, int]]
_NULLABLE = (Length.NULLABLE_STRING, Length.NULLABLE_BYTES)
_TEXT = (Length.STRING, Length.NULLABLE_STRING)
_NULL, _PRESENT = b"\xff", b"\x01"
_NO_TAGS = b"\x00"


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

    steps = list(_writing_steps(schema))

    def write(values: Mapping[str, Any]) -> bytes:
        return b"".join([step(values) for step in steps])

    return write


@cache
def whole_reader(schema: Struct) -> Callable[[Buffer], Values]:
    """The reader of a buffer that holds one struct and nothing else."""
    read = reader(schema)

    def read_whole(buffer: Buffer) -> Values:
        values, position = read(buffer, 0, len(buffer))
        if position != len(buffer):
            raise DecodeError(f"{len(buffer) - position} bytes left over after {schema.name}", position)
        return values

    return read_whole


def read_whole(schema: Struct, buffer: Buffer) -> Values:
    """A buffer that holds one struct and nothing else."""
    return whole_reader(schema)(buffer)


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
    name, read = field.name, _value_reader(field.type, f"{schema.name}.{field.name}", flexible=schema.flexible)

    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        values[name], position = read(buffer, position, end)
        return position

    return step


def _value_reader(kind: FieldType, where: str, *, flexible: bool) -> _ValueReader:
    """The reader of one value in a struct; `where` is its path, for error messages."""
    if isinstance(kind, Struct):
        return reader(kind)
    if isinstance(kind, NullableStruct):
        return _nullable_struct_reader(kind.struct, where)
    if isinstance(kind, Primitive):
        return _primitive_reader(kind, where)
    read_length = _compact_length if flexible else _plain_length(kind)
    if not isinstance(kind, Array):
        return _length_reader(kind, where, read_length)
    if isinstance(kind.element, Primitive):
        return _primitives_reader(kind, kind.element, where, read_length)
    return _array_reader(kind, where, _value_reader(kind.element, where, flexible=flexible), read_length)


def _primitive_reader(kind: Primitive, where: str) -> _ValueReader:
    layout = struct.Struct(">" + kind.code)

    def read(buffer: Buffer, position: int, end: int) -> tuple[Any, int]:
        if position + layout.size > end:
            raise DecodeError(f"input ends inside {where}", position)
        return layout.unpack_from(buffer, position)[0], position + layout.size

    return read


def _nullable_struct_reader(schema: Struct, where: str) -> _ValueReader:
    read_struct = reader(schema)
    read_presence = _primitive_reader(Primitive.INT8, where)

    def read(buffer: Buffer, position: int, end: int) -> tuple[Values | None, int]:
        presence, position = read_presence(buffer, position, end)
        return (None, position) if presence < 0 else read_struct(buffer, position, end)

    return read


def _array_reader(kind: Array, where: str, read_element: _ValueReader, read_length: _LengthReader) -> _ValueReader:
    def read(buffer: Buffer, position: int, end: int) -> tuple[list[Any] | None, int]:
        start = position
        count, position = read_length(buffer, position, end)
        if count == -1 and kind.nullable:
            return None, position
        if count < 0 or count > end - position:  # an element takes at least a byte
            raise DecodeError(f"{where} claims {count} elements", start)
        elements = []
        for _ in range(count):
            element, position = read_element(buffer, position, end)
            elements.append(element)
        return elements, position

    return read


def _primitives_reader(kind: Array, element: Primitive, where: str, read_length: _LengthReader) -> _ValueReader:
    width = element.width
    # The struct module's count before the code; of `16s` it would be another length.
    repeated = ">" + "{}" + element.code if element is not Primitive.UUID else None

    def read(buffer: Buffer, position: int, end: int) -> tuple[list[Any] | None, int]:
        start = position
        count, position = read_length(buffer, position, end)
        if count == 0:
            return [], position
        if count == -1 and kind.nullable:
            return None, position
        stop = position + count * width
        if count < 0 or stop > end:
            raise DecodeError(f"{where} claims {count} elements", start)
        if repeated is None:
            return [bytes(buffer[at : at + width]) for at in range(position, stop, width)], stop
        return list(struct.unpack_from(repeated.format(count), buffer, position)), stop

    return read


def _length_reader(kind: Length, where: str, read_length: _LengthReader) -> _ValueReader:
    nullable, is_text = kind in _NULLABLE, kind in _TEXT

    def read(buffer: Buffer, position: int, end: int) -> tuple[str | bytes | None, int]:
        start = position
        length, position = read_length(buffer, position, end)
        if length < 0:
            if not nullable or length != -1:
                raise DecodeError(f"{where} claims {length} bytes", start)
            return None, position
        if length > end - position:
            raise DecodeError(f"{where} claims {length} bytes where {end - position} are left", start)
        data = bytes(buffer[position : position + length])
        try:
            return data.decode("utf-8") if is_text else data, position + length
        except UnicodeDecodeError as error:
            raise DecodeError(f"{where} is not UTF-8", position + error.start) from None

    return read


def _compact_length(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    length, position = read_unsigned_varint(buffer, position, end)
    return length - 1, position


def _plain_length(kind: object) -> _LengthReader:
    layout = struct.Struct(">h" if kind in _TEXT else ">i")

    def read_length(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
        if position + layout.size > end:
            raise DecodeError("input ends inside a length", position)
        return layout.unpack_from(buffer, position)[0], position + layout.size

    return read_length


def _tags_step(schema: Struct) -> _Step:
    tagged_readers = {
        tag: (field.name, _value_reader(field.type, f"{schema.name}.{field.name}", flexible=True))
        for tag, field in schema.tagged.items()
    }
    defaults = {field.name: field.default for field in schema.tagged.values()}
    shared = [name for name, default in defaults.items() if isinstance(default, list | dict)]

    def step(buffer: Buffer, position: int, end: int, values: Values) -> int:
        values.update(defaults)
        for name in shared:
            values[name] = deepcopy(defaults[name])
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
            if tag in tagged_readers:
                name, read = tagged_readers[tag]
                values[name], position = read(buffer, position, stop)
                if position != stop:
                    raise DecodeError(f"{schema.name}.{name} has bytes left over", position)
            else:
                values.setdefault(UNKNOWN_TAGS, []).append((tag, bytes(buffer[position:stop])))
                position = stop
        return position

    return step


def _writing_steps(schema: Struct) -> Iterator[_WritingStep]:
    for is_fixed, fields in groupby(schema.positional, lambda field: isinstance(field.type, Primitive)):
        if is_fixed:
            yield _fixed_writing_step(schema, list(fields))
        else:
            yield from (_writing_step(schema, field) for field in fields)
    if schema.flexible:
        yield _tags_writing_step(schema)


def _fixed_writing_step(schema: Struct, fields: list[Field]) -> _WritingStep:
    pack = struct.Struct(Struct(schema.name, tuple(fields)).fixed_format).pack
    names = [field.name for field in fields]
    return lambda values: pack(*[values[name] for name in names])


def _writing_step(schema: Struct, field: Field) -> _WritingStep:
    name, kind, flexible = field.name, field.type, schema.flexible
    return lambda values: _encode(kind, values[name], flexible)


def _tags_writing_step(schema: Struct) -> _WritingStep:
    if schema.tagged:
        return lambda values: _encode_tags(schema, values)
    return lambda values: _encode_tags(schema, values) if UNKNOWN_TAGS in values else _NO_TAGS


def _encode(kind: FieldType, value: Any, flexible: bool) -> bytes:
    if isinstance(kind, Primitive):
        return struct.pack(">" + kind.code, value)
    if isinstance(kind, Struct):
        return writer(kind)(value)
    if isinstance(kind, NullableStruct):
        return _NULL if value is None else _PRESENT + writer(kind.struct)(value)
    if isinstance(kind, Array):
        if value is None:
            return _length(-1, flexible, ">i")
        size = _length(len(value), flexible, ">i")
        if isinstance(kind.element, Struct):
            return size + b"".join(map(writer(kind.element), value))
        return size + b"".join(_encode(kind.element, one, flexible) for one in value)
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
