"""A dry run refuses what the run itself would refuse at once."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from tests.refusals import refused_with
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.orphan_removal.purge import PurgeCheck
from tieredctl.ops.orphan_removal.use import PlanCheck
from tieredctl.storage.memory import MemoryStore

NOW_MS = 2_000_000_000_000


class InABucket(MemoryStore):
    """A store with a clock of its own."""

    def time_ms(self) -> int:
        return NOW_MS


@pytest.mark.parametrize("skew_ms", [-MOST_SKEW_MS - 2_000, MOST_SKEW_MS + 2_000])
def test_no_age_is_told_where_host_and_store_disagree_about_the_time(skew_ms: int) -> None:
    store, owners = InABucket(), Mock()

    with refused_with("clock-skew", "a purge"):
        PurgeCheck(store, owners, "cluster", 0, lambda: NOW_MS + skew_ms).rehearse()
    with refused_with("clock-skew", "a plan"):
        PlanCheck(Mock(), store, owners, lambda: NOW_MS + skew_ms, Mock()).rehearse()

    assert owners.mock_calls == []
