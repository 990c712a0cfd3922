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


def is_dated(timestamp_ms: int, now_ms: int) -> bool:
    """Whether this may be when a record was made: producers may set no timestamp, or one in microseconds."""
    return 0 <= timestamp_ms <= now_ms + MOST_AHEAD_MS
