"""What a store says whose bucket or container is not there."""

from __future__ import annotations

from collections.abc import Callable

from tests.refusals import refused_with
from tieredctl.ports.object_store import ObjectStore


def demand_missing(store: ObjectStore, *more: Callable[[], object]) -> None:
    """Every look, and whatever else is given, is refused: nothing looks empty."""
    looks: list[Callable[[], object]] = [
        lambda: list(store.list()),
        lambda: store.head("a"),
        lambda: store.read("a"),
        lambda: next(store.stream("a")),
        *more,
    ]
    for look in looks:
        with refused_with("bucket-missing"):
            look()
