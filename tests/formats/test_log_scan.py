"""A log is found whole in whatever pieces it arrives, and what is sound around damage is found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.compression import Codec
from tieredctl.formats.log_scan import BatchChecker, Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import HEADER_BYTES, LENGTH_AT, BatchHeader, Record, encode_batch

CHECKERS = [pytest.param(OneByOne(), id="one by one"), pytest.param(AsColumns(), id="as columns")]
UNCHECKED = [*range(8), *range(12, 16)]
"""Bytes of a batch that no scan can judge: base offset and leader epoch lie outside its CRC."""


@dataclass(frozen=True)
class Scan:
    """Where sound batches were found, and what they say; what was damaged."""

    batches: list[tuple[int, BatchHeader]]
    damage: list[Damage]

    @property
    def positions(self) -> set[int]:
        return {position for position, _ in self.batches}


def scan(pieces: list[bytes], checker: BatchChecker[Any]) -> Scan:
    found = Scan([], [])
    for part in scan_log(pieces, sum(map(len, pieces)), checker):
        if isinstance(part, Damage):
            found.damage.append(part)
        else:
            headers = [BatchHeader(*(int(value) for value in header)) for header in part.headers]
            positions = [part.file_position + int(position) for position in part.positions]
            found.batches.extend(zip(positions, headers, strict=True))
    return found


def cut(log: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(cut for cut in cuts if 0 < cut < len(log)), len(log)]
    return [log[start:end] for start, end in pairwise(bounds) if start < end]


def offsets_of(batches: list[bytes]) -> list[int]:
    """Where each batch begins, and where the last one ends."""
    positions = [0]
    for batch in batches:
        positions.append(positions[-1] + len(batch))
    return positions


@st.composite
def batches(draw: st.DrawFn, min_size: int = 1) -> list[bytes]:
    made = []
    offset = 0
    for _ in range(draw(st.integers(min_size, 9))):
        values = draw(st.lists(st.none() | st.binary(max_size=120), min_size=1, max_size=4))
        records = [Record(offset + index, 1_000, None, value) for index, value in enumerate(values)]
        made.append(encode_batch(records, codec=draw(st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP]))))
        offset += len(records)
    return made


CUTS = st.lists(st.integers(1, 2_000), max_size=30)


@pytest.mark.parametrize("checker", CHECKERS)
@settings(deadline=None)
@given(batches(), CUTS)
def test_any_pieces_give_the_same(checker: BatchChecker[Any], made: list[bytes], cuts: list[int]) -> None:
    log = b"".join(made)

    found = scan(cut(log, cuts), checker)

    assert [position for position, _ in found.batches] == offsets_of(made)[:-1]
    assert not found.damage


@pytest.mark.parametrize("checker", CHECKERS)
@given(st.data())
@settings(max_examples=examples(200))
def test_an_altered_byte_hides_no_other_batch(checker: BatchChecker[Any], data: st.DataObject) -> None:
    made = data.draw(batches())
    log, positions = bytearray(b"".join(made)), offsets_of(made)
    at = data.draw(st.integers(0, len(log) - 1))
    log[at] ^= data.draw(st.integers(1, 255))
    hit = next(index for index, end in enumerate(positions[1:]) if at < end)

    found = scan(cut(bytes(log), data.draw(CUTS)), checker)

    others = {position for index, position in enumerate(positions[:-1]) if index != hit}
    assert others <= found.positions
    if at - positions[hit] in UNCHECKED:
        assert not found.damage
    else:
        assert found.positions == others
        (damage,) = found.damage
        assert (damage.position, damage.end) == (positions[hit], positions[hit + 1])


@pytest.mark.parametrize("checker", CHECKERS)
@given(st.data())
@settings(max_examples=examples(200))
def test_what_is_sound_after_a_damaged_stretch_is_found_again(checker: BatchChecker[Any], data: st.DataObject) -> None:
    """Overwritten, lost or foreign bytes: any stretch may be replaced by any other."""
    made = data.draw(batches(min_size=2))
    log, positions = b"".join(made), offsets_of(made)
    start = data.draw(st.integers(0, len(log) - 1))
    end = data.draw(st.integers(start, min(start + 300, len(log))))
    put_in = data.draw(st.sampled_from([b"", b"\0" * 100, b"\x02" * 77]) | st.binary(max_size=200))
    damaged = log[:start] + put_in + log[end:]
    shift = len(put_in) - (end - start)

    found = scan(cut(damaged, data.draw(CUTS)), checker)

    before = {begin for begin, behind in pairwise(positions) if behind <= start}
    behind = {begin + shift for begin in positions[:-1] if begin >= end}
    assert before | behind <= found.positions
    assert list(_stretches(found)) == sorted(_stretches(found))


def _stretches(found: Scan) -> Iterator[tuple[int, int]]:
    return ((damage.position, damage.end) for damage in found.damage)


@pytest.mark.parametrize("checker", CHECKERS)
@given(st.data())
@settings(max_examples=examples(200))
def test_a_torn_tail_is_told_from_damage(checker: BatchChecker[Any], data: st.DataObject) -> None:
    made = data.draw(batches())
    log, positions = b"".join(made), offsets_of(made)
    end = data.draw(st.integers(1, len(log)))

    found = scan(cut(log[:end], data.draw(CUTS)), checker)

    whole = [position for position, behind in pairwise(positions) if behind <= end]
    assert [position for position, _ in found.batches] == whole
    if end in positions:
        assert not found.damage
    else:
        (damage,) = found.damage
        assert damage.torn
        assert (damage.position, damage.end) == (positions[len(whole)], end)


@pytest.mark.parametrize("checker", CHECKERS)
def test_zeros_after_the_last_batch_are_a_torn_tail_and_a_wrong_length_alone_is_none(
    checker: BatchChecker[Any],
) -> None:
    """As in a preallocated file that was not closed in good order."""
    batch = encode_batch([Record(0, 0, None, b"value")])
    wrong = batch[: LENGTH_AT + 2] + bytes([batch[LENGTH_AT + 2] ^ 0xFF]) + batch[LENGTH_AT + 3 :]

    preallocated, damaged = scan([batch + bytes(5_000)], checker), scan([wrong], checker)

    assert preallocated.positions == {0}
    assert [damage.torn for damage in preallocated.damage] == [True]
    assert [damage.torn for damage in damaged.damage] == [False]


@pytest.mark.parametrize("checker", CHECKERS)
def test_an_empty_log_holds_nothing_and_what_is_no_log_is_damage_alone(checker: BatchChecker[Any]) -> None:
    assert scan([], checker) == Scan([], [])

    found = scan([b"no log at all " * 1_000], checker)

    assert not found.batches
    assert sum(damage.end - damage.position for damage in found.damage) == 14_000


def test_a_claimed_length_of_gigabytes_reads_no_further_than_the_file() -> None:
    batch = bytearray(encode_batch([Record(0, 0, None, b"value")]))
    sound = encode_batch([Record(1, 0, None, b"value")])
    batch[LENGTH_AT : LENGTH_AT + 4] = b"\x7f\xff\xff\xff"

    found = scan([bytes(batch), sound], OneByOne())

    assert found.positions == {len(batch)}
    assert len(batch) > HEADER_BYTES


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_wrong_length_that_ends_where_a_later_batch_begins_hides_none_between(checker: BatchChecker[Any]) -> None:
    made = [encode_batch([Record(offset, 0, None, b"value")]) for offset in range(4)]
    length = len(made[0])
    made[0] = made[0][:LENGTH_AT] + (2 * length - 12).to_bytes(4) + made[0][LENGTH_AT + 4 :]

    found = scan([b"".join(made)], checker)

    assert found.positions == {length, 2 * length, 3 * length}
