"""The units that settings have in their names, and values moved from one to another."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.formats.kafka_settings import java_integer

_SIZES = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES = {
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), 1),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("minute", "minutes"), 60_000),
    **dict.fromkeys(("hour", "hours"), 3_600_000),
    **dict.fromkeys(("day", "days"), 86_400_000),
}
_SCALES: tuple[Mapping[str, int], ...] = (_SIZES, _TIMES)


def in_unit_of(meant: str, name: str, stated: str) -> str | None:
    """A value that was stated under one name, as it is under the name that was meant; None where that cannot be told,
    because one of the names has a unit that the other does not have."""
    for scale in _SCALES:
        own, wanted = _unit(name, scale), _unit(meant, scale)
        if own == wanted:
            continue
        number = java_integer(stated)
        if own is None or wanted is None or number is None:
            return None
        whole, rest = divmod(number * own, wanted)
        return None if rest or number < 0 else str(whole)
    return stated


def _unit(name: str, scale: Mapping[str, int]) -> int | None:
    """What the last word of a name that is a unit is worth."""
    return next((scale[word] for word in reversed(name.lower().split(".")) if word in scale), None)
