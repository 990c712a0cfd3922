"""What ranges of offsets cover, leave out, and cover more than once: as counting offset by offset gives."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tieredctl.drawing.scale import OffsetRanges

GREATEST = 2**63 - 1
OFFSETS = st.integers(0, 60)
PAIRS = st.lists(st.tuples(OFFSETS, OFFSETS).map(sorted).map(tuple), max_size=12)


def counts(pairs: list[tuple[int, int]]) -> Counter[int]:
    return Counter(offset for first, last in pairs for offset in range(first, last + 1))


def offsets(ranges: OffsetRanges) -> set[int]:
    found = counts(ranges.pairs())
    assert set(found.values()) <= {1}
    assert ranges.pairs() == sorted(ranges.pairs())
    return set(found)


@given(PAIRS, OFFSETS, OFFSETS)
def test_they_are_as_offset_by_offset(pairs: list[tuple[int, int]], first: int, last: int) -> None:
    ranges, covered = OffsetRanges.of(pairs), counts(pairs)

    assert offsets(ranges.joined()) == set(covered)
    assert offsets(ranges.repeated()) == {offset for offset, times in covered.items() if times > 1}
    assert offsets(ranges.left_out(first, last)) == set(range(first, last + 1)) - set(covered)
    assert offsets(ranges.joined().within(first, last)) == set(range(first, last + 1)) & set(covered)


@given(PAIRS)
def test_those_that_touch_are_one(pairs: list[tuple[int, int]]) -> None:
    found = OffsetRanges.of(pairs).joined().pairs()

    assert all(end + 1 < start for (_, end), (start, _) in itertools.pairwise(found))


def test_the_greatest_offset_is_one_of_them() -> None:
    ranges = OffsetRanges.of([(0, 4), (GREATEST, GREATEST)])

    assert ranges.left_out(0, GREATEST).pairs() == [(5, GREATEST - 1)]
    assert OffsetRanges.of([(0, GREATEST)]).left_out(0, GREATEST).pairs() == []
    assert ranges.joined().pairs() == [(0, 4), (GREATEST, GREATEST)]
