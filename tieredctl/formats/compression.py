"""The five codecs of a batch's records section (Kafka's org.apache.kafka.common.compress)."""

from __future__ import annotations

import zlib
from enum import IntEnum

from tieredctl.errors import DecodeError, UnfoldsTooFar
from tieredctl.formats.lz4_frame import compress_lz4, decompress_lz4
from tieredctl.formats.snappy_stream import compress_snappy, decompress_snappy
from tieredctl.formats.varints import Buffer
from tieredctl.formats.zstd_frame import compress_zstd, decompress_zstd


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_ALWAYS_ALLOWED = 64 << 20
_MOST_UNFOLDED = 64
_LARGEST = 1 << 30

_GZIP_FRAMING = zlib.MAX_WBITS + 16
# zlib unfolds a byte to at most 1,032: a step overshoots the limit by 16 MiB at most. Small steps also keep
# what follows a member, which zlib copies each time, short.
_GZIP_STEP = 1 << 14


def most_unfolded(compressed: int) -> int:
    """The most bytes that `compressed` bytes may unfold to before they are taken for hostile.

    A broker's max.message.bytes limits the compressed size; nothing limits what it unfolds to. 64 MiB are always
    allowed, which is far more than a producer's batch.size; beyond that, no log shrinks to less than a 64th; and
    1 GiB is the maximum.
    """
    return min(max(_ALWAYS_ALLOWED, _MOST_UNFOLDED * compressed), _LARGEST)


def decompress(codec: Codec, data: Buffer, *, limit: int | None = None) -> bytes:
    """A records section without its compression. Raises DecodeError on bytes that the codec refuses, UnfoldsTooFar
    on those that pass `limit`, by default `most_unfolded`; never holds more memory than a small
    multiple of what it gives back."""
    data = memoryview(data)
    limit = most_unfolded(len(data)) if limit is None else limit
    if codec is Codec.GZIP:
        return _decompress_gzip(data, limit)
    if codec is Codec.SNAPPY:
        return decompress_snappy(data, limit)
    if codec is Codec.LZ4:
        return decompress_lz4(data, limit)
    if codec is Codec.ZSTD:
        return decompress_zstd(data, limit)
    return bytes(data)


def compress(codec: Codec, data: bytes) -> bytes:
    """A records section in the framing that Kafka's own producer uses for the codec."""
    if codec is Codec.GZIP:
        member = zlib.compressobj(wbits=_GZIP_FRAMING)
        return member.compress(data) + member.flush()
    if codec is Codec.SNAPPY:
        return compress_snappy(data)
    if codec is Codec.LZ4:
        return compress_lz4(data)
    if codec is Codec.ZSTD:
        return compress_zstd(data)
    return data


def _decompress_gzip(data: memoryview, limit: int) -> bytes:
    """One gzip member after another, as java.util.zip.GZIPInputStream reads them."""
    if not data:
        raise DecodeError("gzip stream is empty", 0)
    output = bytearray()
    position = 0
    while position < len(data):
        member = zlib.decompressobj(_GZIP_FRAMING)
        while not member.eof:
            step = data[position : position + _GZIP_STEP]
            if not step:
                raise DecodeError("gzip stream is cut short", position)
            try:
                output += member.decompress(step)
            except zlib.error as error:
                raise DecodeError(f"gzip rejects the stream ({error})", position) from None
            position += len(step) - len(member.unused_data)
            if len(output) > limit:
                raise UnfoldsTooFar(f"gzip stream unfolds beyond {limit} bytes", position)
    return bytes(output)
