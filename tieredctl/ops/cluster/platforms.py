"""Whether a cluster without `__remote_log_metadata` is of a platform that never has it."""

from __future__ import annotations

from contextlib import suppress

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.platforms import Platform, platform_by
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.metadata_source import METADATA_TOPIC


def demand_metadata_here(cluster: Cluster) -> None:
    """Raises TieredctlError `metadata-not-here` where a cluster that lacks the topic is of such a platform. To be
    called for a cluster that lacks it."""
    platform = _platform_of(cluster)
    if platform is not None:
        message = f"This cluster has no topic {METADATA_TOPIC}: it is {platform.name}, which keeps {platform.metadata}."
        raise TieredctlError(ErrorCode.METADATA_NOT_HERE, message)


def _platform_of(cluster: Cluster) -> Platform | None:
    """Asks for settings last: many users may not read them."""
    servers = str(cluster.describe().get("bootstrapServer", ""))
    hosts = [server.rpartition(":")[0] for server in servers.split(",")]
    found = platform_by(hosts=hosts, cluster_id=cluster.cluster_id, topics=cluster.topic_names())
    if found is None:
        with suppress(TieredctlError):
            found = platform_by(settings={name for one in cluster.broker_configs().values() for name in one})
    return found
