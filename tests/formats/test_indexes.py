"""Offset, time and transaction index, byte for byte (OffsetIndex, TimeIndex, TransactionIndex)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    encode_offset_index,
    encode_time_index,
    encode_transaction_index,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)

OFFSET_ENTRY, OFFSET_BYTES = OffsetIndexEntry(5, 4096), bytes.fromhex("0000000500001000")
TIME_ENTRY, TIME_BYTES = TimeIndexEntry(1700000000005, 1), bytes.fromhex("0000018bcfe5680500000001")
TRANSACTION = AbortedTransaction(producer_id=5, first_offset=100, last_offset=101, last_stable_offset=103)
TRANSACTION_BYTES = bytes.fromhex("00000000000000000005000000000000006400000000000000650000000000000067")


def test_offset_index_entry() -> None:
    assert read_offset_index(OFFSET_BYTES) == [OFFSET_ENTRY]
    assert encode_offset_index([OFFSET_ENTRY]) == OFFSET_BYTES


def test_time_index_entry() -> None:
    assert read_time_index(TIME_BYTES) == [TIME_ENTRY]
    assert encode_time_index([TIME_ENTRY]) == TIME_BYTES


def test_transaction_index_entry() -> None:
    assert read_transaction_index(TRANSACTION_BYTES) == [TRANSACTION]
    assert encode_transaction_index([TRANSACTION]) == TRANSACTION_BYTES


@pytest.mark.parametrize("read", [read_offset_index, read_time_index, read_transaction_index])
def test_an_empty_index_is_normal(read: Callable[[bytes], list[object]]) -> None:
    assert read(b"") == []


def test_the_preallocated_tail_of_an_active_segment_holds_no_entries() -> None:
    assert read_offset_index(OFFSET_BYTES + bytes(10485760 - 8)) == [OFFSET_ENTRY]
    assert read_time_index(TIME_BYTES + bytes(12 * 1000)) == [TIME_ENTRY]
    assert read_offset_index(bytes(10485760)) == []


def test_an_entry_of_zeros_is_real_as_the_first() -> None:
    assert read_offset_index(bytes(8)) == [OffsetIndexEntry(0, 0)]
    assert read_offset_index(bytes(8) + OFFSET_BYTES) == [OffsetIndexEntry(0, 0), OFFSET_ENTRY]


def test_an_entry_may_end_in_zeros() -> None:
    entries = [OffsetIndexEntry(1, 256), OffsetIndexEntry(2, 1 << 24)]

    assert read_offset_index(encode_offset_index(entries) + bytes(80)) == entries


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (OFFSET_BYTES[:-1], 0),
        (OFFSET_BYTES + b"\0\0\0", 8),
        (OFFSET_BYTES * 2, 8),
        (OFFSET_BYTES + bytes(8) + OFFSET_BYTES, 8),
        (bytes.fromhex("ffffffff00001000"), 0),
        (bytes.fromhex("0000000580001000"), 0),
    ],
)
def test_a_damaged_offset_index_is_refused_where_it_is_damaged(data: bytes, position: int) -> None:
    with pytest.raises(DecodeError) as refused:
        read_offset_index(data)
    assert refused.value.position == position


@pytest.mark.parametrize("data", [TIME_BYTES * 2, TIME_BYTES[:-1], bytes.fromhex("ffffffffffffffff00000001")])
def test_a_damaged_time_index_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_time_index(data)


@pytest.mark.parametrize("data", [TRANSACTION_BYTES * 2, TRANSACTION_BYTES[:-1], b"\0\1" + TRANSACTION_BYTES[2:]])
def test_a_damaged_transaction_index_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_transaction_index(data)
