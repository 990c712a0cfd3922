"""Stores segments as Aiven's storage manager does, in the few ways that its configuration allows."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA
from Crypto.PublicKey.RSA import RsaKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tieredctl.ports.layout import Layout, Part, SegmentIdentity
from tieredctl.storage.memory import MemoryStore

_INDEXES = {
    Part.OFFSET_INDEX: "offset",
    Part.TIME_INDEX: "timestamp",
    Part.PRODUCER_SNAPSHOT: "producerSnapshot",
    Part.LEADER_EPOCH: "leaderEpoch",
    Part.TRANSACTION_INDEX: "transaction",
}


@cache
def key_pair() -> RsaKey:
    """The one that segments are encrypted for; made once, since that takes a while."""
    return RSA.generate(2048)


def private_key() -> str:
    """Its private key in PEM."""
    return key_pair().export_key(pkcs=8).decode()


@dataclass(frozen=True)
class AivenStorageManager:
    """Its configuration: `chunk.size`, `compression.enabled`, `encryption.enabled`."""

    chunk_size: int = 7
    compression: bool = False
    encryption: bool = False

    def copy_segment(
        self, store: MemoryStore, layout: Layout, segment: SegmentIdentity, parts: Mapping[Part, bytes]
    ) -> None:
        """Stores the objects of a segment that a broker wrote, under the keys that the layout knows."""
        keys = layout.promised_objects(segment)
        for part, data in self.objects(parts).items():
            store.put(keys[part], data)

    def objects(self, parts: Mapping[Part, bytes]) -> dict[Part, bytes]:
        """A segment's log, indexes and manifest."""
        data_key, aad = os.urandom(32), os.urandom(32)
        log = parts[Part.LOG]
        chunks = [self._chunk(log[at : at + self.chunk_size], data_key, aad) for at in _starts(log, self.chunk_size)]
        indexes = {part: self._index(parts[part], data_key, aad) for part in _INDEXES if part in parts}
        manifest = {
            "version": "1",
            "chunkIndex": self._chunk_index(len(log), [len(chunk) for chunk in chunks]),
            "segmentIndexes": _segment_indexes(indexes),
            "compression": self.compression,
        }
        if self.encryption:
            wrapped = PKCS1_OAEP.new(key_pair().public_key(), hashAlgo=SHA3_512).encrypt(data_key)
            manifest["encryption"] = {"dataKey": f"key1:{_base64(wrapped)}", "aad": _base64(aad)}
        return {
            Part.LOG: b"".join(chunks),
            Part.INDEXES: b"".join(indexes.values()),
            Part.MANIFEST: json.dumps(manifest, separators=(",", ":")).encode(),
        }

    def _chunk(self, data: bytes, data_key: bytes, aad: bytes) -> bytes:
        compressed = zstd(data) if self.compression else data
        return _encrypted(compressed, data_key, aad) if self.encryption else compressed

    def _index(self, data: bytes, data_key: bytes, aad: bytes) -> bytes:
        return _encrypted(data, data_key, aad) if self.encryption and data else data

    def _chunk_index(self, file_size: int, sizes: Sequence[int]) -> dict[str, Any]:
        common = {"originalChunkSize": self.chunk_size, "originalFileSize": file_size}
        if self.compression:
            listed = zstd(encoded_sizes(sizes))
            return {"type": "variable", **common, "transformedChunks": _base64(listed)}
        first, last = (sizes[0], sizes[-1]) if sizes else (0, 0)
        return {"type": "fixed", **common, "transformedChunkSize": first, "finalTransformedChunkSize": last}


def zstd(data: bytes) -> bytes:
    """One frame that states its content's size, as the plugin demands."""
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


def encoded_sizes(sizes: Sequence[int]) -> bytes:
    """The list of chunk sizes: a base, and how much each but the last is above it, in as few bytes as they need."""
    if len(sizes) <= 1:
        return len(sizes).to_bytes(4, "big") + b"".join(size.to_bytes(4, "big") for size in sizes)
    *others, last = sizes
    base = min(others)
    width = max((max(others) - base).bit_length() + 7, 8) // 8
    listed = b"".join((size - base).to_bytes(width, "big") for size in others)
    return len(sizes).to_bytes(4, "big") + base.to_bytes(4, "big") + bytes([width]) + listed + last.to_bytes(4, "big")


def _segment_indexes(indexes: Mapping[Part, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(_INDEXES.values())
    position = 0
    for part, data in indexes.items():
        found[_INDEXES[part]] = {"position": position, "size": len(data)}
        position += len(data)
    return found


def _encrypted(data: bytes, data_key: bytes, aad: bytes) -> bytes:
    vector = os.urandom(12)
    return vector + AESGCM(data_key).encrypt(vector, data, aad)


def _starts(data: bytes, size: int) -> range:
    return range(0, len(data), size)


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
