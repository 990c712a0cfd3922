"""File ownership: no file with a live batch is deleted under any schedule, and every dead one is in the end."""

from __future__ import annotations

import pytest
from tieredctl_proposals.coordinator.ownership import (
    AskForHandOver,
    DeleteObject,
    Duty,
    HandOver,
    OwnedFile,
    OwnershipWorker,
)

from tests.conftest import inputs
from tests.coordinator.broken_owners import (
    WithoutAsking,
    WithoutCommittingWhatIsUnknown,
    WithoutGrace,
    WithoutLookingAtBatches,
    WithoutOwnership,
    WithoutRepeating,
    WithoutStarting,
)
from tests.coordinator.ownership_histories import GRACE_MS, RETRY_MS, Files, History
from tests.shares import divided

FILE = OwnedFile("file", (2, 0, 1), 1, 100)


def worker(coordinator_id: int, live: int | None) -> OwnershipWorker:
    """One that has a file with so many live batches, or does not know it."""
    files = Files() if live is None else Files({FILE: live})
    begun = OwnershipWorker(coordinator_id, files, GRACE_MS, RETRY_MS)
    begun.start(0)
    return begun


def duties(one: OwnershipWorker, now_ms: int) -> list[Duty]:
    return list(one.due(now_ms))


def test_the_first_in_the_list_is_the_owner_and_hands_over_when_its_last_batch_is_gone() -> None:
    first = worker(2, live=1)
    assert duties(first, 0) == []

    first.files.live[FILE] = 0  # type: ignore[attr-defined]
    first.release(FILE, 10)

    assert duties(first, 10) == [HandOver(FILE, 0)]


def test_a_hand_over_is_repeated_until_it_is_confirmed() -> None:
    first = worker(2, live=0)

    assert duties(first, 0) == duties(first, RETRY_MS) == [HandOver(FILE, 0)]
    assert duties(first, RETRY_MS + 1) == []
    first.confirm(HandOver(FILE, 0))

    assert duties(first, 10 * RETRY_MS) == []


def test_who_is_handed_a_file_that_has_live_batches_waits_for_the_last_of_them() -> None:
    second = worker(0, live=1)

    second.receive(HandOver(FILE, 0), 0)
    assert duties(second, 10 * GRACE_MS) == []
    second.files.live[FILE] = 0  # type: ignore[attr-defined]
    second.release(FILE, 11 * GRACE_MS)

    assert duties(second, 11 * GRACE_MS) == [HandOver(FILE, 1)]


def test_the_last_owner_deletes_the_object_after_the_grace_period_that_begins_again_with_a_new_leader() -> None:
    """It has its own clock, and does not know what the one before had waited."""
    last, alone = worker(1, live=0), OwnedFile("file", (1,), 1, 100)
    new = OwnershipWorker(1, Files({alone: 0}), GRACE_MS, RETRY_MS)
    new.start(-7 * GRACE_MS)

    last.receive(HandOver(FILE, 1), 0)

    assert (duties(last, GRACE_MS - 1), duties(last, GRACE_MS)) == ([], [DeleteObject(FILE)])
    assert (duties(new, -6 * GRACE_MS - 1), duties(new, -6 * GRACE_MS)) == ([], [DeleteObject(alone)])


def test_a_new_leader_that_does_not_know_whether_it_was_handed_a_file_asks_the_owner_before() -> None:
    new = worker(1, live=0)

    assert duties(new, GRACE_MS) == duties(new, GRACE_MS + RETRY_MS) == [AskForHandOver(FILE, 0)]


def test_who_is_asked_hands_over_again_once_no_owner_before_it_has_batches() -> None:
    middle = worker(0, live=0)
    middle.receive(AskForHandOver(FILE, 0), 0)
    assert duties(middle, 0) == []
    middle.receive(HandOver(FILE, 0), 1)
    assert duties(middle, 1) == [HandOver(FILE, 1)]
    middle.confirm(HandOver(FILE, 1))

    middle.receive(AskForHandOver(FILE, 0), 2)

    assert duties(middle, 2) == [HandOver(FILE, 1)]


@pytest.mark.parametrize("message", [HandOver(FILE, 0), AskForHandOver(FILE, 0)])
def test_a_file_that_is_not_known_is_to_be_committed_without_batches_before_the_message_counts(
    message: HandOver | AskForHandOver,
) -> None:
    middle = worker(0, live=None)

    assert not middle.receive(message, 0)

    middle.files.live[FILE] = 0  # type: ignore[attr-defined]
    assert middle.receive(message, 0)


def test_all_histories_keep_live_files_and_lose_dead_ones() -> None:
    for seed in divided(range(inputs(500))):
        History(seed).run()


@pytest.mark.parametrize(
    ("build", "broken"),
    [
        (WithoutGrace, "ms after its last batch was live"),
        (WithoutOwnership, "while coordinator"),
        (WithoutLookingAtBatches, "while coordinator"),
        (WithoutCommittingWhatIsUnknown, "was deleted, and then committed"),
        (WithoutAsking, "were not deleted"),
        (WithoutRepeating, "were not deleted"),
        (WithoutStarting, "were not deleted"),
    ],
)
def test_a_build_without_a_guard_is_found_out(build: type[OwnershipWorker], broken: str) -> None:
    assert any(broken in fault_of(seed, build) for seed in range(500))


def fault_of(seed: int, build: type[OwnershipWorker]) -> str:
    """Which promise a history breaks; empty for none."""
    try:
        History(seed, build).run()
    except AssertionError as fault:
        return str(fault)
    return ""
