"""Offsets on cells: no range is hidden, their order is kept, and a line is exactly as wide as it was asked to be."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tieredctl.drawing.scale import OffsetRanges, Scale, placed, runs

GREATEST = 2**63 - 1
WIDTHS = st.integers(1, 250)
BOUNDS = st.one_of(
    st.tuples(st.integers(0, 300), st.integers(0, 300)), st.tuples(st.integers(0, GREATEST), st.integers(0, GREATEST))
).map(sorted)


@st.composite
def scales(draw: st.DrawFn) -> Scale:
    first, last = draw(BOUNDS)
    return Scale(first, last, draw(WIDTHS))


@st.composite
def scales_with_ranges(draw: st.DrawFn) -> tuple[Scale, list[tuple[int, int]]]:
    scale = draw(scales())
    offsets = st.integers(scale.first, scale.last)
    found = draw(st.lists(st.tuples(offsets, offsets), max_size=8))
    return scale, [(min(pair), max(pair)) for pair in found]


@given(scales_with_ranges())
def test_every_range_has_the_cells_that_its_share_touches(drawn: tuple[Scale, list[tuple[int, int]]]) -> None:
    scale, pairs = drawn
    span = scale.last - scale.first + 1

    firsts, lasts = scale.cells(OffsetRanges.of(pairs))

    for (first, last), start, end in zip(pairs, firsts.tolist(), lasts.tolist(), strict=True):
        assert start == (first - scale.first) * scale.width // span == scale.cell(first)
        assert end == -(-(last + 1 - scale.first) * scale.width // span) - 1
        assert 0 <= start <= end < scale.width


@given(scales_with_ranges())
def test_the_worst_layer_is_seen_wherever_it_has_a_range(drawn: tuple[Scale, list[tuple[int, int]]]) -> None:
    scale, pairs = drawn
    everything, gaps = OffsetRanges.of([(scale.first, scale.last)]), OffsetRanges.of(pairs)

    cells = scale.painted([(1, everything), (2, gaps)])

    assert len(cells) == scale.width
    assert all(cells[scale.cell(first)] == cells[scale.cell(last)] == 2 for first, last in pairs)
    assert set(cells.tolist()) <= {1, 2}
    assert [length for _, first, end in runs(cells) for length in [end - first]] == [
        len(run) for run in np.split(cells, np.flatnonzero(np.diff(cells)) + 1)
    ]


@given(scales(), st.data())
def test_offsets_keep_their_order(scale: Scale, data: st.DataObject) -> None:
    offsets = sorted(data.draw(st.lists(st.integers(0, GREATEST), min_size=2, max_size=5)))

    cells = [scale.cell(offset) for offset in offsets]

    assert cells == sorted(cells)
    assert 0 <= cells[0] <= cells[-1] < scale.width


@given(scales(), st.data())
def test_a_cell_begins_with_the_offset_that_is_written_under_it(scale: Scale, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, scale.width - 1))

    assert scale.cell(scale.offset(cell)) <= cell
    if scale.offset(cell) < scale.last:
        assert scale.cell(scale.offset(cell) + 1) >= cell


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 10**6)), max_size=20), st.integers(1, 100))
def test_labels_stand_where_they_belong_and_a_dot_says_that_there_are_more(
    found: list[tuple[int, int]], width: int
) -> None:
    labels = sorted((cell, str(number)) for cell, number in found if cell < width)

    line = placed(labels, width)

    shown = [(match.start(), match[1]) for match in re.finditer(r"([0-9]+)\.?", line)]
    assert len(line) == width
    assert set(shown) <= set(labels)
    assert ("." in line) == (len(shown) < len(labels))
    assert not re.search(r"[^0-9. ]|\.[0-9.]", line)


def test_of_many_epochs_some_are_named() -> None:
    assert placed([(cell, str(10 + cell)) for cell in range(12)], 12) == "10. 14. 18. "


def test_a_label_at_the_end_gives_way_to_the_dot_when_there_are_more() -> None:
    assert placed([(0, "0"), (3, "7"), (3, "8")], 4) == "0  ."


def test_labels_without_trouble_have_no_dots() -> None:
    assert placed([(0, "0"), (2, "7"), (8, "10")], 10) == "0 7     10"
