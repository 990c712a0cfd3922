"""A plugin for pytest: of the tests marked `exhaustive`, a run does one share. `TIEREDCTL_SHARE=2/4` names it.

Without the variable all are run. Which share a test belongs to follows from its id alone, so that the same words repeat
the same run, and all shares together are the whole set.
"""

from __future__ import annotations

import os
import zlib

import pytest

VARIABLE = "TIEREDCTL_SHARE"


class Share:
    """One of `parts` equal shares, counted from 1."""

    def __init__(self, text: str) -> None:
        """Raises ValueError unless `text` is like 2/4."""
        number, _, parts = text.partition("/")
        self.number, self.parts = int(number), int(parts)
        if not 1 <= self.number <= self.parts:
            raise ValueError(f"{text} is not a share: {VARIABLE}=2/4 is the second of four")

    def has(self, name: str) -> bool:
        """Whether a case belongs to it."""
        return zlib.crc32(name.encode()) % self.parts == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


def chosen_share() -> Share | None:
    """The share that this run does; None if it does all."""
    text = os.environ.get(VARIABLE)
    return Share(text) if text else None


def pytest_report_header() -> list[str]:
    share = chosen_share()
    return [f"exhaustive sets: share {share}; make exhaustive SHARE={share} repeats it"] if share else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = chosen_share()
    if share is None:
        return
    others = [item for item in items if item.get_closest_marker("exhaustive") and not share.has(item.nodeid)]
    if others:
        config.hook.pytest_deselected(items=others)
        left = set(others)
        items[:] = [item for item in items if item not in left]
