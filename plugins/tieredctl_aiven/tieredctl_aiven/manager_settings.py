"""The settings of Aiven's storage manager (its RemoteStorageManagerConfig, docs/configs.rst)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tieredctl.formats.varints import unsigned_varint
from tieredctl.ports.manager_settings import ManagerSettings

_BACKEND = "storage."
_FIELDS, _PREFIX = "custom.metadata.fields.include", "key.prefix"
_LARGEST_REMOTE_SIZE = 10
"""A zigzag varlong of 64 bits."""
_KEY_BESIDE_TOPIC = len("-/2147483647/-") + 22 + 20 + 22
"""<topic>-<topic id>/<partition>/<offset>-<segment id>, without the topic."""


def largest_custom_metadata(fields: Iterable[str], key_prefix: str, topic_length: int) -> int:
    """Bytes of the tagged section with these fields (REMOTE_SIZE, OBJECT_PREFIX, OBJECT_KEY), at most."""
    sizes = {
        "REMOTE_SIZE": _LARGEST_REMOTE_SIZE,
        "OBJECT_PREFIX": _compact(len(key_prefix.encode())),
        "OBJECT_KEY": _compact(topic_length + _KEY_BESIDE_TOPIC),
    }
    return 1 + sum(1 + len(unsigned_varint(sizes[one])) + sizes[one] for one in fields if one in sizes)


def _largest(settings: Mapping[str, str], topic_length: int) -> int | None:
    fields = {one.strip() for one in settings.get(_FIELDS, "").split(",") if one.strip()}
    return largest_custom_metadata(fields, settings.get(_PREFIX, ""), topic_length) if fields else None


def _compact(length: int) -> int:
    return len(unsigned_varint(length + 1)) + length


AIVEN = ManagerSettings(
    whose="Aiven's plugin",
    package="io.aiven.kafka.tieredstorage.",
    names=frozenset(
        {
            "chunk.size",
            "compression.enabled",
            "compression.heuristic.enabled",
            _FIELDS,
            "encryption.enabled",
            "encryption.key.pair.id",
            "encryption.key.pairs",
            "fetch.chunk.cache.class",
            _PREFIX,
            "key.prefix.mask",
            "metrics.num.samples",
            "metrics.recording.level",
            "metrics.sample.window.ms",
            "segment.format",
            "storage.backend.class",
            "upload.rate.limit.bytes.per.second",
        }
    ),
    # Those of its backends, key pairs and caches.
    groups=(_BACKEND, "encryption.key.pairs.", "fetch.", "segment.", "metrics.", "upload.", "custom.metadata."),
    backend=_BACKEND,
    backends=("s3.", "aws.", "gcs.", "azure.", "oci."),
    also_kafkas=("metrics.",),
    stores={
        "s3": "storage.s3.bucket.name",
        "gs": "storage.gcs.bucket.name",
        "az": "storage.azure.container.name",
        "abfss": "storage.azure.container.name",
        "file": "storage.root",
    },
    key_prefix=_PREFIX,
    largest_custom_metadata=_largest,
)
"""The entry point `aiven` of the group `tieredctl.manager_settings`."""
