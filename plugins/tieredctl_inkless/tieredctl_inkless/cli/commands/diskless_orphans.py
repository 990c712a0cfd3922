"""`tieredctl diskless orphans …`: what brokers of diskless topics left in their bucket."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from tieredctl.cli.commands.orphans_own import quarantine, unlock
from tieredctl.cli.commands.orphans_restore import restore
from tieredctl.cli.commands.orphans_show import show
from tieredctl.cli.options import MinAge
from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.removal_options import not_older_sentence, young_sentence
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.ops.documents import Document
from tieredctl_inkless.cli.commands.diskless_orphans_removal import apply, plan, purge
from tieredctl_inkless.cli.diskless_places import CoordinatorLogsOptions, DisklessOptions

if TYPE_CHECKING:
    from tieredctl_inkless.ops.diskless.scan import DisklessScan
    from tieredctl_inkless.wiring.scans_by_logs import ScanByLogs

orphans = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
"""The commands below `diskless orphans`."""

_FIELDS = ("key", "size", "lastModified", "storageClass", "status", "cause", "evidence")
_COLUMNS = (
    TableColumn("STATUS", "status"),
    TableColumn("CAUSE", "cause"),
    TableColumn("OBJECTS", "objects"),
    size_column("bytes"),
    moment_column("OLDEST", "oldest"),
    TableColumn("NEWEST", "newest", wide=True),
)


@orphans.callback()
def only_verbs() -> None:
    """Find and remove orphaned objects of diskless topics."""


@orphans.command("scan")
def scan(
    *,
    places: DisklessOptions,
    logs: CoordinatorLogsOptions,
    min_age: MinAge = "24h",
    view: FindingsView,
) -> ExitCode:
    """Show which objects no batch of the control plane needs (exit 3 if any is orphaned, 4 if a needed one is missing).

    Ages are taken against the control plane's clock. Tables show totals; other formats list each object with the
    evidence. Changes nothing. With --log-dir, the logs of all diskless coordinators of KIP-1164 say what is needed, and
    --min-age is how much older than the oldest needed object an orphan is.
    For example: tieredctl diskless orphans scan --control-plane service=inkless --store s3://bucket -o jsonl
    """
    from tieredctl_inkless.wiring.diskless import scan_diskless

    place = logs.place(places)
    if place is not None:
        with place.scan(places.bucket(), duration_ms(min_age)) as (source, result):
            code = _shown(source, result, view)
            young = not_older_sentence(result.summary(), min_age)
    else:
        with scan_diskless(places.place(), places.bucket(), duration_ms(min_age)) as (source, result):
            code = _shown(source, result, view)
            young = young_sentence(result.summary(), min_age)
    if young:
        view.say(young)
    return code


def _shown(
    source: Document | Callable[[], Document], result: DisklessScan | ScanByLogs, view: FindingsView
) -> ExitCode:
    if not view.is_table:

        def summary_with_findings() -> Document:
            return result.summary() | {"findings": finding_documents(result.findings)}

        objects = Listing("DisklessObjects", source, result.documents(), (), summary_with_findings, _FIELDS)
        return view.show(replace(objects, reads_on=True), result.findings)
    result.run()
    summary = result.summary()
    listing = Listing("DisklessObjects", source, result.totals(), _COLUMNS, summary, ())
    return view.show(listing, result.findings, sentences=[_headline(summary)])


def _headline(summary: Document) -> str:
    orphaned = summary["status"][ObjectStatus.ORPHAN]
    are = "is" if orphaned["objects"] == 1 else "are"
    of_all = f"{orphaned['objects']} of {counted(summary['objects'], 'object')}"
    return f"{of_all}, {size_text(orphaned['bytes'])}, {are} orphaned."


for verb in (plan, show, apply, restore, purge, unlock):
    orphans.command(verb.__name__)(verb)
orphans.add_typer(quarantine, name="quarantine", help="What is in quarantine.")
