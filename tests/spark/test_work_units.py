"""Work is cut by bytes and requests, and sent out at the pace of what came before."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_spark.work_units import SECONDS_PER_UNIT, ChunkSize, UnitSize, estimated_seconds

GIB = 1 << 30
MIB = 1 << 20
REQUESTS = 5
USUAL = UnitSize()


def batch(sizes: Sequence[int]) -> pa.RecordBatch:
    columns = {"bytesToRead": pa.array(sizes, pa.int64()), "requests": pa.array([REQUESTS] * len(sizes), pa.int32())}
    return pa.RecordBatch.from_pydict(columns)


def units(*sizes: Sequence[int], size: UnitSize = USUAL, part: int = 1) -> list[list[int]]:
    """The sizes of each unit's segments."""
    table = pa.Table.from_batches(list(size.cut(map(batch, sizes), part)))
    assert table.column("row").to_pylist() == list(range(len(table)))
    cut: dict[int, list[int]] = {}
    for unit, one in zip(table.column("unit").to_pylist(), table.column("bytesToRead").to_pylist(), strict=True):
        cut.setdefault(unit, []).append(one)
    assert list(cut) == list(range(len(cut)))
    return list(cut.values())


def seconds(unit: Sequence[int]) -> float:
    return float(estimated_seconds(sum(unit), REQUESTS * len(unit)))


@given(
    st.lists(st.lists(st.integers(0, 3 * GIB), max_size=40), min_size=1, max_size=6).filter(any),
    st.integers(0, 1),
    st.sampled_from([USUAL, UnitSize(2.0), UnitSize(most_bytes=100 * MIB)]),
)
def test_no_segment_is_lost_and_a_unit_is_full_by_its_last_segment(
    sizes: list[list[int]], part: int, size: UnitSize
) -> None:
    cut = units(*sizes, size=size, part=part)

    assert [one for unit in cut for one in unit] == [one for some in sizes for one in some]
    for unit in cut:
        assert seconds(unit[:-1]) <= size.seconds
        assert sum(unit[:-1]) <= size.most_bytes


def test_how_rows_came_in_batches_makes_no_difference() -> None:
    sizes = [number % 7 * 50 * MIB for number in range(500)]

    assert units(sizes) == units(sizes[:3], sizes[3:100], [], sizes[100:])


def test_one_large_segment_among_thousands_of_small_ones_holds_none_of_them_up() -> None:
    cut = units([MIB] * 3_000 + [2 * GIB] + [MIB] * 3_000)

    assert max(map(seconds, cut)) < 2.5 * SECONDS_PER_UNIT
    assert len(cut) > 6


def test_the_first_minute_is_cut_finer_so_that_a_small_store_keeps_many_cores_busy() -> None:
    few = [40 * MIB] * 40

    assert len(units(few, part=0)) > 8 * len(units(few, part=1))


@pytest.mark.parametrize("cores", [1, 2, 64, 4_000])
def test_chunks_come_to_about_a_minute_whatever_the_number_of_cores(cores: int) -> None:
    size, work = ChunkSize(), iter([SECONDS_PER_UNIT] * 10_000_000)
    took = []
    for _ in range(16):
        chunk = size.next_chunk(work, float)
        took.append(max(sum(chunk) / cores, SECONDS_PER_UNIT))
        size.note(sum(chunk), took[-1])

    assert max(took) <= 120
    assert sum(chunk) >= cores * SECONDS_PER_UNIT / 2


def test_a_slow_store_makes_chunks_smaller() -> None:
    size, work = ChunkSize(work_seconds=1_000.0), iter([1.0] * 100_000)

    for _ in range(8):
        chunk = size.next_chunk(work, float)
        size.note(sum(chunk), 20 * sum(chunk))

    assert 20 * sum(size.next_chunk(work, float)) <= 120
