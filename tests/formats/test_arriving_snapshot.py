"""A snapshot that arrives in pieces is checked batch by batch: nothing that is wrong is handed out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.fuzzed_readers import sealed_batches
from tests.kraft_snapshots import snapshot_bytes, topic_record
from tieredctl.errors import DecodeError
from tieredctl.formats.arriving_snapshot import ArrivingSnapshot
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header

TOPIC_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
SNAPSHOT = snapshot_bytes(1700000000000, *(topic_record(TOPIC_ID, f"t{number}") for number in range(5)))
HEADER_END = read_batch_header(SNAPSHOT, 0, len(SNAPSHOT)).size
DATA_END = HEADER_END + read_batch_header(SNAPSHOT, HEADER_END, len(SNAPSHOT)).size
HEADER, DATA, FOOTER = SNAPSHOT[:HEADER_END], SNAPSHOT[HEADER_END:DATA_END], SNAPSHOT[DATA_END:]
ATTRIBUTES = 22
"""Where the byte of a batch is that says its codec."""
FOOTER_AS_IF_COMPRESSED = sealed_batches(
    FOOTER[:ATTRIBUTES] + bytes([FOOTER[ATTRIBUTES] | Codec.ZSTD]) + FOOTER[ATTRIBUTES + 1 :]
)


def arrived(data: bytes, cuts: list[int] | None = None, size: int | None = None) -> list[bytes]:
    """The batches of data that comes in pieces, if it is a whole snapshot."""
    arriving = ArrivingSnapshot(len(data) if size is None else size)
    bounds = [0, *sorted(cuts or []), len(data)]
    found = [batch for start, end in pairwise(bounds) for batch in arriving.add(data[start:end])]
    arriving.demand_whole()
    return found


@given(st.lists(st.integers(0, len(SNAPSHOT))))
def test_however_it_is_cut_its_batches_are_the_same(cuts: list[int]) -> None:
    assert arrived(SNAPSHOT, cuts) == [HEADER, DATA, FOOTER]


# The partition leader epoch is outside the CRC.
EPOCHS = {start + byte for start in (0, HEADER_END, DATA_END) for byte in range(12, 16)}
SEALED = sorted(set(range(len(SNAPSHOT))) - EPOCHS)


@given(st.sampled_from(SEALED), st.integers(0, 7), st.integers(1, 200))
def test_no_bit_can_differ(byte: int, bit: int, chunk: int) -> None:
    damaged = bytearray(SNAPSHOT)
    damaged[byte] ^= 1 << bit
    handed_out: list[bytes] = []
    arriving = ArrivingSnapshot(len(damaged))

    def receive() -> None:
        for start in range(0, len(damaged), chunk):
            handed_out.extend(arriving.add(bytes(damaged[start : start + chunk])))
        arriving.demand_whole()

    with pytest.raises(DecodeError):
        receive()
    assert SNAPSHOT.startswith(b"".join(handed_out))
    assert arriving.position == len(b"".join(handed_out)) <= byte


@pytest.mark.parametrize(
    ("data", "size", "reason", "position"),
    [
        (b"", 0, "does not end with a footer", 0),
        (HEADER, None, "does not end with a footer", len(HEADER)),
        (SNAPSHOT, len(SNAPSHOT) + 1, "continues after its footer", len(SNAPSHOT)),
        (HEADER + DATA, len(SNAPSHOT), "75 of its 369 bytes are missing", DATA_END),
        (SNAPSHOT[:-1], len(SNAPSHOT), "bytes are missing", DATA_END),
        (SNAPSHOT[:-1], None, "batch claims", DATA_END),
        (SNAPSHOT, len(SNAPSHOT) - 1, "snapshot continues after its", len(SNAPSHOT) - 1),
        (SNAPSHOT + HEADER, None, "continues after its footer", len(SNAPSHOT)),
        (SNAPSHOT + b"\0", None, "continues after its footer", len(SNAPSHOT)),
        (DATA + FOOTER, None, "batch begins with offset 1, not 0", 0),
        (encode_batch([Record(0, 0, None, b"v")]), None, "does not begin with a header", 0),
        (HEADER + FOOTER, None, "batch begins with offset", len(HEADER)),
        (HEADER + DATA + DATA, None, "batch begins with offset 1, not 6", DATA_END),
        (HEADER + DATA + FOOTER_AS_IF_COMPRESSED, None, "zstd.*, in a record of the batch", DATA_END),
        (b"\0" * 200, None, "magic 0 is not 2", 16),
        (b"HTTP/1.1 400 Bad Request\r\n" * 9, None, "magic", 16),
    ],
)
def test_what_is_no_snapshot_is_refused_with_its_position(
    data: bytes, size: int | None, reason: str, position: int
) -> None:
    with pytest.raises(DecodeError, match=reason) as refused:
        arrived(data, [len(data) // 2], size)

    assert refused.value.position == position


def test_the_snapshots_of_real_controllers_arrive(captures: Path) -> None:
    files = list(captures.rglob("*.checkpoint"))

    assert len(files) >= 20
    for file in files:
        data = file.read_bytes()
        assert b"".join(arrived(data, list(range(0, len(data), 100)))) == data


def test_what_was_cut_off_can_arrive_again() -> None:
    arriving = ArrivingSnapshot(len(SNAPSHOT))
    first = list(arriving.add(SNAPSHOT[: DATA_END - 1]))
    arriving.forget_rest()

    assert first == [HEADER]
    assert list(arriving.add(SNAPSHOT[arriving.position :])) == [DATA, FOOTER]
    arriving.demand_whole()
