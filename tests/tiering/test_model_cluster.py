"""The model of a cluster, held to what a real one does: what is tested on it is true of those."""

from __future__ import annotations

import pytest

from tests.kafka.cluster_contract import ClusterContract, KnownCluster
from tests.tiering.model_cluster import CLUSTER_ID, LEVEL_3_8, LEVEL_3_9, LEVEL_4_3, TOPIC, ModelCluster
from tieredctl.ports.cluster import OffsetSpec

NOT_KNOWN = {
    LEVEL_3_8: frozenset({OffsetSpec.LATEST_TIERED, OffsetSpec.EARLIEST_PENDING_UPLOAD}),
    LEVEL_3_9: frozenset({OffsetSpec.EARLIEST_PENDING_UPLOAD}),
    LEVEL_4_3: frozenset[OffsetSpec](),
}


class TestModelCluster(ClusterContract):
    """One of each release."""

    @pytest.fixture(params=NOT_KNOWN, ids=["3.8", "3.9", "4.3"])
    def known(self, request: pytest.FixtureRequest) -> KnownCluster:
        level: int = request.param

        def opened() -> ModelCluster:
            return ModelCluster(level=level)

        return KnownCluster(opened(), CLUSTER_ID, TOPIC, NOT_KNOWN[level], opened)
