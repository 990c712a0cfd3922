"""Against what ages are taken."""

from __future__ import annotations

from dataclasses import dataclass

MOST_AHEAD_MS = 3_600_000
"""So far may another clock be ahead of this one. What is dated later has no time that says how old it is."""


@dataclass(frozen=True, slots=True)
class Clock:
    """When it is, and from which age on something that is under way is stuck; in ms."""

    now_ms: int
    older_than_ms: int


def is_after(timestamp_ms: int, now_ms: int) -> bool:
    """Whether something is dated further after now than clocks may differ: its age is unknown."""
    return timestamp_ms > now_ms + MOST_AHEAD_MS


def is_dated(timestamp_ms: int, now_ms: int) -> bool:
    """Whether this may be when a record was made: producers may set no timestamp, or one in microseconds."""
    return timestamp_ms >= 0 and not is_after(timestamp_ms, now_ms)


def has_passed(span_ms: int, since_ms: int, now_ms: int) -> bool:
    """Whether so long has passed by a clock; also where it was set back meanwhile, and nobody knows how long it was."""
    return not 0 <= now_ms - since_ms < span_ms
