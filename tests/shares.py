"""A plugin for pytest: of what is exhaustive, a run does one share. `TIEREDCTL_SHARE=2/8` names it.

Of the tests marked `exhaustive` only those of the share run, and which share one belongs to follows from its id alone,
or from the name of the set that its mark gives: tests that need each other, or one costly rig, run together.
Tests marked `divided` run always, each with the cases of the share. So the same words repeat the same run, and all
shares together are the whole set. Without the variable everything runs.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest

VARIABLE = "TIEREDCTL_SHARE"
Case = TypeVar("Case")


class Share:
    """One of `parts` equal shares, counted from 1."""

    def __init__(self, text: str) -> None:
        """Raises ValueError unless `text` is like 2/8."""
        number, _, parts = text.partition("/")
        self.number, self.parts = int(number), int(parts)
        if not 1 <= self.number <= self.parts:
            raise ValueError(f"{text} is not a share: {VARIABLE}=2/8 is the second of eight")

    def has(self, name: str) -> bool:
        """Whether a test belongs to it."""
        return zlib.crc32(name.encode()) % self.parts == self.number - 1

    def of(self, cases: Sequence[Case]) -> Sequence[Case]:
        """Its cases, in their order; one at least. Drawn, since each nth byte may be the same field of an entry."""
        order = [*range(len(cases))]
        Random(len(cases)).shuffle(order)
        drawn = order[self.number - 1 :: self.parts] or order[(self.number - 1) % max(1, len(order)) :][:1]
        return [cases[number] for number in sorted(drawn)]

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


def chosen_share() -> Share | None:
    """The share that this run does; None if it does all."""
    text = os.environ.get(VARIABLE)
    return Share(text) if text else None


def divided(cases: Sequence[Case]) -> Sequence[Case]:
    """The cases of this run's share: those of all shares together are all of them.

    Whatever calls it, or has runs killed, is marked `divided` by its file (tests/conftest.py), so that `make
    exhaustive` runs it too.
    """
    share = chosen_share()
    return share.of(cases) if share else cases


def _name(item: pytest.Item) -> str | None:
    """By which an exhaustive test belongs to a share: its set's, or its own."""
    mark = item.get_closest_marker("exhaustive")
    return mark and (mark.args[0] if mark.args else item.nodeid)


def pytest_report_header() -> list[str]:
    share = chosen_share()
    return [f"exhaustive sets: share {share}; make exhaustive SHARE={share} repeats it"] if share else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    share = chosen_share()
    if share is None:
        return
    others = [item for item in items if (name := _name(item)) is not None and not share.has(name)]
    if others:
        config.hook.pytest_deselected(items=others)
        left = set(others)
        items[:] = [item for item in items if item not in left]
