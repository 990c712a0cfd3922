"""A plan that is read, confirmed, applied and shown, whatever decides about its objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.cli.arguments import given_path
from tieredctl.cli.commands.removal_outcome import ReceiptRow, receipt_rows
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.removal_options import ApplyLimitOptions, ApplyOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView, View
from tieredctl.config.plan_key import key_for_seals, known_key, signing_key
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.named_cluster import demand_named_cluster
from tieredctl.model.pasteable import pasteable
from tieredctl.model.printable import printable
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.model.removal import PlanHeader, RemovalMode
from tieredctl.wiring.places import StorePlace

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.apply import RemovalOutcome
    from tieredctl.ops.orphan_removal.limits import Limits
    from tieredctl.ops.orphan_removal.plan_file import PlanFile
    from tieredctl.wiring.orphan_removal import Applied, OwnersPlace

_IN_STORE = "store"


class ChosenPlan(NamedTuple):
    """A plan that may be applied, and what of it."""

    plan: PlanFile
    limits: Limits
    key: bytes | None
    """The user's."""

    @property
    def header(self) -> PlanHeader:
        return self.plan.header


def chosen_plan(
    path: Path,
    limits: ApplyLimitOptions,
    how: ApplyOptions,
    view: View,
    foreign: Sequence[str] = (),
    unknown: Sequence[str] = (),
) -> ChosenPlan:
    """Raises TieredctlError for a plan that cannot be read, or that somebody else may have written."""
    from tieredctl.ops.orphan_removal.limits import GivenLimits, demand_asked_for, demand_signed, limits_of
    from tieredctl.ops.orphan_removal.plan_file import read_plan

    key = known_key()
    plan = read_plan(path, key)
    age_ms = None if limits.min_age is None else duration_ms(limits.min_age)
    given_limits = GivenLimits(
        *(age_ms, limits.max_percent, limits.max_missing, limits.allow_young),
        *(frozenset(foreign), frozenset(unknown)),
    )
    chosen = ChosenPlan(plan, limits_of(plan, given_limits), key)
    if not (how.trust_plan or how.dry_run):
        demand_signed(plan)
    elif not plan.is_signed:
        view.say(f"{path} was not signed with your key: its limits and names are ignored.")
    if not how.dry_run:
        demand_asked_for(plan, delete=how.delete)
    return chosen


def apply_plan(
    chosen: ChosenPlan,
    store: StorePlace,
    owners: OwnersPlace,
    how: ApplyOptions,
    cluster_id: str | None,
    clock_ms: Callable[[], int],
    view: ProgressView,
) -> ExitCode:
    """Asks, applies it or only looks whether it could be, and shows what was done."""
    from tieredctl.ops.guards.pace import Pace
    from tieredctl.wiring.orphan_removal import PlanApplication, ReceiptPlace

    plan, header = chosen.plan, chosen.header
    demand_named_cluster(header.cluster_id)
    application = PlanApplication(plan, chosen.limits, store, owners, clock_ms, chosen.key)
    if how.dry_run:
        applied = application.rehearse()
    else:
        verb = "Permanently deleting" if header.mode is RemovalMode.DELETE else "Removing"
        amount = f"{counted(plan.totals.objects, 'object')}, {size_text(plan.totals.bytes)}"
        lacks = chosen.limits.max_missing
        although = f", where up to {counted(lacks, 'promised object')} may be missing" if lacks else ""
        what = f"{verb} {amount}, from {header.store}{although}"
        demand_confirmation(what, header.cluster_id, yes=how.yes, typed_cluster_id=cluster_id)
        receipts = ReceiptPlace(_receipt_file(how.receipts, plan.path))
        # What is beside the copies proves nothing without a seal.
        key = chosen.key or (signing_key() if receipts.file is None else key_for_seals())
        applied = replace(application, key=key).apply(
            receipts,
            pace=Pace(how.rate) if how.rate else lambda _: None,
            tell=view.teller(_progress),
            without_lease=how.no_lease,
            with_versions=how.delete_versions,
        )
    outcome = applied.outcome
    source = {"plan": str(plan.path), "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    summary = outcome.counts() | {"putBack": outcome.put_back, "lost": len(outcome.lost), "dryRun": how.dry_run}
    summary |= {"requests": applied.requests, "stays": applied.stays.document()}
    headline = _rehearsed(plan, applied) if how.dry_run else _headline(plan, applied)
    view.say(headline, *applied.stays.sentences())
    rows = receipt_rows(applied.receipts, view.output)
    return view.end(result_listing("Removal", source, ReceiptRow, rows, summary), outcome)


def _receipt_file(named: str | None, plan: Path) -> Path | None:
    """Where the receipts of a plan are to be; None for its store."""
    if named == _IN_STORE:
        return None
    return given_path(named) if named is not None else plan.with_name(plan.name + ".receipts")


def _progress(done: RemovalOutcome) -> str:
    return f"{done.done} of {done.planned} removed, {size_text(done.bytes)}"


def _rehearsed(plan: PlanFile, applied: Applied) -> str:
    verdict = "no longer as planned" if applied.outcome.stopped else "still as planned"
    objects, size = counted(plan.totals.objects, "object"), size_text(plan.totals.bytes)
    are = "is" if plan.totals.objects == 1 else "are"
    return f"{objects}, {size}, {are} {verdict}; nothing was changed."


def _headline(plan: PlanFile, applied: Applied) -> str:
    done = applied.outcome
    # Alone: an escape in it would have the command escaped with it.
    store = printable(plan.header.store)
    what = f"Removed {done.done} of {done.planned}, {size_text(done.bytes)}, from {store}."
    if plan.header.mode is RemovalMode.DELETE or applied.receipts is None:
        return what
    place = " --store {store}" if applied.receipts.where == plan.header.plan_id else ""
    named = {"file": applied.receipts.where, "store": plan.header.store}
    return f"{what} Undo with: {next_command(pasteable(f'tieredctl orphans restore {{file}}{place} …', named))}"
