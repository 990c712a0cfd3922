"""Builds a segment's objects as the plugin stores them (TransformChunkEnumeration, SegmentManifestV1)."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.zstd_frame import compress_zstd
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl_aiven.chunk_index import encode_chunk_sizes
from tieredctl_aiven.json_fields import JsonFields
from tieredctl_aiven.keys import HOW_TO_GIVE, PrivateKeys
from tieredctl_aiven.manifest import (
    ENCRYPTED_EXTRA,
    INDEX_FIELDS,
    LARGEST_MANIFEST,
    MANIFEST_SUFFIX,
    Encryption,
    SegmentManifest,
    read_manifest,
)

_VECTOR_BYTES = 12
_DATA_KEY_BYTES = _AAD_BYTES = 32
_KEYS_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A manifest that shows how a segment is to be stored, and its data key."""

    document: dict[str, Any]
    manifest: SegmentManifest
    data_key: bytes | None

    def encrypted(self, data: bytes) -> bytes:
        if self.data_key is None or self.manifest.encryption is None or not data:
            return data
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        vector = os.urandom(_VECTOR_BYTES)
        return vector + AESGCM(self.data_key).encrypt(vector, data, self.manifest.encryption.aad)

    def chunks(self, log: bytes) -> Iterator[bytes]:
        size = self.manifest.chunks.chunk_size
        for start in range(0, len(log), size):
            chunk = log[start : start + size]
            yield self.encrypted(compress_zstd(chunk) if self.manifest.compression else chunk)


@dataclass(frozen=True, slots=True)
class Storing:
    """Where a segment's objects are to be, and what shows how they are to be stored."""

    store: ObjectStore
    keys: Mapping[Part, str]
    partition_prefix: str
    """The prefix of the keys among which other segments' manifests are."""
    open_data_key: Callable[[Encryption], bytes]
    private_keys: PrivateKeys

    def objects(self, segment: RemoteLogSegmentMetadata, parts: Mapping[Part, bytes]) -> dict[Part, bytes]:
        """As `WritingLayout.stored_objects` has it.

        The segment's own manifest is kept byte for byte if the new sizes fit it. zstd at the plugin's level gives the
        plugin's own bytes, and so its sizes.
        """
        own = self._own(segment)
        pattern = own or self._like_another(segment)
        chunks = list(pattern.chunks(parts[Part.LOG]))
        indexes = {part: pattern.encrypted(parts[part]) for part in INDEX_FIELDS if part in parts}
        document = pattern.document | {
            "chunkIndex": _chunk_index(pattern.manifest, len(parts[Part.LOG]), [len(chunk) for chunk in chunks]),
            "segmentIndexes": _segment_indexes(indexes),
        }
        if own is None:
            document["remoteLogSegmentMetadata"] = _recorded(segment, document["remoteLogSegmentMetadata"])
        return {
            Part.LOG: b"".join(chunks),
            Part.INDEXES: b"".join(indexes.values()),
            Part.MANIFEST: json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode(),
        }

    def _own(self, segment: RemoteLogSegmentMetadata) -> _Pattern | None:
        """The segment's manifest; None where there is none that can be used."""
        pattern = _readable(self.store, self.keys[Part.MANIFEST], self.open_data_key)
        if pattern is None:
            return None
        recorded = pattern.document["remoteLogSegmentMetadata"].get("remoteLogSegmentId")
        return pattern if isinstance(recorded, dict) and recorded.get("id") == segment.segment_id else None

    def _like_another(self, segment: RemoteLogSegmentMetadata) -> _Pattern:
        """How another segment of the partition is stored, with a data key of its own. Raises TieredctlError `usage`
        where there is no other, and `private-key` without the key pair that it is encrypted for."""
        for stored in islice(self.store.list(self.partition_prefix), _KEYS_LOOKED_AT):
            if not stored.key.endswith(MANIFEST_SUFFIX) or segment.segment_id in stored.key:
                continue
            if pattern := _readable(self.store, stored.key, lambda _encryption: b""):
                return _with_new_key(pattern, self.private_keys)
        where = f"No other manifest of {segment.topic_id_partition}"
        message = f"{where} shows how segment {segment.segment_id} is to be stored"
        raise TieredctlError(ErrorCode.USAGE, message)


def _readable(store: ObjectStore, key: str, open_data_key: Callable[[Encryption], bytes]) -> _Pattern | None:
    try:
        data = store.read(key, 0, LARGEST_MANIFEST + 1)
        manifest = read_manifest(data)
        document = JsonFields.parse(data, "manifest")
        document.fields("remoteLogSegmentMetadata")
        data_key = open_data_key(manifest.encryption) if manifest.encryption else None
    except DecodeError:
        return None
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
        return None
    return _Pattern(document.values, manifest, data_key)


def _with_new_key(pattern: _Pattern, private_keys: PrivateKeys) -> _Pattern:
    encryption = pattern.manifest.encryption
    if encryption is None:
        return pattern
    data_key, aad = os.urandom(_DATA_KEY_BYTES), os.urandom(_AAD_BYTES)
    wrapped = private_keys.wrap(data_key, encryption.wrapped_key)
    if wrapped is None:
        message = f"The private key is not that of key pair {encryption.key_id!r}: nothing can be encrypted for it"
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=HOW_TO_GIVE)
    fields = {"dataKey": f"{encryption.key_id}:{_base64(wrapped)}", "aad": _base64(aad)}
    document = pattern.document | {"encryption": fields}
    return _Pattern(document, replace(pattern.manifest, encryption=replace(encryption, aad=aad)), data_key)


def _chunk_index(manifest: SegmentManifest, file_size: int, sizes: list[int]) -> dict[str, Any]:
    common = {"originalChunkSize": manifest.chunks.chunk_size, "originalFileSize": file_size}
    if manifest.compression:
        return {"type": "variable", **common, "transformedChunks": _base64(compress_zstd(encode_chunk_sizes(sizes)))}
    # Of a log of one chunk, too: the size that a whole chunk would have.
    whole = manifest.chunks.chunk_size + (ENCRYPTED_EXTRA if manifest.encryption else 0)
    last = sizes[-1] if sizes else 0
    return {"type": "fixed", **common, "transformedChunkSize": whole, "finalTransformedChunkSize": last}


def _segment_indexes(indexes: Mapping[Part, bytes]) -> dict[str, Any]:
    fields: dict[str, Any] = dict.fromkeys(INDEX_FIELDS.values())
    position = 0
    for part, data in indexes.items():
        fields[INDEX_FIELDS[part]] = {"position": position, "size": len(data)}
        position += len(data)
    return fields


def _recorded(segment: RemoteLogSegmentMetadata, like: dict[str, Any]) -> dict[str, Any]:
    """The copy of Kafka's metadata, with the fields that another segment's has."""
    partition = segment.topic_id_partition
    fields = {
        "remoteLogSegmentId": {
            "topicIdPartition": {
                "topicId": partition.topic_id,
                "topicPartition": {"topic": partition.topic, "partition": partition.partition},
            },
            "id": segment.segment_id,
        },
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "maxTimestampMs": segment.max_timestamp_ms,
        "brokerId": segment.author,
        "eventTimestampMs": segment.event_timestamp_ms,
        "segmentLeaderEpochs": {str(epoch): offset for epoch, offset in segment.segment_leader_epochs},
        "txnIdxEmpty": bool(segment.txn_idx_empty),
    }
    return {name: fields[name] for name in like if name in fields}


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
