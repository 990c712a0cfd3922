"""Variable-length integers: unsigned LEB128, and zigzag on top of it (Kafka's ByteUtils)."""

from __future__ import annotations

from tieredctl.errors import DecodeError

Buffer = bytes | bytearray | memoryview

_INT_BITS, _LONG_BITS = 32, 64
_LONG = 0x80
"""The bit of a byte after which more follow."""


def read_unsigned_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """An unsigned 32-bit varint and the position after it. Reads no byte at or beyond `end`."""
    if position < end and (byte := buffer[position]) < _LONG:  # most are
        return byte, position + 1
    return _read(buffer, position, end, _INT_BITS)


def read_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """A zigzag 32-bit varint and the position after it."""
    if position < end and (raw := buffer[position]) < _LONG:
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw, position = _read(buffer, position, end, _INT_BITS)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """A zigzag 64-bit varint and the position after it."""
    if position < end and (raw := buffer[position]) < _LONG:
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw, position = _read(buffer, position, end, _LONG_BITS)
    return (raw >> 1) ^ -(raw & 1), position


def _read(buffer: Buffer, position: int, end: int, bits: int) -> tuple[int, int]:
    value = shift = 0
    start = position
    while position < end and shift < bits:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                raise DecodeError(f"varint above {bits} bits", start)
            return value, position
        shift += 7
    raise DecodeError("varint without an end", start)


def unsigned_varint(value: int) -> bytes:
    """The shortest encoding of a value that is not negative."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def varint(value: int) -> bytes:
    """The shortest zigzag encoding of a 32-bit value."""
    return unsigned_varint((value << 1) ^ (value >> (_INT_BITS - 1)))


def varlong(value: int) -> bytes:
    """The shortest zigzag encoding of a 64-bit value."""
    return unsigned_varint((value << 1) ^ (value >> (_LONG_BITS - 1)))
