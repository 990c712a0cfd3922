"""Runs a function over many objects, in as many threads as suit the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tieredctl.ports.object_store import ObjectStore

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_parallel(store: ObjectStore, work: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results, in the order of the items."""
    if store.parallel_reads == 1:
        return list(map(work, items))
    with ThreadPoolExecutor(store.parallel_reads) as threads:
        return list(threads.map(work, items))
