"""Undoes what the plugin does to chunks: compresses each as a zstd frame, then encrypts it with AES-256-GCM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tieredctl.errors import DecodeError
from tieredctl.formats.compression import most_unfolded
from tieredctl.formats.zstd_frame import decompress_zstd

_VECTOR_BYTES = 12
Decrypt = Callable[[memoryview], bytes]


class Undo(Protocol):
    """Returns a chunk as the broker wrote it, given its size in bytes there. Raises DecodeError."""

    def __call__(self, stored: memoryview, size: int, *, compression: bool) -> bytes: ...


def undo(data_key: bytes | None = None, aad: bytes = b"") -> Undo:
    """For a segment with this data key, or without one for a segment that is not encrypted."""
    decrypt: Decrypt = bytes if data_key is None else _decryption(data_key, aad)

    def undo_one(stored: memoryview, size: int, *, compression: bool) -> bytes:
        chunk = decrypt(stored)
        if compression:
            chunk = decompress_zstd(memoryview(chunk), min(size, most_unfolded(len(chunk))))
        if len(chunk) != size:
            raise DecodeError(f"the chunk has {len(chunk)} bytes where the broker wrote {size}", 0)
        return chunk

    return undo_one


def _decryption(data_key: bytes, aad: bytes) -> Decrypt:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher = AESGCM(data_key)

    def decrypt(stored: memoryview) -> bytes:
        try:
            return cipher.decrypt(stored[:_VECTOR_BYTES], stored[_VECTOR_BYTES:], aad)
        except (InvalidTag, ValueError):  # a truncated vector is invalid
            raise DecodeError("AES-GCM rejects the bytes", 0) from None

    return decrypt
