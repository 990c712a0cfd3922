"""How large the custom metadata of a storage manager may become, against the broker's limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster import broker_settings as names
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ports.manager_settings import manager_of

LONGEST_TOPIC_NAME = 249


def custom_metadata_findings(settings: BrokerSettings, topics: Iterable[str]) -> Iterator[Finding]:
    """Which of the given topics could not be copied; without topics, whether every name that Kafka allows fits."""
    manager, limit = manager_of(settings.text(names.STORAGE_CLASS)), settings.number(names.CUSTOM_METADATA_MAX_BYTES)
    if manager is None or limit is None:
        return
    prefix = settings.text(names.STORAGE_PREFIX) or ""
    own = {name.removeprefix(prefix): value or "" for name, value in settings.values.items() if name.startswith(prefix)}
    known = max(topics, key=len, default=None)
    length = LONGEST_TOPIC_NAME if known is None else len(known)
    largest = manager.largest_custom_metadata(own, length)
    if largest is not None and largest > limit:
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
