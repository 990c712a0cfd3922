"""The project's packages that bring commands: who types one without its package is told which to install."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_PROPOSALS, _INKLESS = "tieredctl-proposals", "tieredctl-inkless"
_PACKAGES = {
    ("diskless", "format"): _PROPOSALS,
    ("diskless", "gateways"): _PROPOSALS,
    ("diskless", "simulate"): _PROPOSALS,
    ("estimate", "wal-cost"): _PROPOSALS,
    ("diskless",): _INKLESS,
    ("wal",): _PROPOSALS,
}
"""By the words of its commands, those of verbs before those of their noun."""


class KnownPackage(NamedTuple):
    """A package, and the words that it would serve."""

    words: tuple[str, ...]
    name: str


def package_of(words: Sequence[str]) -> KnownPackage | None:
    """The package that has the command of these words; None where there is no such command."""
    named = [word for word in words if not word.startswith("-")]
    return next((KnownPackage(one, name) for one, name in _PACKAGES.items() if tuple(named[: len(one)]) == one), None)
