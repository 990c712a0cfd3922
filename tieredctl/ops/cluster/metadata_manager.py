"""Whose metadata does a cluster go by? `__remote_log_metadata` tells nothing of one that keeps it elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.cluster import Cluster
from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS, TOPIC_BASED


def demand_topic_based(class_names: Iterable[str]) -> None:
    """Raises TieredctlError `other-metadata-manager`, by its name, for a remote log metadata manager that does not keep
    its metadata in the topic: what the topic lacks is neither missing nor anybody's orphan then."""
    for name in class_names:
        if name not in ("", TOPIC_BASED):
            message = (
                f"This cluster's {METADATA_CLASS} is {name}, which does not keep its metadata in {METADATA_TOPIC}."
            )
            raise TieredctlError(ErrorCode.OTHER_METADATA_MANAGER, message)


def managers_of(cluster: Cluster) -> list[str]:
    """What the brokers of a live cluster say; nothing where they may not be asked."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError:
        return []
    found = (settings.get(METADATA_CLASS) for settings in configs.values())
    return sorted({setting.value for setting in found if setting is not None and setting.value})
