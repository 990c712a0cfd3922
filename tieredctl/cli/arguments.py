"""Turns what was typed into values: times, durations, NAME=VALUE pairs, TOPIC:PARTITION."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.ops.event_stream import AsOf

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"^(\d+)(ms|s|m|h|d)$")


def duration_ms(text: str) -> int:
    """`90s`, `15m`, `1h`, `7d` in milliseconds."""
    match = _DURATION.match(text)
    if not match:
        raise TieredctlError("usage", f"{text!r} is not a duration.", hint="Write it as 90s, 15m, 1h or 7d.")
    return int(match[1]) * _UNITS_MS[match[2]]


def time_ms(text: str) -> int:
    """Milliseconds since the epoch, or ISO 8601 (UTC where it names no zone), in milliseconds."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "Write it as 2026-11-21T10:30:00Z, or as milliseconds since the epoch."
        raise TieredctlError("usage", f"{text!r} is not a time.", hint=hint) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def now_ms(text: str | None) -> int:
    """What `--now` says, else the clock."""
    return time_ms(text) if text is not None else time.time_ns() // 1_000_000


def as_of(text: str | None) -> AsOf | None:
    """A time, or a file of metadata offsets in the form of Kafka's _rlmm_committed_offsets."""
    if text is None:
        return None
    path = Path(text)
    if not path.is_file():
        return AsOf(timestamp_ms=time_ms(text))
    from tieredctl.formats.committed_offsets import read_committed_offsets

    try:
        offsets = read_committed_offsets(path.read_bytes()).offsets
    except DecodeError as error:
        hint = "One `<metadata partition> <offset>` a line, as in _rlmm_committed_offsets."
        raise TieredctlError("usage", f"{path} is no file of metadata offsets: {error.message}.", hint=hint) from None
    return AsOf(offsets=offsets)


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE options as a dictionary."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise TieredctlError("usage", f"{option} {text!r} is not NAME=VALUE.")
        found[name] = value
    return found


def topic_partition(text: str) -> tuple[str, int]:
    """TOPIC:PARTITION; also TOPIC-PARTITION as Kafka prints it, where there is no colon."""
    topic, separator, partition = text.rpartition(":" if ":" in text else "-")
    if not separator or not topic or not (partition.isascii() and partition.isdigit()):
        raise TieredctlError("usage", f"{text!r} is not TOPIC:PARTITION.", hint="For example orders:3.")
    return topic, int(partition)
