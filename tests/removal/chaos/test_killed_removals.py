"""`orphans apply`, `restore` and `purge`, killed, refused, overtaken, beside a broker that goes on: no data is lost.

`tests.removal.chaos.invariants` says what that means. `TIEREDCTL_CHAOS_SEEDS` says how many stories are drawn at random
beside those of every boundary, which are about a thousand; one that fails says its seed, which gives the same story
again.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from tests.removal.chaos.azure_trial import AzureTrial
from tests.removal.chaos.broken_builds import (
    BROKEN_BUILDS,
    BROKEN_BUILDS_OF_WAL,
    Break,
    a_failure_hides_the_copy,
    receipts_alone_tell,
    receipts_are_written_afterwards_only,
)
from tests.removal.chaos.seeds import TrialOf, boundaries_of, try_kill_at, try_seed
from tests.removal.chaos.trial import Setting, Trial
from tests.removal.chaos.wal_cluster import WalTrial
from tests.removal.chaos.workers import failures_of
from tests.rigs.object_servers import ObjectServer
from tests.shares import divided
from tieredctl.model.removal import RemovalMode

SEEDS = int(os.environ.get("TIEREDCTL_CHAOS_SEEDS", "584"))
SEEDS_FOR_ONE_ON_AZURITE = 40
EVERY_ON_AZURITE = int(os.environ.get("TIEREDCTL_AZURE_CHAOS_EVERY", "16"))
"""At which boundaries a run is killed in turn there, where each takes seconds: at each with 1."""
MOST_SEEDS_TO_FIND_OUT = 1_200

QUARANTINE = Setting(seed=1)
IN_STORE = Setting(seed=2, receipts_in_store=True)
DELETE = Setting(seed=3, mode=RemovalMode.DELETE)
DELETE_IN_STORE = Setting(seed=2, mode=RemovalMode.DELETE, receipts_in_store=True)


@pytest.mark.parametrize(
    ("trial_of", "setting", "copies_fail"),
    [
        (Trial, QUARANTINE, False),
        (Trial, QUARANTINE, True),
        (Trial, IN_STORE, False),
        (Trial, DELETE, False),
        (WalTrial, IN_STORE, False),
        (WalTrial, DELETE_IN_STORE, False),
    ],
    ids=[
        *("quarantine", "quarantine, and then no copy succeeds", "receipts in the store", "delete"),
        *("combined objects", "combined objects, delete"),
    ],
)
def test_killed_at_every_boundary_in_turn(folder: Path, trial_of: TrialOf, setting: Setting, copies_fail: bool) -> None:
    demand_all_survives_kills_in_turn(folder, trial_of, setting, copies_fail=copies_fail)


@pytest.mark.integration
@pytest.mark.parametrize("setting", [QUARANTINE, IN_STORE], ids=["receipts in a file", "receipts in the store"])
def test_killed_at_every_boundary_in_turn_on_azurite(folder: Path, azurite: ObjectServer, setting: Setting) -> None:
    trial_of = partial(AzureTrial, endpoint=azurite.endpoint)

    demand_all_survives_kills_in_turn(folder, trial_of, setting, every=EVERY_ON_AZURITE)


def demand_all_survives_kills_in_turn(
    folder: Path, trial_of: TrialOf, setting: Setting, *, copies_fail: bool = False, every: int = 1
) -> None:
    boundaries = boundaries_of(setting, folder, trial_of)
    attempt = partial(try_kill_at, setting=setting, copies_fail=copies_fail, trial_of=trial_of)

    failures = failures_of(divided(range(1, boundaries + 1, every)), attempt, folder)

    assert boundaries > 50
    assert not failures, "\n".join(failures)


def test_everything_at_random(folder: Path) -> None:
    failures = failures_of(divided(range(SEEDS)), try_seed, folder)
    assert not failures, "\n".join(failures)


def test_everything_at_random_with_combined_objects(folder: Path) -> None:
    failures = failures_of(divided(range(SEEDS // 20)), partial(try_seed, trial_of=WalTrial), folder)
    assert not failures, "\n".join(failures)


@pytest.mark.integration
def test_everything_at_random_on_azurite(folder: Path, azurite: ObjectServer) -> None:
    attempt = partial(try_seed, trial_of=partial(AzureTrial, endpoint=azurite.endpoint))

    failures = failures_of(divided(range(SEEDS // SEEDS_FOR_ONE_ON_AZURITE)), attempt, folder)

    assert not failures, "\n".join(failures)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("trial_of", "broken"),
    [*((Trial, broken) for broken in BROKEN_BUILDS), *((WalTrial, broken) for broken in BROKEN_BUILDS_OF_WAL)],
)
def test_a_build_that_lacks_a_safeguard_is_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, trial_of: TrialOf, broken: Break
) -> None:
    broken(monkeypatch)

    failures = failures_of(range(MOST_SEEDS_TO_FIND_OUT), partial(try_seed, trial_of=trial_of), folder, most=1)

    assert failures


@pytest.mark.exhaustive
@pytest.mark.parametrize("broken", [a_failure_hides_the_copy, receipts_are_written_afterwards_only])
def test_receipts_that_lack_something_are_found_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, broken: Break
) -> None:
    broken(monkeypatch)
    receipts_alone_tell(monkeypatch)

    attempt = partial(try_kill_at, setting=QUARANTINE, copies_fail=True)
    failures = failures_of(range(1, boundaries_of(QUARANTINE, folder) + 1), attempt, folder, most=1)

    assert failures
