"""Keys and values as text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class BytesAs(StrEnum):
    """`--key` and `--value`."""

    TEXT = "text"
    JSON = "json"
    BASE64 = "base64"
    HEX = "hex"


def as_base64(data: bytes) -> str:
    """As the JSON of keys, values and headers has it unless something else is asked for."""
    return b64encode(data).decode("ascii")


def as_text(data: bytes) -> str:
    """UTF-8; bytes that are not are written as \\xHH."""
    return data.decode("utf-8", "backslashreplace")


class JsonText(str):
    """JSON that is not decoded, on one line: a number keeps its digits, an object its repeated keys."""

    __slots__ = ()


def _as_json(data: bytes) -> str:
    """The JSON itself; where it is not JSON in UTF-8, the text."""
    try:
        text = data.decode("utf-8")
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return as_text(data)
    text = text.strip(_WHITESPACE)
    return JsonText(text if text.isprintable() else "".join(map(_in_line, text)))


_WHITESPACE = " \t\n\r"
"""JSON has it between its tokens alone."""


def _refuse(name: str) -> object:
    """NaN and infinities are Python's, not JSON's."""
    raise ValueError(name)


def _in_line(character: str) -> str:
    if character.isprintable():
        return character
    return " " if character in _WHITESPACE else json.dumps(character)[1:-1]


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def json_line(item: Mapping[str, Any]) -> str:
    """An item as a line of JSON, in ASCII as `json.dumps` writes it; JSON in it is written as it is."""
    return "{" + ", ".join(f"{json.dumps(name)}: {_json_of(value)}" for name, value in item.items()) + "}\n"


def _json_of(value: object) -> str:
    if isinstance(value, JsonText):
        return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], value)
    return json.dumps(value)


SHOWN: dict[BytesAs, Callable[[bytes], str]] = {
    BytesAs.TEXT: as_text,
    BytesAs.JSON: _as_json,
    BytesAs.BASE64: as_base64,
    BytesAs.HEX: bytes.hex,
}
"""By what was asked for, what is made of the bytes; JSON is `JsonText`."""
