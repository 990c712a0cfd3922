"""`<offset>.snapshot`, byte for byte (ProducerStateManager)."""

from __future__ import annotations

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot, read_producer_snapshot

ENTRY = ProducerEntry(
    producer_id=5,
    epoch=0,
    last_sequence=8,
    last_offset=101,
    offset_delta=1,
    timestamp=1700000000005,
    coordinator_epoch=9,
    current_txn_first_offset=-1,
)
ONE_PRODUCER = bytes.fromhex(
    "00012cc009d00000000100000000000000050000000000080000000000000065000000010000018bcfe5680500000009ffffffffffffffff"
)
NO_PRODUCER = bytes.fromhex("000148674bc700000000")


@pytest.mark.parametrize(("entries", "data"), [([ENTRY], ONE_PRODUCER), ([], NO_PRODUCER)])
def test_golden_bytes_are_read_and_written(entries: list[ProducerEntry], data: bytes) -> None:
    assert read_producer_snapshot(data) == entries
    assert encode_producer_snapshot(entries) == data


@pytest.mark.parametrize("position", range(len(ONE_PRODUCER)))
def test_a_flipped_bit_anywhere_is_noticed(position: int) -> None:
    damaged = bytearray(ONE_PRODUCER)
    damaged[position] ^= 1

    with pytest.raises(DecodeError):
        read_producer_snapshot(bytes(damaged))


@pytest.mark.parametrize("data", [b"", ONE_PRODUCER[:-1], ONE_PRODUCER + b"\0", NO_PRODUCER[:9]])
def test_another_length_than_the_count_says_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_producer_snapshot(data)
