"""`tieredctl orphans apply`: applies a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, kafka_id, objects_a_second, percentage
from tieredctl.cli.commands.removal_outcome import (
    COLUMNS,
    FIELDS,
    DeleteVersions,
    demand_source,
    receipt_rows,
)
from tieredctl.cli.confirmation import demand_confirmation
from tieredctl.cli.options import (
    BootstrapServer,
    ClusterId,
    CommandConfig,
    DryRun,
    Export,
    LayoutOptions,
    LogDirs,
    MetadataSource,
    MetadataSourceOptions,
    NoLease,
    OfflineMetadata,
    StoreOptions,
    Yes,
)
from tieredctl.cli.output import Listing
from tieredctl.cli.places import MetadataOptions, RemoteOptions, TopicListOptions
from tieredctl.cli.view import View
from tieredctl.config.plan_key import known_key
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import duration_ms
from tieredctl.model.removal import RemovalMode

# `orphans scan` loads this module for the verbs' names: what they do is loaded when they are typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.apply import RemovalOutcome
    from tieredctl.ops.orphan_removal.plan_file import PlanFile
    from tieredctl.wiring.orphan_removal import Applied

_IN_STORE = "store"


def apply(
    *,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", parser=given_path, help="The file that `orphans plan` wrote.")
    ],
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    offline_metadata: OfflineMetadata = False,
    log_dir: LogDirs = None,
    export: Export = None,
    metadata_source: MetadataSource = None,
    metadata_source_option: MetadataSourceOptions = None,
    topic_lists: TopicListOptions,
    store_option: StoreOptions = None,
    layout_option: LayoutOptions = None,
    receipts: Annotated[
        str | None,
        typer.Option(metavar="FILE|store", help="Where to record what was removed; PLAN.receipts by default."),
    ] = None,
    min_age: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Remove nothing younger than this; by default the plan's own, or 24h."),
    ] = None,
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow a --min-age below 1h; only if nothing writes to the store.")
    ] = False,
    max_percent: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            parser=percentage,
            help="Refuse to remove more than this share of the store's objects; by default the plan's own, or 10.",
        ),
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-ID", parser=kafka_id, help="Also remove this foreign topic's objects, if planned."),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Also remove this object that no layout explains, if planned."),
    ] = None,
    trust_plan: Annotated[
        bool, typer.Option("--trust-plan", help="Apply a plan that was not signed with your key.")
    ] = False,
    rate: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", parser=objects_a_second, help="At most this many objects per second."),
    ] = None,
    cluster_id: ClusterId = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    no_lease: NoLease = False,
    delete_versions: DeleteVersions = False,
    view: View,
) -> ExitCode:
    """Apply a plan, or resume an interrupted one: each object is checked again before it is removed.

    The plan is not trusted: only objects that are orphaned now are removed; foreign and unknown objects only if they
    are named. Exit 5 if something was skipped, failed, or stopped the run.
    """
    from tieredctl.ops.orphan_removal.limits import GivenLimits, demand_signed, limits_of
    from tieredctl.ops.orphan_removal.pace import Pace
    from tieredctl.ops.orphan_removal.plan_file import read_plan
    from tieredctl.wiring.orphan_removal import PlanApplication, ReceiptPlace

    key = known_key()
    chosen = read_plan(plan, key)
    header = chosen.header
    given_age_ms = None if min_age is None else duration_ms(min_age)
    given = GivenLimits(given_age_ms, max_percent, allow_young, frozenset(foreign or ()), frozenset(unknown or ()))
    limits = limits_of(chosen, given)
    if not (trust_plan or dry_run):
        demand_signed(chosen)
    elif not chosen.is_signed:
        view.say(f"{plan} was not signed with your key: its limits and names are ignored.")
    demand_source(bootstrap_server, offline_metadata=offline_metadata, are_listed=topic_lists.are_given)
    place = MetadataOptions(
        log_dir, bootstrap_server, command_config, export, metadata_source, metadata_source_option
    ).place()
    application = PlanApplication(
        *(chosen, limits, RemoteOptions(header.store, store_option, header.layout, layout_option).place(), place),
        *(topic_lists.beside(place), clock_ms, key),
    )
    if dry_run:
        applied = application.rehearse()
    else:
        verb = "Permanently deleting" if header.mode is RemovalMode.DELETE else "Removing"
        amount = f"{counted(chosen.totals.objects, 'object')}, {counted(chosen.totals.bytes, 'byte')}"
        what = f"{verb} {amount}, from {header.store}"
        demand_confirmation(what, header.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        applied = application.apply(
            ReceiptPlace(_receipt_file(receipts, plan)),
            pace=Pace(rate) if rate else lambda _: None,
            tell=view.teller(_progress),
            without_lease=no_lease,
            with_versions=delete_versions,
        )
    outcome = applied.outcome
    source = {"plan": str(plan), "planId": header.plan_id, "clusterId": header.cluster_id, "store": header.store}
    summary = outcome.counts() | {"putBack": outcome.put_back, "lost": len(outcome.lost), "dryRun": dry_run}
    summary |= {"requests": applied.requests, "stays": applied.stays.document()}
    headline = _rehearsed(chosen, applied) if dry_run else _headline(chosen, applied)
    view.say(headline, *applied.stays.sentences())
    rows = receipt_rows(applied.receipts, view.output)
    return view.end(Listing("Removal", source, rows, COLUMNS, summary, FIELDS), outcome)


def _receipt_file(named: str | None, plan: Path) -> Path | None:
    """Where the receipts of a plan are to be; None for its store."""
    if named == _IN_STORE:
        return None
    return given_path(named) if named is not None else plan.with_name(plan.name + ".receipts")


def _progress(done: RemovalOutcome) -> str:
    return f"{done.done} of {done.planned} removed, {done.bytes} bytes"


def _rehearsed(plan: PlanFile, applied: Applied) -> str:
    verdict = "no longer as planned" if applied.outcome.stopped else "still as planned"
    objects, size = counted(plan.totals.objects, "object"), counted(plan.totals.bytes, "byte")
    are = "is" if plan.totals.objects == 1 else "are"
    return f"{objects}, {size}, {are} {verdict}; nothing was changed."


def _headline(plan: PlanFile, applied: Applied) -> str:
    done = applied.outcome
    what = f"Removed {done.done} of {done.planned}, {done.bytes} bytes, from {plan.header.store}."
    if plan.header.mode is RemovalMode.DELETE or applied.receipts is None:
        return what
    where = "" if applied.receipts.where != plan.header.plan_id else f" --store {plan.header.store}"
    return f"{what} Undo with: tieredctl orphans restore {applied.receipts.where}{where}"
