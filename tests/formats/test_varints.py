"""Variable-length integers, as Kafka's ByteUtils writes them."""

from __future__ import annotations

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.varints import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint,
    varint,
    varlong,
)

ZIGZAG = {0: "00", -1: "01", 1: "02", 5: "0a", -64: "7f", 64: "8001", 1000: "d00f"}
LONG = {2**63 - 1: "feffffffffffffffff01", -(2**63): "ff" * 9 + "01"}
UNSIGNED = {0: "00", 127: "7f", 128: "8001", 300: "ac02", 2**32 - 1: "ffffffff0f"}


def test_numbers_are_written_and_read() -> None:
    for write, read, known in (
        (varint, read_varint, ZIGZAG),
        (varlong, read_varlong, ZIGZAG | LONG),
        (unsigned_varint, read_unsigned_varint, UNSIGNED),
    ):
        for value, encoded in known.items():
            data = bytes.fromhex(encoded)

            assert write(value) == data, (write, value)
            assert read(data, 0, len(data)) == (value, len(data)), (read, value)


def test_a_varint_that_does_not_end_or_is_too_wide_is_refused() -> None:
    for encoded in ("", "80", "ffffffffff", "ffffffff1f"):
        data = bytes.fromhex(encoded)

        with pytest.raises(DecodeError) as refused:
            pytest.fail(f"{encoded}: {read_unsigned_varint(data, 0, len(data))}")
        assert refused.value.position == 0, encoded


def test_no_byte_at_the_end_or_beyond_is_read() -> None:
    data = bytes.fromhex("8001")

    with pytest.raises(DecodeError):
        read_unsigned_varint(data, 0, 1)
