"""Which nodes can tier, as `topic status` shows it."""

from __future__ import annotations

from tests.tiering.model_cluster import BROKER, ModelCluster
from tieredctl.ops.tiering.topic_status import TieringAbility, tiering_ability

WITHOUT = {**BROKER, "remote.log.storage.system.enable": "false"}


def test_which_nodes_can_tier() -> None:
    # Nodes that are set up for it can tier.
    assert tiering_ability(ModelCluster()) == TieringAbility([], [])
    # Nodes that are not told so cannot.
    assert tiering_ability(ModelCluster(broker=WITHOUT, voters=(2,))) == TieringAbility([1, 2, 3], [2])
    # Nor can those of a release that does not know the setting.
    unaware = {name: value for name, value in BROKER.items() if name != "remote.log.storage.system.enable"}
    assert tiering_ability(ModelCluster(broker=unaware)).unable_brokers == [1, 2, 3]
    # Of controllers that are nodes of their own nothing is known.
    assert tiering_ability(ModelCluster(voters=(4, 5, 6))) == TieringAbility([], None)
