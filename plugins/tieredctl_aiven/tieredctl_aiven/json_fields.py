"""Reads fields of JSON that may be damaged or hostile: anything invalid raises DecodeError."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Any

from tieredctl.errors import DecodeError

GREATEST_INT = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class JsonFields:
    """The fields of one JSON object; `where` names it in messages."""

    values: dict[str, Any]
    where: str
    text: str

    @classmethod
    def parse(cls, data: bytes, where: str) -> JsonFields:
        """A whole document in UTF-8, which must be an object."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"{where} is not UTF-8", error.start) from None
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise DecodeError(f"{where} is not JSON: {error.msg}", len(text[: error.pos].encode())) from None
        except (ValueError, RecursionError):  # a number or a nesting that Python rejects
            raise DecodeError(f"{where} is not JSON that a storage manager writes", 0) from None
        if not isinstance(values, dict):
            raise DecodeError(f"{where} is not an object", 0)
        return cls(values, where, text)

    def has(self, name: str) -> bool:
        """Whether there is such a field, and it is not null."""
        return self.values.get(name) is not None

    def fields(self, name: str) -> JsonFields:
        return JsonFields(self._value(name, dict, "an object"), f"{self.where}.{name}", self.text)

    def string(self, name: str) -> str:
        value: str = self._value(name, str, "a text")
        return value

    def flag(self, name: str) -> bool:
        value: bool = self._value(name, bool, "true or false")
        return value

    def number(self, name: str, least: int = 0, greatest: int = GREATEST_INT) -> int:
        """A whole number, by default within Java's int."""
        value = self._value(name, int, "a whole number")
        if isinstance(value, bool) or not least <= value <= greatest:
            raise self.error(name, f"cannot be {value}")
        return int(value)

    def base64(self, name: str) -> bytes:
        return self.decoded(name, self.string(name))

    def decoded(self, name: str, text: str) -> bytes:
        """The bytes of a field in base64."""
        try:
            return b64decode(text, validate=True)
        except (Base64Error, ValueError):
            raise self.error(name, "is not base64") from None

    def error(self, name: str, what: str) -> DecodeError:
        """The error for a wrong field, at the position of its name."""
        return DecodeError(f"{self.where}.{name} {what}", len(self.text[: self._place(name)].encode()))

    def _place(self, name: str) -> int:
        return max(self.text.find(f'"{name}"'), 0)

    def _value(self, name: str, kind: type, meant: str) -> Any:
        if name not in self.values:
            raise DecodeError(f"{self.where} has no {name}", 0)
        value = self.values[name]
        if not isinstance(value, kind):
            raise self.error(name, f"is not {meant}")
        return value
