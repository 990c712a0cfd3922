"""A store's keys in ranges that are listed apart from one another, such as by the tasks of a Spark job.

How many keys are in a range is not known before it is listed. A page of its first keys tells how dense they are there,
so that the range with the most keys by that estimate is divided next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

from tieredctl.ops.orphans.key_ranges import distance, division
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved

_PAGE = 1_000
"""What a store gives for one request."""
_WORTH_A_RANGE = 4
"""So many pages are listed at once even where they were found to be several ranges."""


class KeyRange(NamedTuple):
    """The keys with a prefix after `after`, up to and including `last`; all of them after it where `last` is None."""

    prefix: str
    after: str
    last: str | None

    def objects(self, store: ObjectStore) -> Iterator[StoredObject]:
        """The objects of the range, by ascending key."""
        return self._until_last(store.list(self.prefix, self.after))

    def unreserved_objects(self, store: ObjectStore) -> Iterator[StoredObject]:
        """The same without tieredctl's own."""
        return self._until_last(list_unreserved(store, self.prefix, self.after))

    def _until_last(self, listed: Iterator[StoredObject]) -> Iterator[StoredObject]:
        last = self.last
        return listed if last is None else takewhile(lambda stored: stored.key <= last, listed)


class _Probed(NamedTuple):
    keys: KeyRange
    page: Sequence[str]
    """Its first keys."""
    bound: str | None
    """No key of it came after this one when it was probed; None if that is not known."""
    is_divisible: bool = True

    @property
    def pages(self) -> float:
        """How many it has, by the estimate; 0 where it has less than one, or cannot be divided."""
        if not self.is_divisible or len(self.page) < _PAGE:
            return 0
        return inf if self.bound is None else distance(self.page[0], self.bound, self.page[-1])


def key_ranges(store: ObjectStore, most: int, prefix: str = "") -> list[KeyRange]:
    """At most `most` ranges that together hold every key with a prefix once, whatever is stored or removed meanwhile,
    by ascending key. Takes a few requests for each."""
    whole = KeyRange(prefix, "", None)
    found = [_Probed(whole, _page(store, whole), None)]
    at_once = max(store.parallel_reads, 1)
    with ThreadPoolExecutor(at_once, "probing") as pool:
        while len(found) < most:
            longest = sorted((one for one in found if one.pages), key=_pages)[-min(at_once, most - len(found)) :]
            if not longest:
                break
            halves = pool.map(lambda one: _divided(store, one), longest)
            found = [one for one in found if one not in longest] + [half for two in halves for half in two]
    return _joined(sorted(found))


def _joined(found: Sequence[_Probed]) -> list[KeyRange]:
    """The same keys, small ranges put together with those after them."""
    joined: list[KeyRange] = []
    room = 0.0
    for one in found:
        # Of a page that is not full, the number of keys is known.
        needed = len(one.page) if len(one.page) < _PAGE else inf
        if joined and needed <= room:
            joined[-1] = joined[-1]._replace(last=one.keys.last)
            room -= needed
        else:
            joined.append(one.keys)
            room = _WORTH_A_RANGE * _PAGE - needed
    return joined


def _pages(one: _Probed) -> float:
    return one.pages


def _divided(store: ObjectStore, whole: _Probed) -> list[_Probed]:
    prefix, after, last = whole.keys
    page: list[str] = []

    def first_after(edge: str) -> str | None:
        page[:] = _page(store, KeyRange(prefix, edge, last))
        return page[0] if page else None

    found = division(whole.page[0], whole.bound, first_after)
    if found is None:
        return [whole._replace(is_divisible=False)]
    first_half, second_half = KeyRange(prefix, after, found.edge), KeyRange(prefix, found.edge, last)
    return [
        _Probed(first_half, _within(whole.page, found.edge), found.edge),
        _Probed(second_half, tuple(page), found.last),
    ]


def _page(store: ObjectStore, keys: KeyRange) -> tuple[str, ...]:
    listed = tuple(stored.key for stored in islice(store.list(keys.prefix, keys.after), _PAGE))
    return listed if keys.last is None else _within(listed, keys.last)


def _within(page: Sequence[str], last: str) -> tuple[str, ...]:
    return tuple(page[: bisect_right(page, last)])
