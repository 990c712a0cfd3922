"""`tieredctl orphans restore`: a removal undone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, pairs
from tieredctl.cli.change import View
from tieredctl.cli.commands.removal_outcome import (
    COLUMNS,
    FIELDS,
    receipt_rows,
)
from tieredctl.cli.options import (
    MetricsFile,
    NoLease,
    Output,
    Quiet,
    Store,
    StoreOptions,
)
from tieredctl.cli.outcome import say
from tieredctl.cli.output import Listing, OutputFormat, printable
from tieredctl.config.plan_key import usable_key
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.storage.registry import open_writable_store

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.receipts import Receipts
    from tieredctl.storage.protocol import WritableObjectStore

_PLAN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_MOST_LINES = 20


def restore(
    receipts: Annotated[
        str, typer.Argument(metavar="RECEIPTS", help="The file of receipts, or the plan's id with --store.")
    ],
    store: Store = None,
    store_option: StoreOptions = None,
    no_lease: NoLease = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Put back what a plan removed, from its quarantine: exit 5 if something could not be."""
    from tieredctl.ops.orphan_removal.restore import Restore

    opened_store, opened, are_lost = _receipts_to_restore(receipts, store, store_option)
    outcome = Restore(opened_store, opened, clock_ms, no_lease, usable_key()).run()
    header = opened.header
    source = {"receipts": receipts, "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    view = View(output, quiet, metrics_file)
    said = f"Put back {outcome.done} of {outcome.planned} objects, {outcome.bytes} bytes, in {header.store}."
    view.say(f"{said} It was done without receipts: the store has none of this plan." if are_lost else said)
    for damage in outcome.damaged[:_MOST_LINES]:
        say(printable(f"{damage}: what it told of is put back if it is in quarantine."))
    if len(outcome.damaged) > _MOST_LINES:
        say(f"… and {len(outcome.damaged) - _MOST_LINES} more lines of receipts that cannot be read.")
    summary = outcome.counts() | {"damagedReceipts": len(outcome.damaged), "receiptsLost": are_lost}
    return view.end(Listing("Restoration", source, receipt_rows(opened, output), COLUMNS, summary, FIELDS), outcome)


def _receipts_to_restore(
    named: str, store: str | None, store_option: Sequence[str] | None
) -> tuple[WritableObjectStore, Receipts, bool]:
    """The store, the receipts, and whether those that the plan left are lost."""
    from tieredctl.ops.orphan_removal.receipts import ReceiptFile, StoredReceipts
    from tieredctl.ops.orphan_removal.restore import receipts_from_quarantine

    options = pairs("--store-option", store_option)
    if store is None:
        receipts = ReceiptFile.opened(given_path(named))
        return open_writable_store(receipts.header.store, options), receipts, False
    if _PLAN_ID.fullmatch(named) is None and not Path(named).is_file():
        hint = "Leave --store out for a file of receipts."
        raise TieredctlError(ErrorCode.USAGE, f"{named!r} is not a plan's id.", hint=hint)
    if Path(named).is_file():
        raise TieredctlError(ErrorCode.USAGE, f"The receipts in {named} name their store.", hint="Leave --store out.")
    opened = open_writable_store(store, options)
    try:
        return opened, StoredReceipts.opened(opened, named), False
    except TieredctlError as error:
        if error.code not in (ErrorCode.PATH_MISSING, ErrorCode.RECEIPTS_DAMAGED):
            raise
        return opened, receipts_from_quarantine(opened, named), True
