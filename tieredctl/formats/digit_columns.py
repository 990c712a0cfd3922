"""Many numbers from fixed-width decimal text, two digits at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Bytes, Flags, Ints

_NO_PAIR = -1
_HALF = 10**10
_LARGEST_HALF = (1 << 63) // _HALF - 1


def numbers_in_digits(characters: Bytes) -> tuple[Ints, Flags]:
    """The numbers in rows of 20 characters, and which rows are a number of less than 2^63 - 2 * 10^10."""
    pairs = np.ascontiguousarray(np.ascontiguousarray(characters).view(np.uint16).T)
    values = _PAIR_VALUES[pairs]
    middle = len(values) // 2
    high, low = _number(values[:middle]), _number(values[middle:])
    fits: Flags = (np.bitwise_or.reduce(values) >= 0) & (high <= _LARGEST_HALF)
    return np.where(fits, high * _HALF + low, 0), fits


def _number(pairs: NDArray[np.int8]) -> Ints:
    number: Ints = pairs[0].astype(np.int64)
    for pair in pairs[1:]:
        number = number * 100 + pair
    return number


def _pair_values() -> NDArray[Any]:
    """By two characters as a number of this machine: the number of two digits that they are, or _NO_PAIR."""
    both = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    digits = both.astype(np.int16) - ord("0")
    are_digits = ((digits >= 0) & (digits <= 9)).all(axis=1)
    return np.where(are_digits, digits[:, 0] * 10 + digits[:, 1], _NO_PAIR).astype(np.int8)


_PAIR_VALUES = _pair_values()
