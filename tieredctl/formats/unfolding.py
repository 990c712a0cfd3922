"""Decompression into as much memory as is allowed, and not a byte more."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.errors import DecodeError

_FULL = "failed to write whole buffer"
"""What cramjam says where the output does not fit."""


def unfolded(
    codec: str, decompress_into: Callable[[memoryview, bytearray], int], data: memoryview, most: int, limit: int
) -> bytes:
    """What compressed bytes stand for, which are `most` bytes at most. Raises DecodeError where the codec refuses them,
    and where they stand for more than `limit`: then no more than that was ever held."""
    from cramjam import DecompressionError

    output = bytearray(min(most, limit))  # the system gives memory to those pages only that are written to
    try:
        length = decompress_into(data, output)
    except DecompressionError as error:
        if _FULL in str(error):
            raise DecodeError(f"{codec} input unfolds beyond {len(output)} bytes", 0) from None
        raise DecodeError(f"{codec} refuses the input ({error})", 0) from None
    return bytes(memoryview(output)[:length])
