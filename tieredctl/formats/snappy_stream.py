"""Snappy in snappy-java's framing: a header, then blocks with their lengths (xerial's SnappyInputStream)."""

from __future__ import annotations

import struct

from tieredctl.errors import DecodeError, UnfoldsTooFar
from tieredctl.formats.schema import Field, Primitive, Struct

_MAGIC = b"\x82SNAPPY\0"
_VERSIONS = Struct("SnappyHeader", (Field("version", Primitive.INT32), Field("compatibleVersion", Primitive.INT32)))
_VERSIONS_LAYOUT = struct.Struct(_VERSIONS.fixed_format)
_HEADER_BYTES = len(_MAGIC) + _VERSIONS_LAYOUT.size
_VERSION = 1
_LENGTH = struct.Struct(">i")
_LENGTH_IN_MAGIC = _LENGTH.unpack_from(_MAGIC)[0]
"""What a block's length reads as where a concatenated stream begins instead."""
_BLOCK_BYTES = 1 << 15

# The format's densest element is a copy: three bytes for 64.
_MOST_UNFOLDED, _BY_COMPRESSED = 64, 3


def decompress_snappy(data: memoryview, limit: int) -> bytes:
    """A framed stream, several of them in a row, or a bare block. Raises DecodeError."""
    if bytes(data[: len(_MAGIC)]) != _MAGIC or len(data) < _HEADER_BYTES:
        return _decompress_block(data, 0, limit)
    output = bytearray()
    position = 0
    while position < len(data):
        if len(data) - position < _LENGTH.size:
            raise DecodeError("snappy stream ends inside a block's length", position)
        length = _LENGTH.unpack_from(data, position)[0]
        if length == _LENGTH_IN_MAGIC:
            position = _pass_header(data, position)
            continue
        start, position = position + _LENGTH.size, position + _LENGTH.size + length
        if length < 0 or position > len(data):
            raise DecodeError(f"snappy block claims {length} bytes where {len(data) - start} are left", start)
        output += _decompress_block(data[start:position], start, limit - len(output))
    return bytes(output)


def compress_snappy(data: bytes) -> bytes:
    """One framed stream of 32 KiB blocks, as Kafka's producer writes it."""
    from cramjam import snappy

    parts = [_MAGIC, _VERSIONS_LAYOUT.pack(_VERSION, _VERSION)]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _pass_header(data: memoryview, position: int) -> int:
    header = bytes(data[position : position + _HEADER_BYTES])
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise DecodeError("snappy stream has no header", position)
    version = _VERSIONS_LAYOUT.unpack_from(header, len(_MAGIC))[0]
    if version < _VERSION:
        raise DecodeError(f"snappy stream has version {version}", position + len(_MAGIC))
    return position + _HEADER_BYTES


def _decompress_block(block: memoryview, position: int, limit: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        claimed = snappy.decompress_raw_len(block)
        # The decoder allocates what the block claims before it looks at the rest.
        if claimed * _BY_COMPRESSED > len(block) * _MOST_UNFOLDED:
            raise DecodeError(f"snappy block of {len(block)} bytes claims {claimed}", position)
        if claimed > limit:
            raise UnfoldsTooFar(f"snappy input unfolds beyond its limit: a block claims {claimed} bytes", position)
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise DecodeError(f"snappy rejects a block ({error})", position) from None
