"""Times, durations and numbers of bytes, as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tieredctl.errors import ErrorCode, TieredctlError

# Of more digits nothing that is meant here has need, and Python refuses to read a number of thousands.
_TIME_MS = re.compile(r"[0-9]{1,18}")
_DURATION = re.compile(r"([0-9]{1,18})(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_BYTE_UNITS: dict[str, int] = {"": 1, "B": 1} | {
    f"{letter}{unit}": base**power
    for power, letter in enumerate("KMGTP", 1)
    for unit, base in (("B", 1000), ("IB", 1024))
}
_BYTES = re.compile(r"([0-9]{1,18})((?:[KMGTP]i?)?B|)", re.IGNORECASE)


def time_ms(text: str) -> int:
    """Milliseconds since the epoch, or ISO 8601 (UTC where it names no zone), in milliseconds."""
    if _TIME_MS.fullmatch(text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "Write it as 2026-11-21T10:30:00Z, or as milliseconds since the epoch."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a time.", hint=hint) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(text: str) -> int:
    """`90s`, `15m`, `1h`, `7d` in milliseconds; `0` is the same in all units."""
    if text == "0":
        return 0
    match = _DURATION.fullmatch(text)
    if not match:
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a duration.", hint="Write it as 90s, 15m, 1h or 7d.")
    return int(match[1]) * _UNITS_MS[match[2]]


def duration_text(milliseconds: int) -> str:
    """A duration for people, in the unit of which there are at least two: `36 h`, `7 d`."""
    if 0 <= milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def size_text(size: int) -> str:
    """Bytes for people: `1010.4 KiB`, and less than a KiB to the byte. Sizes that are compared, and those to be typed,
    are given to the byte instead."""
    if abs(size) < 1024:
        return f"{size} B"
    scaled = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        scaled /= 1024
        if abs(scaled) < 1023.95:
            return f"{scaled:.1f} {unit}"
    return f"{scaled / 1024:.1f} EiB"


def age_text(milliseconds: int) -> str:
    """An age for people, in the unit of which there are at least two: `15h`, `90min`."""
    seconds = abs(milliseconds) / 1000
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f}{unit}"
    return f"{seconds // 1:.0f}s"


def byte_count(text: str) -> int:
    """`1048576`, `64MiB`, `12TB` in bytes."""
    match = _BYTES.fullmatch(text)
    if not match:
        raise TieredctlError(
            ErrorCode.USAGE, f"{text!r} is not a number of bytes.", hint="Write it as 1048576, 64MiB or 12TB."
        )
    return int(match[1]) * _BYTE_UNITS[match[2].upper()]
