"""Which remote log metadata manager does a cluster use? One may keep its metadata elsewhere than in
`__remote_log_metadata`."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.cluster.broker_settings import METADATA_CLASS, TOPIC_BASED
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.metadata_source import METADATA_TOPIC


def demand_topic_based(class_names: Iterable[str]) -> None:
    """Raises TieredctlError `other-metadata-manager`, with its name, for a remote log metadata manager that does not
    keep its metadata in the topic: then what the topic lacks is neither missing nor orphaned."""
    for name in class_names:
        if name not in ("", TOPIC_BASED):
            message = (
                f"This cluster's {METADATA_CLASS} is {name}, which does not keep its metadata in {METADATA_TOPIC}."
            )
            raise TieredctlError(ErrorCode.OTHER_METADATA_MANAGER, message)


def managers_of(cluster: Cluster) -> list[str]:
    """The managers that the brokers of a live cluster name; none where the user may not ask."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError:
        return []
    found = (settings.get(METADATA_CLASS) for settings in configs.values())
    return sorted({setting.value for setting in found if setting is not None and setting.value})
