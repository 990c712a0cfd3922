"""Against what ages are taken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """When it is, and from which age on something that is under way is stuck; in ms."""

    now_ms: int
    older_than_ms: int
