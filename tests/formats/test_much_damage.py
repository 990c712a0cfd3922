"""However much of a log is damaged: what is found is what a plain search finds, and no byte is looked at again and
again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tieredctl.errors import DecodeError
from tieredctl.formats import batch_columns, crc_ranges, log_scan, record_batches
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.log_scan import BatchChecker, Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import (
    CRC_FROM,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    BatchHeader,
    Record,
    crc_matches,
    encode_batch,
    read_batch_header,
)

CHECKERS = [pytest.param(OneByOne(), id="one by one"), pytest.param(AsColumns(), id="as columns")]
REACHES = [1, 200, log_scan._SHORTEST_REACH]
LONG_BATCHES = [1, 150, log_scan._LONG_BATCH]
MANY = 2_000


def sound_header(log: bytes, position: int) -> BatchHeader | None:
    try:
        header = read_batch_header(log, position, len(log))
    except DecodeError:
        return None
    return header if position + header.size <= len(log) and crc_matches(log, position, header) else None


def is_sound_after_damage(log: bytes, position: int) -> bool:
    header = sound_header(log, position)
    return (
        header is not None
        and 0 <= header.attributes <= 0x7F
        and 0 <= header.records_count <= header.last_offset_delta + 1
        and 0 <= header.base_offset < 1 << 31
    )


def found_by_plain_search(log: bytes) -> Iterator[int | tuple[int, int]]:
    """The position of each sound batch, and where damage begins and ends: a batch follows the one before it, or is the
    first that is sound at any byte after damage."""
    position = 0
    while position < len(log):
        header = sound_header(log, position)
        if header is not None:
            yield position
            position += header.size
            continue
        following = range(position + 1, len(log))
        end = next((one for one in following if is_sound_after_damage(log, one)), len(log))
        yield position, end
        position = end


def found_by_scan(pieces: Sequence[bytes], checker: BatchChecker[Any]) -> Iterator[int | tuple[int, int]]:
    for part in scan_log(pieces, sum(map(len, pieces)), checker, 0):
        if isinstance(part, Damage):
            yield part.position, part.end
        else:
            yield from (part.file_position + int(position) for position in part.positions)


def with_length(batch: bytes, size: int) -> bytes:
    return batch[:LENGTH_AT] + max(size - LOG_OVERHEAD, 0).to_bytes(4) + batch[LENGTH_AT + 4 :]


def flipped(batch: bytes, at: int) -> bytes:
    return batch[:at] + bytes([batch[at] ^ 0x10]) + batch[at + 1 :]


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "a flipped byte": lambda batch: flipped(batch, CRC_FROM + 4),
    "another magic": lambda batch: batch[:MAGIC_AT] + b"\x01" + batch[MAGIC_AT + 1 :],
    "the length of two": lambda batch: with_length(batch, 2 * len(batch)),
    "the length of three, and some": lambda batch: with_length(batch, 3 * len(batch) + 5),
    "an impossible length": lambda batch: with_length(batch, 0),
    "the length of many": lambda batch: with_length(batch, 1 << 16),
    "a length of gigabytes": lambda batch: with_length(batch, 1 << 31),
    "zeros": lambda batch: bytes(len(batch)),
    "its end cut off": lambda batch: batch[: len(batch) // 2],
    "its beginning cut off": lambda batch: batch[len(batch) // 2 :],
    "bytes after it": lambda batch: batch + b"\x02\0\0\0\0\0\0" * 5,
}


@st.composite
def damaged_logs(draw: st.DrawFn) -> bytes:
    """Batches of which any may be damaged; some have batches in their records."""
    log = b""
    for offset in range(draw(st.integers(1, 25))):
        inner = encode_batch([Record(offset, 0, None, draw(st.binary(max_size=20)))])
        value = draw(st.sampled_from([inner, 2 * inner, b"", b"\x02" * 30]) | st.binary(max_size=60))
        batch = encode_batch([Record(offset, 0, None, value)])
        fault = draw(st.none() | st.sampled_from(list(FAULTS.values())))
        log += batch if fault is None else fault(batch)
    return log


@pytest.mark.parametrize("checker", CHECKERS)
@settings(max_examples=examples(200), deadline=None)
@given(
    damaged_logs(),
    st.lists(st.integers(1, 3_000), max_size=10),
    st.sampled_from(REACHES),
    st.sampled_from(LONG_BATCHES),
)
def test_what_a_plain_search_finds(
    checker: BatchChecker[Any], log: bytes, cuts: list[int], reach: int, long_batch: int
) -> None:
    bounds = [0, *sorted({cut for cut in cuts if cut < len(log)}), len(log)]
    pieces = [log[start:end] for start, end in pairwise(bounds)]

    with patch.multiple(log_scan, _SHORTEST_REACH=reach, _LONG_BATCH=long_batch):
        found = list(found_by_scan(pieces, checker))

    assert found == list(found_by_plain_search(log))


@settings(max_examples=examples(100), deadline=None)
@given(damaged_logs(), st.integers(0, 3_000))
def test_more_bytes_than_were_announced_are_read_to_their_end(log: bytes, announced: int) -> None:
    found = [list(scan_log([log], announced, checker, 0)) for checker in (OneByOne(), AsColumns())]

    for parts in found:
        damage = [(part.position, part.end) for part in parts if isinstance(part, Damage)]
        assert all(0 <= start < end <= len(log) for start, end in damage)


class Counting(AsColumns):
    """Counts the batches that it looks at."""

    def __init__(self) -> None:
        self.batches = 0

    def chain(self, buffer: bytes, start: int, until: int) -> tuple[Sequence[int], int]:
        positions, stop = super().chain(buffer, start, until)
        self.batches += len(positions)
        return positions, stop


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("pieces_bytes", [1 << 30, 1 << 12])
def test_the_work_grows_with_the_log_and_not_with_its_damage(
    fault: Callable[[bytes], bytes], pieces_bytes: int
) -> None:
    made = [encode_batch([Record(offset, 0, None, b"value" * 20)]) for offset in range(MANY)]
    log = b"".join(fault(batch) if number % 2 else batch for number, batch in enumerate(made))
    pieces, checker = [log[start : start + pieces_bytes] for start in range(0, len(log), pieces_bytes)], Counting()

    found = list(found_by_scan(pieces, checker))

    assert sum(isinstance(one, int) for one in found) >= MANY // 2
    assert checker.batches < 8 * MANY


@pytest.mark.parametrize("pieces_bytes", [1 << 30, 1 << 12])
def test_bytes_that_many_wrong_lengths_claim_are_read_a_few_times(
    pieces_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = 0

    def counting(data: bytes, start: int = 0) -> int:
        nonlocal summed
        summed += len(data)
        return crc32c(data, start)

    for module in (batch_columns, crc_ranges, record_batches):
        monkeypatch.setattr(module, "crc32c", counting)
    made = [encode_batch([Record(offset, 0, None, b"value" * 50)]) for offset in range(MANY)]
    log = b"".join(with_length(batch, 1 << 17) if number % 2 else batch for number, batch in enumerate(made))
    pieces = [log[start : start + pieces_bytes] for start in range(0, len(log), pieces_bytes)]

    found = list(found_by_scan(pieces, AsColumns()))

    assert sum(isinstance(one, int) for one in found) == MANY // 2
    assert summed < 60 * len(log)


def test_sound_batches_are_looked_at_once() -> None:
    log, checker = b"".join(encode_batch([Record(offset, 0, None, b"value")]) for offset in range(MANY)), Counting()

    (block,) = scan_log([log], len(log), checker)

    assert isinstance(block, log_scan.LogBlock)
    assert np.array_equal(np.asarray(block.positions), np.arange(MANY) * (len(log) // MANY))
    assert checker.batches == MANY
