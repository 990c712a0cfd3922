"""`tieredctl wal verify`: does a store have what its events promise?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tieredctl.cli.arguments import now_ms
from tieredctl.cli.findings_table import FINDING_COLUMNS, FINDING_FIELDS
from tieredctl.cli.options import Now
from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Listing
from tieredctl.cli.view import View
from tieredctl.cli.wal_places import WalStoreOptions
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.wal.level import WalLevel


def verify(
    *,
    store_options: WalStoreOptions,
    level: Annotated[
        WalLevel, typer.Option(help="Check the listing, indexes and first batches too, or every byte.")
    ] = WalLevel.HEADERS,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Report uploads and deletions as stuck when they take longer.")
    ] = "1h",
    now: Now = None,
    view: View,
) -> ExitCode:
    """Prove that a store has the combined objects that its events promise (exit 4 if something is lost or altered).

    For example: tieredctl wal verify --store file:/tmp/wal --level full
    """
    from tieredctl.ops.wal.contents import read_contents
    from tieredctl.ops.wal.verify import WalVerification, verify_wal

    def progress(result: WalVerification) -> str:
        return f"{counted(result.batches, 'batch', 'batches')}, {result.bytes_read} bytes read"

    opened = store_options.place().open_store()
    clock = Clock(now_ms(now), duration_ms(older_than))
    result = verify_wal(opened, read_contents(opened), level, clock, view.teller(progress))
    listing = Listing(
        "WalVerification",
        {"kind": "wal-store", "store": opened.url},
        finding_documents(result.findings),
        FINDING_COLUMNS,
        result.summary,
        FINDING_FIELDS,
    )
    what = f"{counted(result.objects, 'object')}, {counted(result.segments, 'segment')}"
    if level is not WalLevel.LISTING:
        what += f", {counted(result.batches, 'batch', 'batches')}, {counted(result.bytes_read, 'byte')} read"
    verdict = counted(len(result.findings), "finding") if result.findings else "all intact"
    if view.is_table:
        view.say(f"Verified {what} ({level.value}): {verdict}.")
    return replace(view, quiet=True).show(listing, result.findings)
