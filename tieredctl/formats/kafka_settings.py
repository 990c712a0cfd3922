"""Kafka's settings: names, types, defaults and limits in each line of releases, and the levels of metadata.version.

`kafka_settings.json` holds what Kafka's own ConfigDefs and MetadataVersion say since 3.6; `make kafka-messages` writes
it. A text becomes a value as in Kafka's ConfigDef.parseType, and has the limits of its validators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pkgutil import get_data
from typing import Any

DATA = "kafka_settings.json"
Line = tuple[int, int]
"""A line of releases, such as (4, 4)."""

_JAVAS_BLANKS = "".join(map(chr, range(33)))
"""What Java's String.trim removes."""
_WHOLE = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:NaN|Infinity))[fFdD]?", re.ASCII)
_HEXADECIMAL = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?", re.ASCII)
_SEPARATOR = re.compile(r"\s*,\s*", re.ASCII)
_BITS = {"SHORT": 15, "INT": 31, "LONG": 63}
_LISTENER = "listener.name."


class SettingKind(StrEnum):
    """Whom settings belong to; those of the metadata topic's manager are named without its prefix."""

    BROKER = "broker"
    TOPIC = "topic"
    METADATA_TOPIC = "metadataTopic"
    CLIENT = "client"
    """Only those with a few values to choose from."""


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """A setting in some releases. `type` is Kafka's, and so are the limits; `default` is a text, None without one."""

    type: str
    default: str | None = None
    least: float | None = None
    greatest: float | None = None
    besides: int | None = None
    one_of: Sequence[str] = ()
    any_case: bool = False
    not_empty: bool = False
    no_blanks: bool = False

    @property
    def demand(self) -> str:
        """What a value has to be, in words."""
        if self.type == "BOOLEAN":
            return "true or false"
        if self.type in _BITS:
            least, greatest = self._range()
            also = "" if self.besides is None else f", or {self.besides}"
            return f"a whole number from {least} to {greatest}{also}"
        if self.type == "DOUBLE":
            limits = [f"from {self.least:g}"] * (self.least is not None)
            limits += [f"to {self.greatest:g}"] * (self.greatest is not None)
            return " ".join(["a number", *limits])
        kind = "a list" if self.type == "LIST" else "a text"
        choices = f" of {', '.join(self.one_of)}" if self.one_of else ""
        if self.type != "LIST" and choices:
            return f"one{choices}"
        return f"{kind}{choices}{', not empty' if self.not_empty else ''}"

    @property
    def choices(self) -> Sequence[str]:
        """All values that there are, where they are few."""
        return ("true", "false") if self.type == "BOOLEAN" else self.one_of

    def allows(self, stated: str) -> bool:
        """Whether Kafka takes a text as this setting's value. A class's name is taken: only a broker can tell."""
        text = stated.strip(_JAVAS_BLANKS)
        return _CHECKS.get(self.type, _any)(self, text)

    def _range(self) -> tuple[int, int]:
        least, greatest = -(1 << _BITS[self.type]), (1 << _BITS[self.type]) - 1
        return least if self.least is None else int(self.least), greatest if self.greatest is None else int(
            self.greatest
        )

    def _allows_truth(self, text: str) -> bool:
        return text.lower() in ("true", "false")

    def _allows_whole(self, text: str) -> bool:
        number = java_integer(text)
        if number is None:
            return False
        least, greatest = self._range()
        return least <= number <= greatest or number == self.besides

    def _allows_double(self, text: str) -> bool:
        number = java_double(text)
        if number is None:
            return False
        # as Java compares: nothing is less or greater than NaN
        return not (self.least is not None and number < self.least) and not (
            self.greatest is not None and number > self.greatest
        )

    def _allows_text(self, text: str) -> bool:
        if self.not_empty and not text:
            return False
        comparable = text.upper() if self.any_case else text
        return not self.one_of or comparable in self.one_of

    def _allows_list(self, text: str) -> bool:
        entries = _SEPARATOR.split(text) if text else []
        if not entries:
            return not self.not_empty
        if self.no_blanks and "" in entries:
            return False
        return not self.one_of or set(entries) <= set(self.one_of)


def _any(_definition: SettingDefinition, _text: str) -> bool:
    return True


_CHECKS: Mapping[str, Callable[[SettingDefinition, str], bool]] = {
    "BOOLEAN": SettingDefinition._allows_truth,
    "DOUBLE": SettingDefinition._allows_double,
    "LIST": SettingDefinition._allows_list,
    "STRING": SettingDefinition._allows_text,
    **dict.fromkeys(_BITS, SettingDefinition._allows_whole),
}


def java_integer(text: str) -> int | None:
    """A whole number as Java's parseLong reads it, of any size; None where the text is not one."""
    text = text.strip(_JAVAS_BLANKS)
    return int(text) if _WHOLE.fullmatch(text) else None


def java_double(text: str) -> float | None:
    """A number as Java's parseDouble reads it; None where the text is not one."""
    text = text.strip(_JAVAS_BLANKS)
    if decimal := _DECIMAL.fullmatch(text):
        return float(decimal[1])
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    return None if hexadecimal is None else float.fromhex(hexadecimal[1])


def setting_names(kind: SettingKind) -> frozenset[str]:
    """All names that a release since 3.6 has."""
    return frozenset(_data()[kind])


def definition(kind: SettingKind, name: str, line: Line | None = None) -> SettingDefinition | None:
    """A setting as a line of releases has it; without a line, or where that lacks it, as the newest that has it. None
    where no release has it. A line before the first or after the last that is known is taken for that one."""
    stretches = _stretches(kind, name)
    of_line = None if line is None else _of_line(stretches, line)
    return of_line or next((one for _, one in reversed(stretches) if one is not None), None)


def is_allowed(kind: SettingKind, name: str, stated: str, line: Line | None = None) -> bool:
    """Whether Kafka takes a text for a setting; without a line, whether some release does. So are unknown settings."""
    stretches = _stretches(kind, name)
    of_line = None if line is None else _of_line(stretches, line)
    definitions = [of_line] if of_line else [one for _, one in stretches if one is not None]
    return not definitions or any(one.allows(stated) for one in definitions)


def is_in_line(kind: SettingKind, name: str, line: Line) -> bool:
    """Whether a line of releases has a setting."""
    return _of_line(_stretches(kind, name), line) is not None


def lines_of(kind: SettingKind, name: str) -> tuple[Line, Line] | None:
    """The first and the last line that have a setting; None where no release has it. (3, 6) may stand for an earlier
    one."""
    lines = [line for line in _lines() if is_in_line(kind, name, line)]
    return (lines[0], lines[-1]) if lines else None


def is_dynamic_broker_setting(name: str) -> bool:
    """Whether a metadata log may have a broker's setting of this name, for all listeners or for one."""
    dynamic_names = _dynamic()
    if name.startswith(_LISTENER):
        rest = name.removeprefix(_LISTENER).split(".")
        return any(".".join(rest[start:]) in dynamic_names for start in range(1, len(rest)))
    return name in dynamic_names


def metadata_version_line(level: int) -> Line | None:
    """The line of releases that a level of the feature metadata.version came with; None where no release has it."""
    return next(
        (_numbers(line) for line, (first, last) in _data()["metadataVersions"].items() if first <= level <= last), None
    )


@cache
def _stretches(kind: SettingKind, name: str) -> list[tuple[Line, SettingDefinition | None]]:
    """Since which line the setting is like this; None where it is gone."""
    history = _data()[kind].get(name, ())
    return [(_lines()[index], _defined(*stated) if stated else None) for index, *stated in history]


def _of_line(stretches: Sequence[tuple[Line, SettingDefinition | None]], line: Line) -> SettingDefinition | None:
    line = max(line, _lines()[0])
    return next((one for first, one in reversed(stretches) if first <= line), None)


def _defined(kind: str, default: str | None, demand: Mapping[str, Any] | None = None) -> SettingDefinition:
    limits = demand or {}
    return SettingDefinition(
        kind,
        default,
        least=limits.get("least"),
        greatest=limits.get("greatest"),
        besides=limits.get("besides"),
        one_of=tuple(limits.get("oneOf", ())),
        any_case=limits.get("anyCase", False),
        not_empty=limits.get("notEmpty", False),
        no_blanks=limits.get("noBlanks", False),
    )


@cache
def _lines() -> Sequence[Line]:
    return [_numbers(line) for line in _data()["lines"]]


@cache
def _dynamic() -> frozenset[str]:
    return frozenset(_data()["dynamicBroker"])


def _numbers(line: str) -> Line:
    major, minor = line.split(".")
    return int(major), int(minor)


@cache
def _data() -> Mapping[str, Any]:
    content = get_data(__package__, DATA)
    assert content is not None
    data: Mapping[str, Any] = json.loads(content)
    return data
