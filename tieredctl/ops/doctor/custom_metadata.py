"""How large the custom metadata of Aiven's plugin may become, against the broker's limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tieredctl.formats.varints import unsigned_varint
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import BrokerSettings

LONGEST_TOPIC_NAME = 249
_PLUGIN = "io.aiven.kafka.tieredstorage."
_FIELDS, _PREFIX = "custom.metadata.fields.include", "key.prefix"
_LARGEST_REMOTE_SIZE = 10
"""A zigzag varlong of 64 bits."""
_KEY_BESIDE_TOPIC = len("-/2147483647/-") + 22 + 20 + 22
"""<topic>-<topic id>/<partition>/<offset>-<segment id>, without the topic."""


def custom_metadata_findings(settings: BrokerSettings, topics: Iterable[str]) -> Iterator[Finding]:
    """Which of the given topics could not be copied; without topics, whether every name that Kafka allows fits."""
    if not (settings.text(names.STORAGE_CLASS) or "").startswith(_PLUGIN):
        return
    storage_prefix = settings.text(names.STORAGE_PREFIX) or ""
    fields = {one.strip() for one in (settings.values.get(storage_prefix + _FIELDS) or "").split(",") if one.strip()}
    limit = settings.number(names.CUSTOM_METADATA_MAX_BYTES)
    if not fields or limit is None:
        return
    key_prefix = settings.values.get(storage_prefix + _PREFIX) or ""
    known = max(topics, key=len, default=None)
    length = LONGEST_TOPIC_NAME if known is None else len(known)
    largest = largest_custom_metadata(fields, key_prefix, length)
    if largest > limit:
        whose = f"a topic name of {length} characters" if known is None else f"topic {known}"
        message = (
            f"up to {largest} bytes of custom metadata ({whose}), but {names.CUSTOM_METADATA_MAX_BYTES} is {limit}"
        )
        evidence = {
            "name": names.CUSTOM_METADATA_MAX_BYTES,
            "stated": settings.values.get(names.CUSTOM_METADATA_MAX_BYTES),
            "value": str(largest),
        }
        yield Finding(FindingCode.BROKER_CONFIG_CUSTOM_METADATA, settings.subject, message, evidence)


def largest_custom_metadata(fields: Iterable[str], key_prefix: str, topic_length: int) -> int:
    """Bytes of the tagged section with these fields (REMOTE_SIZE, OBJECT_PREFIX, OBJECT_KEY), at most."""
    sizes = {
        "REMOTE_SIZE": _LARGEST_REMOTE_SIZE,
        "OBJECT_PREFIX": _compact(len(key_prefix.encode())),
        "OBJECT_KEY": _compact(topic_length + _KEY_BESIDE_TOPIC),
    }
    return 1 + sum(1 + len(unsigned_varint(sizes[one])) + sizes[one] for one in fields if one in sizes)


def _compact(length: int) -> int:
    return len(unsigned_varint(length + 1)) + length
