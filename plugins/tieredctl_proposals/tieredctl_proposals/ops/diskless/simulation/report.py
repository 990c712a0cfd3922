"""A simulation's outcome as rows and a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from tieredctl.model.prices import StoragePrice
from tieredctl.model.result_row import Column, ResultRow
from tieredctl.ops.documents import Document
from tieredctl_proposals.coordinator.recovery import Origin
from tieredctl_proposals.ops.diskless.simulation.run import Outcome

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "batches": ("produced", "acknowledged", "sent again", "duplicates", "refused"),
    "files": (
        *("uploaded files", "files left by a crash", "files committed in part", "committed without batches"),
        *("deleted by their last owner", "deleted as orphans"),
    ),
    "coordinators": (
        *("commit calls", "commit calls over the network", "commits tried again", "commits given up"),
        *("hand-overs", "questions for a hand-over", "failovers", "snapshots"),
        *(f"recoveries from {origin.value}" for origin in Origin),
    ),
    "brokers": ("broker crashes",),
    "consumers": ("reads",),
}
_LOSSES = ("batches", "objects", "reads", "gaps", "offsets given twice")
_MONTH_MS = 30 * 86_400_000
_GIB = 1 << 30
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class SimulatedNumber(ResultRow):
    """How often something happened, or how much there was of it."""

    group: Annotated[str, Column("OF")]
    what: str
    number: int
    cost: float | None = None


def outcome_rows(outcome: Outcome, price: StoragePrice | None) -> Iterator[SimulatedNumber]:
    """What happened, what was lost, and what was asked of the store with what that cost."""
    for group, names in _GROUPS.items():
        yield from (SimulatedNumber(group, name, outcome.counts.get(name, 0)) for name in names)
    yield SimulatedNumber("files", "files still there", outcome.left)
    yield from (SimulatedNumber("lost", name, outcome.lost.get(name, 0)) for name in _LOSSES)
    for name, number, cost in _requests(outcome, price):
        yield SimulatedNumber("store", name, number, cost)
    yield SimulatedNumber("store", "bytes uploaded", outcome.uploaded_bytes)
    average = outcome.byte_ms // max(1, outcome.lasted_ms)
    yield SimulatedNumber("store", "bytes stored on average", average, _storage_cost(outcome, price))


def outcome_summary(outcome: Outcome, price: StoragePrice | None) -> Document:
    """The figures that matter; the cost is None where there is no price."""
    counts = outcome.counts
    costs = [*(cost for *_, cost in _requests(outcome, price)), _storage_cost(outcome, price)]
    known_costs = [cost for cost in costs if cost is not None]
    return {
        "produced": counts.get("produced", 0),
        "acknowledged": counts.get("acknowledged", 0),
        "lost": sum(outcome.lost.values()),
        "filesUploaded": counts.get("uploaded files", 0),
        "filesDeletedByOwners": counts.get("deleted by their last owner", 0),
        "filesDeletedAsOrphans": counts.get("deleted as orphans", 0),
        "filesLeft": outcome.left,
        "failovers": counts.get("failovers", 0),
        "recoveredFromOwnState": counts.get(f"recoveries from {Origin.OWN_STATE.value}", 0),
        "recoveredFromSnapshot": counts.get(f"recoveries from {Origin.SNAPSHOT.value}", 0),
        "recoveredFromWholeLog": counts.get(f"recoveries from {Origin.WHOLE_LOG.value}", 0),
        "producedMs": outcome.produced_ms,
        "lastedMs": outcome.lasted_ms,
        "cost": round(sum(known_costs), _DIGITS) if len(known_costs) == len(costs) else None,
        "currency": price.currency if price else None,
    }


def _requests(outcome: Outcome, price: StoragePrice | None) -> Iterator[tuple[str, int, float | None]]:
    """Lists cost what writes do, and deletions nothing, in S3 and in Google Cloud Storage."""
    writes = price.per_thousand_puts if price else None
    reads = price.per_thousand_gets if price else None
    for name, number, per_thousand in (
        ("write requests", outcome.puts, writes),
        ("list requests", outcome.lists, writes),
        ("read requests", outcome.gets, reads),
        ("delete requests", outcome.deletes, 0.0 if price else None),
    ):
        yield name, number, None if per_thousand is None else round(number * per_thousand / 1000, _DIGITS)


def _storage_cost(outcome: Outcome, price: StoragePrice | None) -> float | None:
    return round(outcome.byte_ms / _MONTH_MS / _GIB * price.per_gib_month, _DIGITS) if price else None
