"""Structs straight to the text of their JSON, in functions that are compiled from the schema: `kafka_json.py`, in bulk.

Flexible structs only. What is rare, an unknown tagged field, a length above 16 kB, damage, is left to `wire.py` and
`kafka_json.py`: the function raises one of `RARE`. So it checks no bound but the last: every step goes forward, so one
that went too far does not end where the struct has to.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count, groupby
from json.encoder import encode_basestring_ascii
from typing import Any, Generic, TypeVar, cast

from tieredctl.formats.kafka_json import base64_text, json_name, json_value
from tieredctl.formats.schema import Array, Field, FieldType, Length, NullableStruct, Primitive, Struct
from tieredctl.model.ids import uuid_text

RARE = (IndexError, ValueError, struct.error)
JsonWriter = Callable[[bytes, int], str]
"""(value, where in it the struct begins) -> what `json.dumps` makes of `json_document`. The struct ends where the value
does. Raises one of `RARE`."""

_KEPT = 1 << 13
_WHOLE_NUMBERS = frozenset(Primitive) - {Primitive.BOOL, Primitive.FLOAT64, Primitive.UUID}
_LONG = 127
"""Above it, a byte of a varint is not the last."""


@cache
def json_writer(schema: Struct) -> JsonWriter:
    """The writer of a flexible struct. Raises TypeError for another."""
    source = _Source()
    source.define("write", schema, "if p != len(b): raise ValueError", "return text")
    exec(compile("\n".join(source.lines), schema.name, "exec"), source.names)
    return cast("JsonWriter", source.names["write"])


_Key = TypeVar("_Key")


class _Texts(dict[_Key, str], Generic[_Key]):
    """Texts that are needed again and again: those of nodes and directories, and of lists of them."""

    def __init__(self, text_of: Callable[[_Key], str]) -> None:
        super().__init__()
        self._text_of = text_of

    def __missing__(self, key: _Key) -> str:
        if len(self) >= _KEPT:
            self.clear()
        text = self[key] = self._text_of(key)
        return text


def _primitive_text(kind: Primitive, value: Any) -> str:
    return json.dumps(json_value(kind, value))


@cache
def _array_texts(kind: Primitive) -> _Texts[bytes]:
    """The texts of arrays of primitives, by their bytes."""
    layouts: dict[int, struct.Struct] = {}
    is_printed_alike = kind in _WHOLE_NUMBERS

    def text_of(data: bytes) -> str:
        layout = layouts.get(len(data))
        if layout is None:
            layout = layouts[len(data)] = struct.Struct(f">{len(data) // kind.width}{kind.code}")
        values = list(layout.unpack(data))
        return str(values) if is_printed_alike else json.dumps([json_value(kind, value) for value in values])

    return _Texts(text_of)


_UUID_TEXTS: _Texts[bytes] = _Texts(lambda value: f'"{uuid_text(value)}"')


class _Source:
    """Python source, and what it refers to by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "quoted": encode_basestring_ascii,
            "base64": lambda data: f'"{base64_text(data)}"',
            "uuids": _UUID_TEXTS,
            "floats": lambda value: _primitive_text(Primitive.FLOAT64, value),
        }
        self._numbers = count()

    def define(self, name: str, schema: Struct, *end: str) -> None:
        """Defines a function of a buffer `b` and a position `p`, which it moves to the struct's end, with the struct's
        `text`; `end` are its last lines."""
        if not schema.flexible:
            raise TypeError(f"{schema.name} is not flexible")
        pieces: dict[str, str] = {}
        body = [line for step in self._positional(schema, pieces) for line in step]
        body += self._tagged(schema, pieces)
        # A tagged field may be absent, so a comma comes before each field.
        fields = "".join(
            f"{{{pieces[field.name]}}}" if field.tag is not None else f"{_piece(field)}{{{pieces[field.name]}}}"
            for field in schema.fields
        )
        if schema.fields and schema.fields[0].tag is None:
            body.append(f"text = f'{{{{{fields.removeprefix(', ')}}}}}'")
        else:
            body += [f"text = f'{fields}'", "text = '{' + text[2:] + '}'"]
        self.lines += [f"def {name}(b, p):", *(f"    {line}" for line in [*body, *end])]

    def _function_of(self, schema: Struct) -> str:
        """The name of a function for a struct within another."""
        name = self._name("struct")
        self.define(name, schema, "return text, p")
        return name

    def _positional(self, schema: Struct, pieces: dict[str, str]) -> Iterator[list[str]]:
        for fixed, run in groupby(schema.positional, lambda field: isinstance(field.type, Primitive)):
            fields = list(run)
            if fixed:
                variables = [self._name("v") for _ in fields]
                layout = struct.Struct(Struct(schema.name, tuple(fields)).fixed_format)
                unpack = self._name("unpack", layout.unpack_from)
                yield [f"{', '.join(variables)}, = {unpack}(b, p); p += {layout.size}"]
                for field, variable in zip(fields, variables, strict=True):
                    pieces[field.name] = _expression(cast("Primitive", field.type), variable)
            else:
                for field in fields:
                    lines, pieces[field.name] = self._value(field.type)
                    yield lines

    def _tagged(self, schema: Struct, pieces: dict[str, str]) -> list[str]:
        lines: list[str] = []
        branches: list[str] = []
        for tag, field in schema.tagged.items():
            variable = pieces[field.name] = self._name("t")
            value, text = self._value(field.type)
            default = repr(json.dumps(json_value(field.type, field.default)))
            piece = f"f'{_piece(field)}{{text}}'"
            branches += [f"{'elif' if branches else 'if'} t == {tag}:", *(f"    {line}" for line in value)]
            branches += [f"    text = f'{{{text}}}'", f"    {variable} = '' if text == {default} else {piece}"]
            lines.append(f"{variable} = ''")
        lines += ["n = b[p]; p += 1"]
        if not branches:
            return [*lines, "if n: raise ValueError"]
        lines += ["if n:", "    last = -1", "    for _ in range(n):", "        t = b[p]; p += 1"]
        lines += [f"        if t <= last or t > {_LONG}: raise ValueError", "        last = t"]
        lines += [f"        {line}" for line in [*_LENGTH, "stop = p + n", *branches]]
        return [*lines, "        else: raise ValueError", "        if p != stop: raise ValueError"]

    def _value(self, kind: FieldType) -> tuple[list[str], str]:
        """Lines that read a value, and an expression for its text."""
        if isinstance(kind, Primitive):
            variable = self._name("v")
            layout = struct.Struct(">" + kind.code)
            unpack = self._name("unpack", layout.unpack_from)
            return [f"{variable}, = {unpack}(b, p); p += {layout.size}"], _expression(kind, variable)
        variable = self._name("s")
        if isinstance(kind, Struct):
            return [f"{variable}, p = {self._function_of(kind)}(b, p)"], variable
        if isinstance(kind, NullableStruct):
            function = self._function_of(kind.struct)
            present = f"{variable}, p = {function}(b, p + 1)"
            return [f"if b[p] > {_LONG}: {variable} = 'null'; p += 1", f"else: {present}"], variable
        null = f"{variable} = 'null'" if _is_nullable(kind) else "raise ValueError"
        read = self._array(kind, variable) if isinstance(kind, Array) else _text(kind, variable)
        length = _COUNT if isinstance(kind, Array) else _LENGTH
        return [*length, f"if n == 0: {null}", "else:", *(f"    {line}" for line in read)], variable

    def _array(self, kind: Array, variable: str) -> list[str]:
        """The array's text, of which n is the count plus 1."""
        if isinstance(kind.element, Primitive):
            text = "'[' + ', '.join([uuids[b[i:i + 16]] for i in range(p, q, 16)]) + ']'"
            if kind.element is not Primitive.UUID:
                text = f"{self._name('texts', _array_texts(kind.element))}[b[p:q]]"
            some = f"q = p + (n - 1) * {kind.element.width}; {variable} = {text}; p = q"
            return [f"if n == 1: {variable} = '[]'", f"else: {some}"]
        element, text = self._value(kind.element)
        items, item = self._name("items"), self._name("item")
        lines = [f"{items} = []", f"for {item} in range(n - 1):", *(f"    {line}" for line in element)]
        return [*lines, f"    {items}.append(f'{{{text}}}')", f"{variable} = '[' + ', '.join({items}) + ']'"]

    def _name(self, prefix: str, value: object = None) -> str:
        name = f"{prefix}{next(self._numbers)}"
        if value is not None:
            self.names[name] = value
        return name


# A varint of one byte, into n, and of one or two.
_COUNT = ["n = b[p]; p += 1", f"if n > {_LONG}: raise ValueError"]
_LENGTH = [
    "n = b[p]; p += 1",
    f"if n > {_LONG}:",
    f"    n = n & {_LONG} | b[p] << 7; p += 1",
    "    if n > 16383: raise ValueError",
]


def _piece(field: Field) -> str:
    """The name of a field within an f-string, with the comma before it."""
    return f', "{json_name(field.name)}": '


def _text(kind: Length, variable: str) -> list[str]:
    """The text of a string or of bytes, of which n is the length plus 1."""
    is_text = kind in (Length.STRING, Length.NULLABLE_STRING)
    text = "quoted(b[p:q].decode())" if is_text else "base64(b[p:q])"
    return ["q = p + n - 1", f"{variable} = {text}; p = q"]


def _expression(kind: Primitive, variable: str) -> str:
    """The text of a primitive, within an f-string."""
    if kind is Primitive.UUID:
        return f"uuids[{variable}]"
    if kind is Primitive.BOOL:
        return f'"true" if {variable} else "false"'
    return f"floats({variable})" if kind is Primitive.FLOAT64 else variable


def _is_nullable(kind: Length | Array) -> bool:
    return kind.nullable if isinstance(kind, Array) else kind in (Length.NULLABLE_STRING, Length.NULLABLE_BYTES)
