"""File ownership under every schedule of one file: no random choice leaves any out."""

from __future__ import annotations

import pytest
from tieredctl_proposals.coordinator.ownership import OwnershipWorker

from tests.conftest import examples
from tests.coordinator.broken_owners import (
    WithoutAsking,
    WithoutCommittingWhatIsUnknown,
    WithoutGrace,
    WithoutLookingAtBatches,
    WithoutOwnership,
    WithoutStarting,
)
from tests.coordinator.ownership_states import explore


@pytest.mark.parametrize("owners", [1, 2, 3] if examples(1) > 1 else [1, 2])
def test_under_every_schedule_a_live_file_stays_and_a_dead_one_goes(owners: int) -> None:
    assert explore(owners, OwnershipWorker) > 1


@pytest.mark.parametrize(
    ("build", "broken"),
    [
        (WithoutGrace, "within the grace period"),
        (WithoutOwnership, "while batches are live"),
        (WithoutLookingAtBatches, "while batches are live"),
        (WithoutCommittingWhatIsUnknown, "was deleted, and then committed|while batches are live"),
        (WithoutAsking, "dead and was not deleted"),
        (WithoutStarting, "dead and was not deleted"),
    ],
)
def test_under_some_schedule_a_build_without_a_guard_breaks_a_promise(
    build: type[OwnershipWorker], broken: str
) -> None:
    with pytest.raises(AssertionError, match=broken):
        explore(2, build)
