"""`tieredctl recover log-starts`: log starts that moved, put back in the files of a stopped node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, Yes
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.metadata_recovery.log_start_plan import LogStartPlan
from tieredctl.ops.metadata_recovery.log_start_writing import LogStartOutcome, RestoredLogStartRow
from tieredctl.ops.metadata_recovery.restored_log_start import Action, LogStartRow
from tieredctl.wiring.log_start_recovery import log_start_recovery


def log_starts(
    *,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", parser=given_path, help="What `recover metadata -o json` wrote.")
    ],
    log_dir: Annotated[
        Path, typer.Option("--log-dir", metavar="DIR", parser=given_path, help="A stopped node's log directory.")
    ],
    choice: ApplyChoice,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Put back log starts that brokers moved when they started with an empty metadata topic.

    Run it on every node that has a replica, for each of its log directories, while all brokers are stopped. Exit 3 if
    something can be restored, 5 if something cannot. If interrupted, run the same command again.

    For example: tieredctl recover log-starts plan.json --log-dir /var/lib/kafka/data
    """
    with log_start_recovery(plan, log_dir) as recovery:
        shown = recovery.plan
        view.say(*_sentences(shown))
        to_restore = len(shown.by_action(Action.RESTORE))
        refusal = _refusal(shown)
        if not choice.is_made or not (to_restore or refusal):
            code = ExitCode.FINDINGS if to_restore else ExitCode.CLEAN
            if refusal is not None or shown.by_action(Action.UNKNOWN):
                code = ExitCode.INCOMPLETE
            advice = choice.advice(changes=to_restore > 0 and refusal is None)
            return view.plan("LogStartRecoveryPlan", shown, LogStartRow, code, advice)
        if refusal is None:
            what = f"Writing {counted(len(shown.to_replace()), 'checkpoint file')} in {shown.node.log_dir}"
            demand_confirmation(what, shown.node.cluster_id, yes=yes, typed_cluster_id=cluster_id)
            outcome = recovery.apply()
        else:
            outcome = LogStartOutcome(plan=shown, planned=to_restore, stopped=refusal)
    if outcome.files:
        done = f"{outcome.done} of {counted(outcome.planned, 'partition')}"
        view.say(f"Restored the log starts of {done}; each old file is beside the new one, as *.tieredctl-kept-*.")
    ended = shown.summary() | outcome.counts() | {"written": outcome.files, "applied": True}
    listing = result_listing("LogStartRecovery", shown.source(), RestoredLogStartRow, outcome.rows(), ended)
    return view.end(listing, outcome)


def _refusal(plan: LogStartPlan) -> TieredctlError | None:
    """Why nothing is written: all of a log directory's partitions are restored, or none."""
    refused = plan.by_action(Action.REFUSE)
    if not refused:
        return None
    first = refused[0].partition
    others = f" and {counted(len(refused) - 1, 'other')}" if len(refused) > 1 else ""
    message = f"The log start of {first.topic}-{first.partition}{others} cannot be restored; nothing was written."
    hint = "Make a new plan with `tieredctl recover metadata -o json`, for the partitions that can be."
    return TieredctlError(ErrorCode.WORLD_CHANGED, message, hint=hint)


def _sentences(plan: LogStartPlan) -> Iterator[str]:
    for one in (*plan.by_action(Action.REFUSE), *plan.by_action(Action.UNKNOWN)):
        yield f"{one.partition.topic}-{one.partition.partition} cannot be restored: {one.reason}."
    elsewhere = len(plan.by_action(Action.NOT_HERE))
    if elsewhere:
        yield f"{counted(elsewhere, 'partition')} of the plan {'is' if elsewhere == 1 else 'are'} not here."
    in_place = len(plan.by_action(Action.NOTHING))
    if in_place:
        yield f"{counted(in_place, 'log start')} {'is' if in_place == 1 else 'are'} as the plan wants."
    to_restore = len(plan.by_action(Action.RESTORE))
    if to_restore:
        files = counted(len(plan.to_replace()), "checkpoint file")
        yield f"{counted(to_restore, 'log start')} to restore in {plan.node.log_dir}, with {files} to write."
    else:
        yield "There is nothing to write."
