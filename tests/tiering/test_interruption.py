"""The process ends at any request, before the cluster hears it or before it is answered: another run comes to the end
state that one run comes to."""

from __future__ import annotations

import pytest

from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import Died, ModelCluster

TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
THREE = {1: (0, 99), 2: (100, 199), 3: (200, 299)}


def test_killed_at_any_request_another_run_comes_to_the_same_end(applied: TopicCommand) -> None:
    cases: list[tuple[dict[str, str], tuple[str, ...]]] = [
        ({}, ("enable", "--local-retention-ms", "1000")),
        (TIERED, ("disable", "--stop-copying")),
        (TIERED, ("disable", "--delete")),
    ]
    for own, words in cases:
        whole = ModelCluster(own=dict(own), remote_segments=THREE if own else {})
        assert applied(whole, *words).exit_code == 0, words

        for boundary in range(1, whole.boundaries + 1):
            cluster = ModelCluster(own=dict(own), remote_segments=THREE if own else {}, dies_at=boundary)
            with pytest.raises(Died):
                applied(cluster, *words)
            halfway = dict(cluster.own)

            again = applied(cluster, *words)

            assert halfway in (own, whole.own), f"{words} half done at {boundary}"
            assert (again.exit_code, cluster.own) == (0, whole.own), f"{words} killed at {boundary}: {again.err}"
            assert len(cluster.alterations) == 1, words
