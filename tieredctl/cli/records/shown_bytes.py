"""Keys and values as text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tieredctl.records.avro_values import AvroValues


class BytesAs(StrEnum):
    """`--key` and `--value`."""

    TEXT = "text"
    JSON = "json"
    BASE64 = "base64"
    HEX = "hex"
    AVRO = "avro"


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


Show = Callable[[bytes], str]
_SHOWN: dict[BytesAs, Show] = {
    BytesAs.TEXT: as_text,
    BytesAs.JSON: _as_json,
    BytesAs.BASE64: as_base64,
    BytesAs.HEX: bytes.hex,
}
"""By what was asked for, what is made of the bytes; JSON is `JsonText`."""


@dataclass(frozen=True, slots=True)
class ShownBytes:
    """How keys and values are asked for; None as is usual where they are shown."""

    key: BytesAs | None = None
    value: BytesAs | None = None
    avro: AvroValues | None = None
    """What decodes Avro, where that is asked for."""

    @property
    def are_json(self) -> bool:
        """Whether some are `JsonText`."""
        return bool({self.key, self.value} & {BytesAs.JSON, BytesAs.AVRO})

    @property
    def undecoded(self) -> int:
        """How many keys and values could not be decoded until now."""
        return 0 if self.avro is None else self.avro.undecoded

    def show(self, kind: BytesAs) -> Show:
        """What makes text of bytes."""
        return self._as_avro if kind is BytesAs.AVRO else _SHOWN[kind]

    def _as_avro(self, data: bytes) -> str:
        assert self.avro is not None
        return JsonText(json.dumps(self.avro.document(data)))
