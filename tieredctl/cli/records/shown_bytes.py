"""Keys and values as text."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from enum import StrEnum


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


def _as_json(data: bytes) -> object:
    """What the JSON says; where it is not JSON, the text."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return as_text(data)


SHOWN: dict[BytesAs, Callable[[bytes], object]] = {
    BytesAs.TEXT: as_text,
    BytesAs.JSON: _as_json,
    BytesAs.BASE64: as_base64,
    BytesAs.HEX: bytes.hex,
}
"""By what was asked for, what is made of the bytes."""
