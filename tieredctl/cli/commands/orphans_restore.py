"""`tieredctl orphans restore`: a removal undone."""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, pairs
from tieredctl.cli.commands.removal_outcome import (
    ReceiptRow,
    receipt_rows,
)
from tieredctl.cli.options import DryRun, NoLease, Store, TieredStoreOptions
from tieredctl.cli.outcome import say
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.printable import printable
from tieredctl.model.quantities import size_text

_MOST_LINES = 20


def restore(
    *,
    receipts: Annotated[
        str, typer.Argument(metavar="RECEIPTS", help="The receipts file, or the plan's id with --store.")
    ],
    store: Store = None,
    store_option: TieredStoreOptions = None,
    accept_unverified: Annotated[
        bool,
        typer.Option(
            "--accept-unverified",
            help="Also put back copies of which nothing tells whether they hold what was removed.",
        ),
    ] = False,
    no_lease: NoLease = False,
    dry_run: DryRun = False,
    view: ProgressView,
) -> ExitCode:
    """Restore what a plan removed from quarantine (exit 5 if something could not be restored).

    A copy is put back only if it holds the bytes that were removed, by what was noted of them then.

    For example: tieredctl orphans restore orphans.plan.receipts
    """
    from tieredctl.wiring.orphan_removal import restoration_by_file, restoration_by_plan

    options = pairs("--store-option", store_option)
    if store is None:
        restoration = restoration_by_file(given_path(receipts), options)
    else:
        restoration = restoration_by_plan(receipts, store, options, to_apply=not dry_run)
    if dry_run:
        outcome = restoration.rehearse(clock_ms, accept_unverified=accept_unverified)
    else:
        outcome = restoration.apply(clock_ms, without_lease=no_lease, accept_unverified=accept_unverified)
    header = restoration.receipts.header
    source = {"receipts": receipts, "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    if dry_run:
        sentence = (
            f"Would put back {counted(outcome.planned, 'object')}, {size_text(outcome.bytes)}, in {header.store}."
        )
    else:
        sentence = (
            f"Put back {outcome.done} of {outcome.planned} objects, {size_text(outcome.bytes)}, in {header.store}."
        )
    view.say(
        f"{sentence} No receipts were used: the store has none for this plan." if restoration.are_lost else sentence
    )
    if outcome.unverified:
        view.say(f"{counted(outcome.unverified, 'object')} of these without proof that it is what was removed.")
    for damage in outcome.damaged[:_MOST_LINES]:
        say(printable(f"{damage}: its object is put back if it is in quarantine."))
    if len(outcome.damaged) > _MOST_LINES:
        say(f"… and {len(outcome.damaged) - _MOST_LINES} more lines of receipts that cannot be read.")
    summary = outcome.counts() | {
        "unverified": outcome.unverified,
        "damagedReceipts": len(outcome.damaged),
        "receiptsLost": restoration.are_lost,
        "dryRun": dry_run,
    }
    rows = receipt_rows(restoration.receipts, view.output, outcome.failures)
    return view.end(result_listing("Restoration", source, ReceiptRow, rows, summary), outcome)
