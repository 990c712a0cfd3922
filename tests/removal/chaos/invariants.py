"""What holds whatever is killed, refused or lost, and whatever the broker does meanwhile.

Always, at whatever moment one looks:
- an object that the broker has, and that was not planned, is at its key with its bytes;
- one that was planned is there, or its bytes are in quarantine, if that was asked for;
- one whose events were lost, and whose records are nowhere else, is there, planned or not;
- one that the broker wrote again since the plan is there: it is not what was planned;
- nothing else is in the store but tieredctl's own;
- what readers were promised by events is there;
- while an object is missing that the metadata promises, none of what was planned goes.

When a run has ended by itself:
- receipts and reality agree;
- what brokers may read by the metadata that the run read last is there, or was told to be lost, which only happens
  where no quarantine was asked for. What got its owner after that read is the operator's to restore: until then it is
  in quarantine, and `purge` leaves it there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.removal.chaos.trial import Told, Trial
from tieredctl.model.removal import Receipt, ReceiptStep, RemovalMode
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ports.object_store import RESERVED_FOLDER


def demand_nothing_lost(trial: Trial) -> None:
    """What holds always."""
    broken = [*_misplaced(trial), *_unplanned(trial)]
    broken += [f"{key} is promised to readers, and gone" for key in trial.cluster.unreadable()]
    assert not broken, _report(trial, broken)


def demand_ended_well(trial: Trial, told: Told) -> None:
    """What holds when a run has ended, after all that was killed before it."""
    broken = [*told.violations, *_owned_but_absent(trial, told), *_receipts_that_lie(trial)]
    assert not broken, _report(trial, broken)


def demand_finished(trial: Trial, told: Told) -> None:
    """What holds when all that was planned was done."""
    assert told.is_complete, _report(trial, [f"{told}"])
    back = {receipt.key for receipt in last_receipts(trial).values() if receipt.step is ReceiptStep.RESTORED}
    written = trial.cluster.written_since(trial.steps_before_plan)
    present = {key for key in trial.planned_keys - back - written if trial.cluster.read(key) is not None}
    assert not present, _report(trial, [f"{key} was planned, and is still there" for key in present])
    gone = {receipt.key for receipt in last_receipts(trial).values() if receipt.step is ReceiptStep.REMOVED}
    untold = trial.cluster.unconcluded(gone - written)
    assert not untold, _report(trial, [f"readers were not told in the end that {key} is gone" for key in untold])


def demand_all_back(trial: Trial) -> None:
    """What holds when a removal was undone."""
    broken = [
        f"{key} is not back"
        for key in trial.planned_keys & trial.cluster.objects()
        if trial.cluster.read(key) != trial.cluster.content(key)
    ]
    assert not broken, _report(trial, broken)


def objects_only_in_quarantine(trial: Trial) -> set[str]:
    """The keys of what brokers may read, and find nowhere."""
    owned = trial.planned_keys & trial.cluster.owned_objects(trial.cluster.read_up_to())
    return {key for key in owned if trial.cluster.read(key) is None and _quarantined(trial, key) is not None}


def demand_still_in_quarantine(trial: Trial, keys: set[str]) -> None:
    """What holds when the quarantine was emptied, of what it was the last place of before. A broker that began to
    delete an object meanwhile reads it no more."""
    owned = trial.cluster.owned_objects(trial.cluster.read_up_to())
    purged = {key for key in keys & owned if _quarantined(trial, key) != trial.cluster.content(key)}
    assert not purged, _report(trial, [f"the last copy of {key} was purged" for key in purged])


def may_go_on(trial: Trial) -> bool:
    """Whether all that is left of the plan is still as it was planned."""
    finished = {ReceiptStep.REMOVED, ReceiptStep.GONE, ReceiptStep.RESTORED}
    done = {receipt.key for receipt in last_receipts(trial).values() if receipt.step in finished}
    return not (trial.planned_keys - done) & trial.cluster.touched_since(trial.steps_before_plan)


def removed_so_far(trial: Trial) -> set[str]:
    """The keys of what was planned and is not there."""
    return {key for key in trial.planned_keys if trial.cluster.read(key) is None}


def got_owners(trial: Trial, removed: set[str]) -> bool:
    """Whether the metadata promises, or promised meanwhile, what was removed before: then it is missing."""
    return bool(removed & trial.cluster.touched_since(trial.steps_before_plan))


def last_receipts(trial: Trial) -> dict[str, Receipt]:
    return {receipt.key: receipt for receipt in trial.entries()}


def _misplaced(trial: Trial) -> Iterator[str]:
    movable = trial.planned_keys - trial.cluster.written_since(trial.steps_before_plan)
    movable -= trial.cluster.history.only_copies
    for key in trial.cluster.objects():
        found = trial.cluster.read(key)
        if found is None and key in movable:
            quarantined = _quarantined(trial, key)
            if (
                trial.setting.mode is RemovalMode.QUARANTINE
                and quarantined != trial.cluster.content(key)
                and key not in trial.altered
            ):
                yield f"{key} is neither there nor in quarantine"
        elif found != trial.cluster.content(key):
            yield f"{key} is {'gone' if found is None else 'another'}, and was not to be touched"


def _unplanned(trial: Trial) -> Iterator[str]:
    allowed = trial.cluster.objects() | trial.planned_keys
    for key in trial.cluster.stored_keys():
        if not key.startswith(RESERVED_FOLDER) and key not in allowed:
            yield f"{key} was made by nobody"


def _owned_but_absent(trial: Trial, told: Told) -> Iterator[str]:
    for key in trial.cluster.owned_objects(told.last_read):
        if trial.cluster.read(key) is None and key not in told.lost:
            yield f"{key} has an owner, is gone, and was not told to be lost"
    if trial.setting.mode is RemovalMode.QUARANTINE:
        yield from (f"{key} was told to be lost" for key in told.lost)


def _receipts_that_lie(trial: Trial) -> Iterator[str]:
    brokers, content = trial.cluster.objects(), trial.cluster.content
    # A run that lost its lease between a deletion and its receipt writes that down behind what another did since.
    undone = {receipt.key for receipt in trial.entries() if receipt.step is ReceiptStep.RESTORED}
    deleted_again = {key for key in undone if _may_be_deleted_again(trial, key)}
    for key, receipt in last_receipts(trial).items():
        found, quarantined = trial.cluster.read(key), _quarantined(trial, key)
        rewritten = key in trial.cluster.written_since(trial.steps_before_plan)
        if key not in trial.planned_keys:
            yield f"there is a receipt of {key}, which was not planned"
        elif receipt.step is ReceiptStep.REMOVED:
            if found is not None and not rewritten and key not in undone and not trial.is_undone:
                yield f"{key} was removed, and is there"
            may_be_another = trial.was_lied_to and key not in brokers
            if trial.setting.mode is RemovalMode.QUARANTINE and quarantined != content(key) and not may_be_another:
                yield f"{key} was removed, and is not in quarantine"
        elif receipt.step is ReceiptStep.GONE and key in brokers and not rewritten:
            yield f"{key} is told to be removed by another, and was removed by tieredctl"
        elif receipt.step is ReceiptStep.RESTORED and key in brokers - deleted_again and found != content(key):
            yield f"{key} was restored, and is not there"


def _may_be_deleted_again(trial: Trial, key: str) -> bool:
    """After it was restored, by a run that had lost its lease, and did not know it yet."""
    return trial.was_overtaken_deleting and _quarantined(trial, key) == trial.cluster.content(key)


def _quarantined(trial: Trial, key: str) -> bytes | None:
    header = trial.plan.header
    planned = trial.planned_by_key.get(key)
    return planned and trial.cluster.read(quarantine_key(header.cluster_id, header.plan_id, planned))


def _report(trial: Trial, broken: list[str]) -> str:
    """What is wrong, and how it came about."""
    entries = [f"  {receipt.step.value} {receipt.key} {receipt.error or ''}" for receipt in trial.entries()]
    steps = f"{trial.cluster.steps_taken} of {len(trial.cluster.history.future)}"
    return "\n".join([f"{trial.setting}, broker's steps {steps}:", *sorted(broken), "receipts:", *entries])
