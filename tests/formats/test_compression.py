"""Framings of the four codecs, and what they refuse (Kafka's compress package, xerial's snappy-java)."""

from __future__ import annotations

import gzip
import os

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.compression import Codec, compress, decompress

COMPRESSING = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
CONTENTS = {
    "nothing": b"",
    "two bytes": b"hi",
    "more than a block": bytes(range(256)) * 1000,
    "what does not shrink": os.urandom(200_000),
}
SNAPPY_HI = bytes.fromhex("82534e41505059000000000100000001 00000004 02046869")
LZ4_HI = bytes.fromhex("04224d1860408202000080686900000000")


def test_framing_of_two_bytes() -> None:
    for codec, framed in {Codec.SNAPPY: SNAPPY_HI, Codec.LZ4: LZ4_HI}.items():
        assert compress(codec, b"hi") == framed, codec
        assert decompress(codec, framed) == b"hi", codec
    assert decompress(Codec.SNAPPY, SNAPPY_HI[20:]) == b"hi"  # one bare block without a header


@pytest.mark.parametrize("codec", list(Codec))
def test_what_is_compressed_comes_back(codec: Codec) -> None:
    for name, content in CONTENTS.items():
        assert decompress(codec, compress(codec, content)) == content, name


def test_concatenated_streams_are_one_section() -> None:
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD):
        assert decompress(codec, compress(codec, b"one,") + compress(codec, b"two")) == b"one,two", codec


def test_gzip_members_may_be_many_and_tiny() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"x") * 2000) == b"x" * 2000


def test_lz4_flags_that_kafka_never_writes_are_understood() -> None:
    """Content size, content checksum, block checksums: other clients may set them."""
    for frame in (
        "04224d1868400200000000000000a0 020000806869 00000000",
        "04224d186440a7 020000806869 00000000 64a5a7da",
        "04224d187040ad 020000806869 64a5a7da 00000000",
    ):
        assert decompress(Codec.LZ4, bytes.fromhex(frame)) == b"hi", frame


LZ4_REFUSED = {
    "blocks that depend on each other": ("04224d18404000020000806869 00000000", "depend on each other"),
    "another version": ("04224d18a0408202000080686900000000", "flags 0xa0"),
    "a dictionary": ("04224d1861408202000080686900000000", "flags 0x61"),
    "blocks of an unknown size": ("04224d1860308202000080686900000000", "block descriptor 0x30"),
    "a header with another checksum": ("04224d1860408302000080686900000000", "rejects the input"),
    "a block larger than announced": ("04224d18604082ffffff0068690000", "claims 16777215 bytes"),
    "no end mark": ("04224d186040820200008068 69", "no end mark"),
    "another magic": ("03224d1860408202000080686900000000", "not an lz4 frame"),
    "something after its end": ("04224d186040820200008068690000000000", "different places"),
}


def test_an_lz4_frame_is_refused_that_has() -> None:
    for name, (frame, reason) in LZ4_REFUSED.items():
        with pytest.raises(DecodeError, match=reason):
            pytest.fail(f"{name}: {decompress(Codec.LZ4, bytes.fromhex(frame))!r}")


HOSTILE = {
    "snappy block that claims 2 GiB in nine bytes": (Codec.SNAPPY, "ffffffff07 61616161"),
    "snappy stream whose block is longer than the stream": (Codec.SNAPPY, SNAPPY_HI[:16].hex() + "7fffffff 0204"),
    "snappy stream with a negative length": (Codec.SNAPPY, SNAPPY_HI[:16].hex() + "fffffff0 0204"),
    "zstd frame that states a size of 2^62": (Codec.ZSTD, "28b52ffd e0 0000000000000040 010000"),
    "zstd runs that pass the limit": (Codec.ZSTD, "28b52ffd 00 58" + "02001061" * 9000 + "03001061"),
    "zstd frame with a block of 2 MiB": (Codec.ZSTD, "28b52ffd 00 58 fbffff 61"),
    "gzip stream cut short": (Codec.GZIP, compress(Codec.GZIP, b"hi")[:-1].hex()),
    "gzip stream with something after it": (Codec.GZIP, compress(Codec.GZIP, b"hi").hex() + "00"),
    "gzip of nothing": (Codec.GZIP, ""),
    "zstd of nothing": (Codec.ZSTD, ""),
    "snappy of nothing": (Codec.SNAPPY, ""),
    "lz4 of nothing": (Codec.LZ4, ""),
}


@pytest.mark.parametrize(("codec", "data"), HOSTILE.values(), ids=HOSTILE.keys())
def test_refused(codec: Codec, data: str) -> None:
    with pytest.raises(DecodeError):
        decompress(codec, bytes.fromhex(data))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_nothing_unfolds_beyond_the_limit(codec: Codec) -> None:
    folded = compress(codec, bytes(50_000_000))

    with pytest.raises(DecodeError):
        decompress(codec, folded, limit=1_000_000)
