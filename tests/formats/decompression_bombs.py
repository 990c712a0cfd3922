"""Metadata logs whose few bytes stand for very many."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from crc32c import crc32c

from tieredctl.formats.compression import Codec, compress
from tieredctl.formats.record_batches import CRC_FROM, LOG_OVERHEAD, MAGIC

EMPTY_RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"
"""Neither key nor value nor headers."""
_ZSTD_BLOCK = 1 << 17
_ZSTD_RUN = 1


def zstd_run(size: int, stated: int | None = None) -> bytes:
    """A frame of so many zeros, a multiple of 128 KiB, which may state another size."""
    head = bytes([0x00, 0x58]) if stated is None else bytes([0xA0]) + stated.to_bytes(4, "little")
    count = size // _ZSTD_BLOCK
    blocks = [
        (_ZSTD_BLOCK << 3 | _ZSTD_RUN << 1 | (block == count - 1)).to_bytes(3, "little") for block in range(count)
    ]
    return bytes.fromhex("28b52ffd") + head + b"".join(block + b"\0" for block in blocks)


def gzip_run(size: int) -> bytes:
    member = zlib.compressobj(wbits=zlib.MAX_WBITS + 16)
    piece = bytes(1 << 20)
    return b"".join(member.compress(piece) for _ in range(size >> 20)) + member.flush()


def batch(codec: Codec, section: bytes, records: int, base_offset: int = 0) -> bytes:
    """A batch with a right CRC, whatever its records section is."""
    body = struct.pack(">hiqqqhii", codec, records - 1, 0, 0, -1, -1, -1, records) + section
    return struct.pack(">qiibI", base_offset, len(body) + CRC_FROM - LOG_OVERHEAD, 0, MAGIC, crc32c(body)) + body


def empty_records(count: int, codec: Codec) -> bytes:
    """A batch of records in which nothing is."""
    return batch(codec, compress(codec, EMPTY_RECORD * count), count)


def _runs(codec: Codec, section: Callable[[], bytes], count: int) -> bytes:
    packed = section()
    return b"".join(batch(codec, packed, 1_000, 1_000 * number) for number in range(count))


GIBIBYTE = 1 << 30
BOMBS: dict[str, Callable[[], bytes]] = {
    "a zstd frame of 1 GiB": partial(_runs, Codec.ZSTD, partial(zstd_run, GIBIBYTE), 1),
    "a zstd frame of 1 GiB that states 10 bytes": partial(_runs, Codec.ZSTD, partial(zstd_run, GIBIBYTE, 10), 1),
    "twenty zstd frames of 1 GiB": partial(_runs, Codec.ZSTD, partial(zstd_run, GIBIBYTE), 20),
    "twenty zstd frames of 60 MiB": partial(_runs, Codec.ZSTD, partial(zstd_run, 60 << 20), 20),
    "gzip of 256 MiB": partial(_runs, Codec.GZIP, partial(gzip_run, 256 << 20), 4),
    "lz4 of 256 MiB": partial(_runs, Codec.LZ4, lambda: compress(Codec.LZ4, bytes(256 << 20)), 4),
    "three million empty records": partial(empty_records, 3_000_000, Codec.GZIP),
    "three million empty records, not compressed": partial(empty_records, 3_000_000, Codec.NONE),
}


def write_log(log_dir: Path, batches: Sequence[bytes]) -> None:
    """A log directory with one metadata partition."""
    folder = log_dir / "__remote_log_metadata-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
