"""The process ends at any request, before the cluster hears it or before it is answered: another run comes to the end
state that one run comes to."""

from __future__ import annotations

import pytest

from tests.tiering.conftest import TopicCommand
from tests.tiering.model_cluster import Died, ModelCluster

TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
THREE = {1: (0, 99), 2: (100, 199), 3: (200, 299)}


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({}, ("enable", "--local-retention-ms", "1000")),
        (TIERED, ("disable", "--stop-copying")),
        (TIERED, ("disable", "--delete")),
    ],
    ids=["enable", "stop copying", "delete"],
)
def test_killed_at_any_request_another_run_comes_to_the_same_end(
    applied: TopicCommand, own: dict[str, str], words: tuple[str, ...]
) -> None:
    whole = ModelCluster(own=dict(own), remote_segments=THREE if own else {})
    assert applied(whole, *words).exit_code == 0

    for boundary in range(1, whole.boundaries + 1):
        cluster = ModelCluster(own=dict(own), remote_segments=THREE if own else {}, dies_at=boundary)
        with pytest.raises(Died):
            applied(cluster, *words)
        halfway = dict(cluster.own)

        again = applied(cluster, *words)

        assert halfway in (own, whole.own), f"half done at {boundary}"
        assert (again.exit_code, cluster.own) == (0, whole.own), f"killed at {boundary}: {again.err}"
        assert len(cluster.alterations) == 1
