"""`tieredctl backup prune`: removes old backup sets that none of those which stay needs."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT32, clock_ms, pairs
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, StoreOptions, Yes
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.ops.backup.pruning import PrunedSetRow
from tieredctl.ops.backup.pruning_plan import KeepRules, PlannedSetRow
from tieredctl.wiring.backup import backup_pruning
from tieredctl.wiring.places import StorePlace

From = Annotated[str, typer.Option("--from", metavar="URL", help="Where `backup run` wrote its sets.")]


def prune(
    *,
    source: From,
    store_option: StoreOptions = None,
    keep_last: Annotated[
        int | None, typer.Option(metavar="N", help="Keep the last N sets.", min=1, max=GREATEST_INT32)
    ] = None,
    keep_within: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Keep sets younger than this: 12h, 30d.")
    ] = None,
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Remove old backup sets. A set that a later one needs stays until that one goes: sets need all those before them,
    back to one that `backup run --full` made, or the first. The newest set always stays, and the newest that lacks
    nothing; of both rules, what either keeps.

    Every byte of all sets is read first; if anything is missing or altered, nothing is removed (exit 4). If
    interrupted, run the same command again.

    For example: tieredctl backup prune --from s3://backups/kafka --keep-last 30 --keep-within 35d --apply
    """
    if keep_last is None and keep_within is None:
        message = "Nothing says which sets are to stay."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --keep-last, --keep-within, or both.")
    rules = KeepRules(keep_last, None if keep_within is None else duration_ms(keep_within))
    place = StorePlace(source, pairs("--store-option", store_option))
    pruning = backup_pruning(place, cluster_id, rules, clock_ms)
    plan = pruning.plan
    removed, summary = plan.to_remove(), plan.summary()
    amount = f"{counted(len(removed), 'set')} ({size_text(summary['bytes'])})"
    view.say(f"To remove: {amount}. To keep: {counted(len(plan.kept), 'set')}, from set {plan.first} on.")
    if needed := plan.only_needed():
        go = f"{counted(needed, 'set')} would go, but for later ones that need {'it' if needed == 1 else 'them'}"
        view.say(f"{go}: `backup run --full` begins a chain that needs none before it.")
    if not choice.is_made or not removed:
        return view.plan("BackupPrunePlan", plan, PlannedSetRow, advice=choice.advice(changes=bool(removed)))
    demand_confirmation(f"Deleting {amount} of {plan.url}", plan.cluster_id, yes=yes, typed_cluster_id=cluster_id)
    outcome, stays = pruning.apply()
    view.say(f"Removed {outcome.done} of {counted(outcome.planned, 'set')}, {size_text(outcome.bytes)}.")
    if stays.may_stay:
        view.say("The bucket keeps versions of what was removed, or may: a lifecycle rule of its own frees them.")
    ended = summary | outcome.counts() | {"applied": True, "stays": stays.document()}
    return view.end(result_listing("BackupPrune", plan.source(), PrunedSetRow, outcome.rows(), ended), outcome)
