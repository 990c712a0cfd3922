"""A store's keys in ranges that are listed apart from one another, such as by the tasks of a Spark job.

How many keys are in a range is not known before it is listed. A page of its first keys tells how dense they are there,
so that the range with the most keys by that estimate is divided next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

from tieredctl.ports.object_store import LAST_CHARACTER, ObjectStore, StoredObject, list_unreserved

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


FirstAfter = Callable[[str], str | None]
"""The first key of a store that comes after a text; None where there is none."""

_FIRST, _LAST = 0x20, 0x7E
"""What keys are mostly made of; other characters count as the nearest of these."""
_DIGITS = 6
_BASE = _LAST - _FIRST + 3
"""A digit for each of those characters, one for the end of a text, and one beyond all."""
_HALVINGS = 8
"""More than it takes to get from all characters to one."""


class Division(NamedTuple):
    """Where to divide a range, and where it ends: no key comes after `last`; None if that is not known."""

    edge: str
    last: str | None


def division(low: str, high: str | None, first_after: FirstAfter) -> Division | None:
    """How to divide the keys after `low`, up to and with `high`: about half way, as far as a few questions can tell,
    and so that there is a key in the second half. None where there seems to be none.

    The last question asked is the one for the keys after the edge.
    """

    def key_after(edge: str) -> str | None:
        found = first_after(edge)
        return found if found is not None and (high is None or found <= high) else None

    edge = key_between(low, high)
    if edge is not None:
        if key_after(edge) is not None:
            return Division(edge, high)
        high = edge
    # The keys of a store mostly begin alike: half way is a place that none of them is near.
    end = _shared_beginning(low, high, key_after) + LAST_CHARACTER
    high = end if high is None else min(high, end)
    for _ in range(_HALVINGS):
        edge = key_between(low, high)
        if edge is None:
            return None
        if key_after(edge) is not None:
            return Division(edge, high)
        high = edge
    return None


def key_between(low: str, high: str | None) -> str | None:
    """A text about half way between two, or between one and the end of all; None where there is none that is sure to
    come after the one and before the other."""
    common = _common_beginning(low, high) if high is not None else ""
    end = _BASE**_DIGITS if high is None else _number(high[len(common) :])
    middle = common + _text((_number(low[len(common) :]) + end) // 2)
    return middle if low < middle and (high is None or middle < high) else None


def distance(low: str, high: str, unit: str) -> float:
    """How many times as far it is from `low` to `high` as from `low` to `unit`, which comes between them, as far as
    characters tell."""
    start = len(_common_beginning(low, high))
    low_number, high_number, unit_number = (_number(text[start:]) for text in (low, high, unit))
    return (high_number - low_number) / max(unit_number - low_number, 1)


def _shared_beginning(low: str, high: str | None, key_after: FirstAfter) -> str:
    """What all keys between the two begin with, as `low` does."""
    # The least length for which some key begins otherwise than so much of `low`.
    least, most = 1 + (len(_common_beginning(low, high)) if high is not None else 0), len(low) + 1
    while least < most:
        length = (least + most) // 2
        found = key_after(low[:length] + LAST_CHARACTER)
        if found is None:
            least = length + 1
        else:
            most = min(length, len(_common_beginning(low, found)) + 1)
    return low[: least - 1]


def _common_beginning(one: str, other: str) -> str:
    pairs = zip(one, other, strict=False)
    return one[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]


def _number(text: str) -> int:
    number = 0
    for character in text[:_DIGITS].ljust(_DIGITS, "\0"):
        digit = 0 if character == "\0" else min(max(ord(character), _FIRST), _LAST + 1) - _FIRST + 1
        number = number * _BASE + digit
    return number


def _text(number: int) -> str:
    digits: list[int] = []
    for _ in range(_DIGITS):
        number, digit = divmod(number, _BASE)
        digits.append(digit)
    return "".join(chr(min(digit - 1 + _FIRST, _LAST)) for digit in reversed(digits) if digit)
