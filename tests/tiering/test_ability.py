"""Which nodes can tier, as `topic status` shows it."""

from __future__ import annotations

from tests.tiering.model_cluster import BROKER, ModelCluster
from tieredctl.ops.tiering.topic_status import TieringAbility, tiering_ability

WITHOUT = {**BROKER, "remote.log.storage.system.enable": "false"}


def test_nodes_that_are_set_up_for_it_can_tier() -> None:
    assert tiering_ability(ModelCluster()) == TieringAbility([], [])


def test_nodes_that_are_not_told_so_cannot() -> None:
    assert tiering_ability(ModelCluster(broker=WITHOUT, voters=(2,))) == TieringAbility([1, 2, 3], [2])


def test_of_controllers_that_are_nodes_of_their_own_nothing_is_known() -> None:
    assert tiering_ability(ModelCluster(voters=(4, 5, 6))) == TieringAbility([], None)
