"""`tieredctl wal verify`: does a store have what its events promise?"""

from __future__ import annotations

from typing import Annotated

import typer

from tieredctl.cli.arguments import now_ms
from tieredctl.cli.options import Now
from tieredctl.cli.verdict import verdict
from tieredctl.cli.view import FindingListView
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl_proposals.cli.wal_places import WalStoreOptions
from tieredctl_proposals.ops.wal.level import WalLevel

_NOT_READ = {
    WalLevel.LISTING: "what the objects hold",
    WalLevel.HEADERS: "all but the first batch of each segment",
}


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
    view: FindingListView,
) -> ExitCode:
    """Prove that a store has the combined objects that its events promise (exit 4 if something is lost or altered).

    For example: tieredctl wal verify --store file:/tmp/wal --level full
    """
    from tieredctl_proposals.ops.wal.contents import read_contents
    from tieredctl_proposals.ops.wal.verify import WalVerification, verify_wal

    def progress(result: WalVerification) -> str:
        return f"{counted(result.batches, 'batch', 'batches')}, {size_text(result.bytes_read)} read"

    opened = store_options.place().open_store()
    clock = Clock(now_ms(now), duration_ms(older_than))
    result = verify_wal(opened, read_contents(opened), level, clock, view.teller(progress))
    what = f"{counted(result.objects, 'object')}, {counted(result.segments, 'segment')}"
    if level is not WalLevel.LISTING:
        what += f", {counted(result.batches, 'batch', 'batches')}, {size_text(result.bytes_read)} read"
    source = {"kind": "wal-store", "store": opened.url}
    headline = f"Verified {what} ({level.value}): {verdict(level, len(result.findings), _NOT_READ.get(level))}"
    return view.show_findings("WalVerification", source, result.findings, result.summary, headline)
