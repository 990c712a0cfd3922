"""CRC-32C of stretches of a file that overlap: each byte is read about once, in however many of them it lies.

A damaged length claims megabytes that hold thousands of other batches, and each of those may be damaged likewise.
"""

from __future__ import annotations

from array import array
from functools import cache, reduce
from operator import xor

from tieredctl.formats.crc32c import crc32c

_POLYNOMIAL = 0x82F63B78
_BLOCK = 1 << 12
_BITS = 32
_Operator = tuple[tuple[int, ...], ...]
"""A linear function of a CRC: what each value of each of its four bytes contributes, the lowest first."""


class RangeCrcs:
    """CRCs of stretches whose beginnings mostly rise."""

    def __init__(self) -> None:
        self._first = 0
        self._sums = array("L", [0])
        """The CRC from `_first` up to it and to each multiple of _BLOCK after it."""

    def crc(self, buffer: bytes, base: int, start: int, end: int) -> int:
        """The CRC of file positions from `start` up to, not including, `end`; `buffer[0]` lies at `base`."""
        summed_end = self._first + (len(self._sums) - 1) * _BLOCK
        block = start - (start - self._first) % _BLOCK
        if start < self._first or min(block, summed_end) < base:
            self._first, self._sums = start, array("L", [0])
        view = memoryview(buffer)
        before, until = self._from_first(view, base, start), self._from_first(view, base, end)
        return _followed_by_zeros(before, end - start) ^ until

    def _from_first(self, view: memoryview, base: int, position: int) -> int:
        whole, rest = divmod(position - self._first, _BLOCK)
        for at in range(self._first + (len(self._sums) - 1) * _BLOCK, self._first + whole * _BLOCK, _BLOCK):
            self._sums.append(crc32c(view[at - base : at - base + _BLOCK], self._sums[-1]))
        return crc32c(view[position - rest - base : position - base], self._sums[whole])


def _followed_by_zeros(crc: int, count: int) -> int:
    """What a CRC contributes to that of its bytes and `count` others: the two are linear."""
    power = 0
    while count:
        if count & 1:
            crc = _applied(_zeros(power), crc)
        count >>= 1
        power += 1
    return crc


@cache
def _zeros(power: int) -> _Operator:
    """The step over 2 ** `power` bytes of zero."""
    if not power:
        return _operator([reduce(_over_zero_bit, range(8), 1 << bit) for bit in range(_BITS)])
    half = _zeros(power - 1)
    return _operator([_applied(half, _applied(half, 1 << bit)) for bit in range(_BITS)])


def _over_zero_bit(crc: int, _bit: int) -> int:
    return crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)


def _operator(of_bits: list[int]) -> _Operator:
    """From what it makes of each bit alone."""
    return tuple(
        tuple(reduce(xor, (of_bits[first + bit] for bit in range(8) if value >> bit & 1), 0) for value in range(256))
        for first in range(0, _BITS, 8)
    )


def _applied(operator: _Operator, crc: int) -> int:
    lowest, second, third, highest = operator
    return lowest[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ highest[crc >> 24]
