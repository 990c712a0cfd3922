"""An owner that appears after its object was removed, and deletes it while it is put back."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.removal.chaos.boundaries import ObservedStore
from tests.removal.chaos.invariants import demand_ended_well, last_receipts
from tests.removal.chaos.seeds import run
from tests.removal.chaos.trial import Setting, Trial, now_ms
from tieredctl.model.removal import ReceiptStep
from tieredctl.ports.object_store import RESERVED_FOLDER, StoredObject

SEED_OF_AN_OWNER_THAT_GOES = 4
MOST_IS_DELETED_AT = 250


def removed(trial: Trial) -> set[str]:
    return {receipt.key for receipt in last_receipts(trial).values() if receipt.step is ReceiptStep.REMOVED}


def owned(trial: Trial) -> set[str]:
    return trial.cluster.owned_objects(trial.cluster.read_up_to())


def test_what_its_broker_deletes_while_it_is_put_back_is_not_reported_as_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, chance = Trial(folder / "trial", Setting(SEED_OF_AN_OWNER_THAT_GOES)), Random(0)
    run(trial, trial.apply, trial.world(chance, kill_at=MOST_IS_DELETED_AT, broker_activity=0.0))
    while not owned(trial) & removed(trial):
        assert not trial.cluster.is_at_rest
        trial.cluster.act(now_ms())
    copy, put_back = ObservedStore.copy, []

    def copied_and_deleted(store: ObservedStore, source: StoredObject, key: str, *more: Any) -> StoredObject | None:
        made = copy(store, source, key, *more)
        if not key.startswith(RESERVED_FOLDER):
            put_back.append(key)
            trial.cluster.act_to_the_end(now_ms())
        return made

    monkeypatch.setattr(ObservedStore, "copy", copied_and_deleted)

    told = trial.apply(trial.world(chance, broker_activity=0.0))

    assert put_back
    assert trial.cluster.read(put_back[0]) is None
    assert told.lost == []
    demand_ended_well(trial, told)
