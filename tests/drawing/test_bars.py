"""Bars: as long as their numbers, none hidden, none too long."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.drawing.scale import bars

VALUES = st.lists(st.one_of(st.integers(0, 50), st.integers(0, 2**63)), max_size=20)


@pytest.mark.parametrize("ascii_only", [False, True], ids=["blocks", "ascii"])
@given(values=VALUES, width=st.integers(1, 200))
def test_a_bar_is_as_long_as_its_number(values: list[int], width: int, ascii_only: bool) -> None:
    found = bars(values, width, ascii_only=ascii_only)

    lengths = [eighths(bar) for bar in found]
    assert all((length > 0) == (value > 0) for length, value in zip(lengths, values, strict=True))
    assert [length for _, length in sorted(zip(values, lengths, strict=True))] == sorted(lengths)
    assert all(len(bar) <= width for bar in found)
    if any(values):
        assert eighths(found[values.index(max(values))]) == 8 * width
    assert all(bar.isascii() for bar in found) or not ascii_only


def eighths(bar: str) -> int:
    names = ["FULL BLOCK", *(f"LEFT {part} BLOCK" for part in PARTS)]
    return sum(8 if one == "#" else 8 - names.index(unicodedata.name(one)) for one in bar)


PARTS = (
    "SEVEN EIGHTHS", "THREE QUARTERS", "FIVE EIGHTHS", "HALF", "THREE EIGHTHS", "ONE QUARTER", "ONE EIGHTH",
)  # fmt: skip


def test_a_negative_number_has_no_bar() -> None:
    with pytest.raises(ValueError, match="negative"):
        bars([1, -1], 10)
