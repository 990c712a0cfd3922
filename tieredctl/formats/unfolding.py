"""Decompression into as much memory as is allowed, and not a byte more."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.errors import DecodeError

_FULL = "failed to write whole buffer"
"""cramjam's message where the output does not fit."""


def unfolded(
    codec: str, decompress_into: Callable[[memoryview, bytearray], int], data: memoryview, most: int, limit: int
) -> bytes:
    """Compressed bytes, decompressed to at most `most` bytes. Raises DecodeError where the codec rejects them, and
    where they unfold beyond `limit`: more than that is never held."""
    from cramjam import DecompressionError

    output = bytearray(min(most, limit))  # the system only allocates pages that are written to
    try:
        length = decompress_into(data, output)
    except DecompressionError as error:
        if _FULL in str(error):
            raise DecodeError(f"{codec} input unfolds beyond {len(output)} bytes", 0) from None
        raise DecodeError(f"{codec} rejects the input ({error})", 0) from None
    return bytes(memoryview(output)[:length])
