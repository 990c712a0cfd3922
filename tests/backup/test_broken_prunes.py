"""Each safeguard of `backup prune` is one that its tests would miss."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import pytest

from tests.backup import test_pruning
from tests.backup.broken_prunes import BROKEN_PRUNES, Break


def stories() -> Iterator[Callable[[], None]]:
    """The tests of runs, prunes and kills that need nothing but themselves, those at random last."""
    tests = [one for name, one in vars(test_pruning).items() if name.startswith("test_")]
    alone = [one for one in tests if not inspect.signature(one).parameters]
    yield from sorted(alone, key=lambda one: hasattr(one, "hypothesis"))


def told() -> None:
    for story in stories():
        story()


@pytest.mark.exhaustive("prunes that lack a safeguard")
@pytest.mark.parametrize("broken", BROKEN_PRUNES)
def test_a_prune_that_lacks_a_safeguard_is_found_out(broken: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        told()
