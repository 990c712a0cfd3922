"""The settings of brokers and topics that decide about tiered storage, without secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tieredctl.ports.cluster import Cluster, ConfigValue
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.process.redaction import HIDDEN, is_secret, redacted
from tieredctl.wiring.places import ClusterPlace

_THAT_MATTER = (
    "cleanup.",
    "inter.broker.protocol",
    "local.retention.",
    "log.cleanup.",
    "log.dir",
    "log.local.",
    "log.message.",
    "log.retention.",
    "log.roll",
    "log.segment.",
    "min.insync",
    "process.roles",
    "remote.",
    "retention.",
    "rlmm.",
    "rsm.",
    "segment.",
)
"""How their names begin."""


def settings_that_matter(place: ClusterPlace) -> tuple[dict[str, Any], Sequence[str]]:
    """By broker and by tiered topic, the metadata topic too; and the names of all topics. Raises TieredctlError as the
    cluster does."""
    with place.open() as cluster:
        brokers = {str(node): _shown(configs) for node, configs in cluster.broker_configs().items()}
        names = list(cluster.topic_names())
        topics = {
            name: _shown(configs)
            for name, configs in cluster.topic_configs(names).items()
            if name == METADATA_TOPIC or _is_tiered(configs)
        }
        document = {"cluster": cluster.describe(), "releases": _releases(cluster), "brokers": brokers, "topics": topics}
        return document, names


def _releases(cluster: Cluster) -> dict[str, Any]:
    return {
        str(node): {"supported": dict(one.supported), "finalized": dict(one.finalized)}
        for node, one in cluster.broker_features().items()
    }


def _is_tiered(settings: Mapping[str, ConfigValue]) -> bool:
    setting = settings.get("remote.storage.enable")
    return setting is not None and setting.value == "true"


def _shown(settings: Mapping[str, ConfigValue]) -> dict[str, Any]:
    return {name: {"value": value, "source": settings[name].source} for name, value in sorted(_values(settings))}


def _values(settings: Mapping[str, ConfigValue]) -> Iterator[tuple[str, str | None]]:
    for name, (value, _) in settings.items():
        if name.startswith(_THAT_MATTER):
            yield name, HIDDEN if value and is_secret(name) else value and redacted(value)
