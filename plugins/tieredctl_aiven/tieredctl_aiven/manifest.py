"""A segment's manifest (`.rsm-manifest`, the plugin's SegmentManifestV1): JSON that says how its other two objects were
made from what the broker wrote. The plugin never reads back the copy of Kafka's metadata in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.zstd_frame import decompress_zstd
from tieredctl.ports.layout import Part
from tieredctl_aiven.chunk_index import (
    LARGEST_LIST,
    ChunkIndex,
    FixedChunks,
    VariableChunks,
    chunk_count,
    decode_chunk_sizes,
)
from tieredctl_aiven.json_fields import JsonFields

LARGEST_MANIFEST = 2 * LARGEST_LIST
"""In bytes; it contains the list of chunk sizes as base64."""
ENCRYPTED_EXTRA = 28
"""How many bytes a chunk grows by when it is encrypted: 12 of initialisation vector, 16 of authentication tag."""
MANIFEST_SUFFIX = ".rsm-manifest"
"""What the keys of manifests end with."""
_VERSION = "1"
INDEX_FIELDS = {
    Part.OFFSET_INDEX: "offset",
    Part.TIME_INDEX: "timestamp",
    Part.PRODUCER_SNAPSHOT: "producerSnapshot",
    Part.LEADER_EPOCH: "leaderEpoch",
    Part.TRANSACTION_INDEX: "transaction",
}
"""How a manifest names the indexes, in the order in which they are stored."""


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """The bytes of the `.indexes` object that one index takes: from `position` up to, not including, `end`."""

    position: int
    end: int


@dataclass(frozen=True, slots=True)
class Encryption:
    """How a segment is encrypted: with a data key of its own, which the key pair `key_id` wraps."""

    key_id: str
    wrapped_key: bytes = field(repr=False)
    aad: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """How a segment is stored."""

    chunks: ChunkIndex
    indexes: Mapping[Part, StoredIndex]
    """A segment without aborted transactions has no transaction index."""
    compression: bool
    encryption: Encryption | None

    @property
    def indexes_size(self) -> int:
        """How many bytes the `.indexes` object has."""
        return max(index.end for index in self.indexes.values())

    def index_size(self, part: Part) -> int:
        """How many bytes the broker's file had. An empty one takes no bytes, encrypted or not."""
        index = self.indexes[part]
        size = index.end - index.position
        return size - ENCRYPTED_EXTRA if size and self.encryption else size


def read_manifest(data: bytes) -> SegmentManifest:
    """Raises DecodeError, also for an impossible manifest."""
    if len(data) > LARGEST_MANIFEST:
        raise DecodeError("manifest is too large", LARGEST_MANIFEST)
    fields = JsonFields.parse(data, "manifest")
    version = fields.string("version")
    if version != _VERSION:
        raise fields.error("version", f"{version!r} is not known")
    encryption = _encryption(fields.fields("encryption")) if fields.has("encryption") else None
    compression = fields.flag("compression")
    extra = ENCRYPTED_EXTRA if encryption else 0
    chunks = _chunk_index(fields.fields("chunkIndex"), compression, extra)
    return SegmentManifest(chunks, _indexes(fields.fields("segmentIndexes"), extra), compression, encryption)


def _encryption(fields: JsonFields) -> Encryption:
    key_id, colon, wrapped = fields.string("dataKey").partition(":")
    if not colon:
        raise fields.error("dataKey", "does not name a key")
    return Encryption(key_id, fields.decoded("dataKey", wrapped), fields.base64("aad"))


def _chunk_index(fields: JsonFields, compression: bool, extra: int) -> ChunkIndex:
    size, file_size = fields.number("originalChunkSize", least=1), fields.number("originalFileSize")
    count = chunk_count(file_size, size)
    kind = fields.string("type")
    if kind == "variable":
        return ChunkIndex(size, file_size, _variable(fields, count))
    if kind != "fixed":
        raise fields.error("type", f"{kind!r} is not known")
    stored = fields.number("transformedChunkSize"), fields.number("finalTransformedChunkSize")
    # Encrypted chunks grow, and untransformed ones keep their size: the two sizes follow from the file's.
    if not compression and count and (last := file_size - (count - 1) * size) + extra != stored[1]:
        raise fields.error("finalTransformedChunkSize", f"is {stored[1]} for a last chunk of {last} bytes")
    if not compression and count > 1 and stored[0] != size + extra:
        raise fields.error("transformedChunkSize", f"is {stored[0]} for chunks of {size} bytes")
    return ChunkIndex(size, file_size, FixedChunks(count, *stored))


def _variable(fields: JsonFields, count: int) -> VariableChunks:
    name = "transformedChunks"
    compressed = fields.base64(name)
    try:
        sizes = decode_chunk_sizes(decompress_zstd(memoryview(compressed), LARGEST_LIST), count)
    except DecodeError as error:
        raise fields.error(name, f"cannot be read: {error.reason}") from None
    return VariableChunks(np.cumsum(sizes))


def _indexes(fields: JsonFields, extra: int) -> dict[Part, StoredIndex]:
    stored_indexes = {}
    end = 0
    for part, name in INDEX_FIELDS.items():
        if part is Part.TRANSACTION_INDEX and not fields.has(name):
            continue
        index = fields.fields(name)
        position, size = index.number("position"), index.number("size")
        if position != end:
            raise fields.error(name, f"begins at byte {position} where the one before ends at {end}")
        if 0 < size < extra:
            raise fields.error(name, f"has {size} bytes, fewer than encryption adds")
        end = position + size
        stored_indexes[part] = StoredIndex(position, end)
    return stored_indexes
