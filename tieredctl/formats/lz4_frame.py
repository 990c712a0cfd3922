"""LZ4 frames with Kafka's restrictions (Lz4BlockInputStream, Lz4BlockOutputStream; LZ4 frame format 1.5.1).

The walk over a frame's blocks says what the frame may hold and how far it can unfold, before a codec touches it.
"""

from __future__ import annotations

import struct

from tieredctl.errors import DecodeError
from tieredctl.formats.zstd_frame import unfolded

_MAGIC = b"\x04\x22\x4d\x18"
_LENGTH = struct.Struct("<I")
_STORED_RAW = 1 << 31
_END_MARK = b"\0\0\0\0"
_SHORTEST_HEADER = len(_MAGIC) + 3
_FLAGS_AT, _BLOCK_DESCRIPTOR_AT = len(_MAGIC), len(_MAGIC) + 1

# FLG: two bits of version, then one bit each.
_VERSION_SHIFT, _VERSION = 6, 1
_INDEPENDENT_BLOCKS, _BLOCK_CHECKSUMS, _CONTENT_SIZE, _CONTENT_CHECKSUM = 1 << 5, 1 << 4, 1 << 3, 1 << 2
_RESERVED_FLAGS = 0b11
_RESERVED_DESCRIPTOR = 0b1000_1111
_CONTENT_SIZE_BYTES, _CHECKSUM_BYTES = 8, 4
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}

_MOST_UNFOLDED = 255
"""LZ4's densest element: a length byte that stands for 255."""

_KAFKA_HEADER = _MAGIC + b"\x60\x40\x82"
"""Version 1, independent blocks of at most 64 KiB, no checksums; the third byte is the header's own checksum."""
_KAFKA_BLOCK_BYTES = 1 << 16


def decompress_lz4(data: memoryview, limit: int) -> bytes:
    """One frame and nothing after it. Raises DecodeError where Kafka's reader would refuse the frame, too."""
    from cramjam import lz4

    return unfolded("lz4", lz4.decompress_into, data, _most_content(data), limit)


def compress_lz4(data: bytes) -> bytes:
    """One frame as Kafka's producer writes it; a block that does not shrink is stored raw."""
    from cramjam import lz4

    parts = [_KAFKA_HEADER]
    for start in range(0, len(data), _KAFKA_BLOCK_BYTES):
        raw = data[start : start + _KAFKA_BLOCK_BYTES]
        block = bytes(lz4.compress_block(raw, store_size=False))
        parts += (
            (_LENGTH.pack(len(block)), block) if len(block) < len(raw) else (_LENGTH.pack(len(raw) | _STORED_RAW), raw)
        )
    return b"".join((*parts, _END_MARK))


def with_header_checksum(data: bytes) -> bytes:
    """A frame whose header has the checksum that the LZ4 frame format asks for, whatever it had."""
    if len(data) < _SHORTEST_HEADER:
        return data
    at = _SHORTEST_HEADER - 1 + (_CONTENT_SIZE_BYTES if data[_FLAGS_AT] & _CONTENT_SIZE else 0)
    checksum = _short_xxh32(data[_FLAGS_AT:at]) >> 8 & 0xFF
    return data[:at] + bytes([checksum]) + data[at + 1 :]


_PRIMES = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1)
_WORD_MASK = 0xFFFFFFFF


def _short_xxh32(data: bytes) -> int:
    """XXH32 without a seed of fewer than 16 bytes."""
    digest = _PRIMES[4] + len(data)
    words = len(data) // _LENGTH.size
    for at in range(words):
        digest = _rotated(digest + _LENGTH.unpack_from(data, at * _LENGTH.size)[0] * _PRIMES[2], 17) * _PRIMES[3]
    for byte in data[words * _LENGTH.size :]:
        digest = _rotated(digest + byte * _PRIMES[4], 11) * _PRIMES[0]
    digest &= _WORD_MASK
    for shift, prime in ((15, _PRIMES[1]), (13, _PRIMES[2]), (16, 1)):
        digest = (digest ^ digest >> shift) * prime & _WORD_MASK
    return digest


def _rotated(word: int, by: int) -> int:
    word &= _WORD_MASK
    return (word << by | word >> 32 - by) & _WORD_MASK


def _most_content(data: memoryview) -> int:
    """The most bytes that a frame can unfold to, from its header and the lengths of its blocks."""
    if len(data) < _SHORTEST_HEADER or bytes(data[: len(_MAGIC)]) != _MAGIC:
        raise DecodeError("not an lz4 frame", 0)
    flags, block_size = _frame_flags(data[_FLAGS_AT]), _block_size(data[_BLOCK_DESCRIPTOR_AT])
    position = _SHORTEST_HEADER + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0)
    checksum = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUMS else 0
    most = 0
    while True:
        if position + _LENGTH.size > len(data):
            raise DecodeError("lz4 frame has no end mark", position)
        word = _LENGTH.unpack_from(data, position)[0]
        length = word & ~_STORED_RAW
        if word == 0:
            break
        if not 0 < length <= block_size:
            raise DecodeError(f"lz4 block claims {length} bytes where at most {block_size} are allowed", position)
        most += length if word & _STORED_RAW else min(block_size, length * _MOST_UNFOLDED)
        position += _LENGTH.size + length + checksum
    position += len(_END_MARK) + (_CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0)
    if position != len(data):
        raise DecodeError("lz4 frame and its input end at different places", min(position, len(data)))
    return most


def _frame_flags(flags: int) -> int:
    if flags >> _VERSION_SHIFT != _VERSION or flags & _RESERVED_FLAGS:
        raise DecodeError(f"lz4 frame has flags {flags:#04x}, which Kafka refuses", _FLAGS_AT)
    if not flags & _INDEPENDENT_BLOCKS:
        raise DecodeError("lz4 frame has blocks that depend on each other, which Kafka refuses", _FLAGS_AT)
    return flags


def _block_size(descriptor: int) -> int:
    if descriptor & _RESERVED_DESCRIPTOR or descriptor >> 4 not in _BLOCK_SIZES:
        raise DecodeError(f"lz4 frame has block descriptor {descriptor:#04x}", _BLOCK_DESCRIPTOR_AT)
    return _BLOCK_SIZES[descriptor >> 4]
