"""Where a range of keys may be divided, so that its halves are listed in parallel."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from tieredctl.ports.object_store import LAST_CHARACTER

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
        key = first_after(edge)
        return key if key is not None and (high is None or key <= high) else None

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
        key = key_after(low[:length] + LAST_CHARACTER)
        if key is None:
            least = length + 1
        else:
            most = min(length, len(_common_beginning(low, key)) + 1)
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
