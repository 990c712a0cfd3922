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

ZIGZAG = [(0, "00"), (-1, "01"), (1, "02"), (5, "0a"), (-64, "7f"), (64, "8001"), (1000, "d00f")]
UNSIGNED = [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")]


@pytest.mark.parametrize(("value", "encoded"), ZIGZAG)
def test_zigzag_varint(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert varint(value) == data
    assert read_varint(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "encoded"), [*ZIGZAG, (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ff" * 9 + "01")]
)
def test_zigzag_varlong(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert varlong(value) == data
    assert read_varlong(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED)
def test_unsigned_varint(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)

    assert unsigned_varint(value) == data
    assert read_unsigned_varint(data, 0, len(data)) == (value, len(data))


@pytest.mark.parametrize("encoded", ["", "80", "ffffffffff", "ffffffff1f"])
def test_a_varint_that_does_not_end_or_is_too_wide_is_refused(encoded: str) -> None:
    data = bytes.fromhex(encoded)

    with pytest.raises(DecodeError) as refused:
        read_unsigned_varint(data, 0, len(data))
    assert refused.value.position == 0


def test_no_byte_at_the_end_or_beyond_is_read() -> None:
    data = bytes.fromhex("8001")

    with pytest.raises(DecodeError):
        read_unsigned_varint(data, 0, 1)
