"""Whether the nodes of a cluster can tier: brokers copy, and controllers decide whether a topic may be tiered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.cluster.broker_settings import SYSTEM_ENABLE
from tieredctl.ports.cluster import Cluster


@dataclass(frozen=True, slots=True)
class TieringAbility:
    """Ids of the nodes without `remote.log.storage.system.enable`; None where the nodes' settings are unknown."""

    unable_brokers: Sequence[int] | None
    unable_controllers: Sequence[int] | None
    """None also where controllers are nodes of their own: brokers do not report their settings."""


def tiering_ability(cluster: Cluster) -> TieringAbility:
    """Raises TieredctlError where no broker answers. What the user may not ask stays unknown."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED:
            raise
        return TieringAbility(None, None)
    unable = sorted(node for node, settings in configs.items() if settings[SYSTEM_ENABLE].value != "true")
    voters = _voters(cluster)
    if voters is None or not configs.keys() >= set(voters):
        return TieringAbility(unable, None)
    return TieringAbility(unable, [voter for voter in voters if voter in unable])


def _voters(cluster: Cluster) -> Sequence[int] | None:
    try:
        return [voter.node_id for voter in cluster.quorum().voters]
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED:
            raise
        return None
