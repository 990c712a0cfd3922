"""Runs a function over many objects, in as many threads as suit the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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


def in_turn(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int, *, most: int, at_first: int | None = None
) -> Iterator[_Result]:
    """The results in the order of the items, each error at its item's turn. Up to `most` items are begun and not
    handed out: `at_first` of them, and one more with each result. The threads end with the iterator, once they are done
    with what they began."""
    begun: deque[Future[_Result]] = deque()
    allowed = most if at_first is None else min(at_first, most)
    with ThreadPoolExecutor(threads, "in-turn") as pool:
        try:
            for item in items:
                begun.append(pool.submit(work, item))
                if len(begun) >= allowed:
                    allowed = min(allowed + 1, most)
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
