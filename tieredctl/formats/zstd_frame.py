"""Zstandard frames (RFC 8878): what they can unfold to at most is known from their blocks, before a codec works.

The size that a frame's header states is not relied on: a decoder only looks at it when the frame ends.
"""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.errors import DecodeError, UnfoldsTooFar

_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC, _SKIPPABLE_MASK = 0x184D2A50, 0xFFFFFFF0
_WORD = 4

_SINGLE_SEGMENT, _CONTENT_CHECKSUM = 1 << 5, 1 << 2
_CONTENT_SIZE_SHIFT, _DICTIONARY_MASK = 6, 0b11
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)

_BLOCK_HEADER_BYTES = 3
_RAW_BLOCK, _RUN_BLOCK, _COMPRESSED_BLOCK = range(3)
_LARGEST_BLOCK = 1 << 17

_KAFKA_LEVEL = 3


def decompress_zstd(data: memoryview, limit: int) -> bytes:
    """All frames of the input. Raises DecodeError."""
    from cramjam import zstd

    return unfolded("zstd", zstd.decompress_into, data, _most_content(data), limit)


def compress_zstd(data: bytes) -> bytes:
    """One frame at Kafka's default level."""
    from cramjam import zstd

    return bytes(zstd.compress(data, level=_KAFKA_LEVEL))


def _most_content(data: memoryview) -> int:
    """The most bytes that the frames can unfold to."""
    if not data:
        raise DecodeError("zstd input is empty", 0)
    position = most = 0
    while position < len(data):
        magic, after_magic = _number(data, position, _WORD), position + _WORD
        if magic & _SKIPPABLE_MASK == _SKIPPABLE_MAGIC:
            position = after_magic + _WORD + _number(data, after_magic, _WORD)
            if position > len(data):
                raise DecodeError("zstd input ends inside a skippable frame", after_magic)
        elif magic == _MAGIC:
            content, position = _frame_content(data, after_magic)
            most += content
        else:
            raise DecodeError("not a zstd frame", position)
    return most


def _frame_content(data: memoryview, position: int) -> tuple[int, int]:
    """The most bytes that one frame can unfold to, and the position after the frame."""
    descriptor = _number(data, position, 1)
    position = _after_header(position, descriptor)
    most, last = 0, False
    while not last:
        header = _number(data, position, _BLOCK_HEADER_BYTES)
        last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
        if kind > _COMPRESSED_BLOCK or size > _LARGEST_BLOCK:
            raise DecodeError(f"zstd block of type {kind} claims {size} bytes", position)
        most += _LARGEST_BLOCK if kind == _COMPRESSED_BLOCK else size
        position += _BLOCK_HEADER_BYTES + (1 if kind == _RUN_BLOCK else size)
    position += _WORD if descriptor & _CONTENT_CHECKSUM else 0
    if position > len(data):
        raise DecodeError("zstd input ends inside a frame", len(data))
    return most, position


def _after_header(position: int, descriptor: int) -> int:
    """Where the first block begins of a frame whose descriptor is at `position`."""
    single_segment = descriptor & _SINGLE_SEGMENT
    window = 0 if single_segment else 1
    content_size = _CONTENT_SIZE_BYTES[descriptor >> _CONTENT_SIZE_SHIFT] or (1 if single_segment else 0)
    return position + 1 + window + _DICTIONARY_ID_BYTES[descriptor & _DICTIONARY_MASK] + content_size


def _number(data: memoryview, position: int, width: int) -> int:
    if position + width > len(data):
        raise DecodeError("zstd input ends inside a frame", min(position, len(data)))
    return int.from_bytes(data[position : position + width], "little")


_FULL = "failed to write whole buffer"
"""cramjam's message where the output does not fit."""


def unfolded(
    codec: str, decompress_into: Callable[[memoryview, memoryview], int], data: memoryview, most: int, limit: int
) -> bytes:
    """Compressed bytes, decompressed to at most `most` bytes. Raises DecodeError where the codec rejects them, and
    where they unfold beyond `limit`: more than that is never held."""
    import numpy as np
    from cramjam import DecompressionError

    output = np.empty(min(most, limit), np.uint8).data  # not cleared: the system gives a page when it is written to
    try:
        length = decompress_into(data, output)
    except DecompressionError as error:
        if _FULL in str(error):
            raise UnfoldsTooFar(f"{codec} input unfolds beyond {len(output)} bytes", 0) from None
        raise DecodeError(f"{codec} rejects the input ({error})", 0) from None
    return bytes(output[:length])
