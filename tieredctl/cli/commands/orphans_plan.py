"""`tieredctl orphans plan`: what is to be removed, in a file that is applied later or never."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from tieredctl.cli.arguments import clock_ms, given_path, kafka_id, percentage
from tieredctl.cli.options import ClusterId, Inventory, MinAge, Resume
from tieredctl.cli.outcome import say
from tieredctl.cli.output import Listing, TableColumn, printable
from tieredctl.cli.places import MetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.view import View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.ownership import OrphanCause
from tieredctl.model.quantities import duration_ms
from tieredctl.model.removal import PlanTotals, RemovalMode
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces, write_plan

# `orphans scan` loads this module for the verb's name: what it does is loaded when it is typed.
if TYPE_CHECKING:
    from tieredctl.ops.orphan_removal.orphan_plan import Planning, PlanOptions

_COLUMNS = (TableColumn("CAUSE", "cause"), TableColumn("OBJECTS", "objects"), TableColumn("BYTES", "bytes"))


def plan(
    *,
    to: Annotated[Path, typer.Option("--to", metavar="PLAN", parser=given_path, help="Write the plan here.")],
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    cause: Annotated[
        list[OrphanCause] | None, typer.Option(help="Only objects of this cause; repeat it for several.")
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-ID", parser=kafka_id, help="Also plan this foreign topic's objects."),
    ] = None,
    unknown: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Also plan this object, which no layout explains.")
    ] = None,
    multipart: Annotated[bool, typer.Option("--multipart", help="Also plan to abort incomplete uploads.")] = False,
    inventory: Inventory = None,
    resume: Resume = None,
    mark: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="PATH-OR-URL",
            help="Consider only what a job on Spark marked in this folder; each object is judged again.",
        ),
    ] = None,
    min_age: MinAge = "24h",
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow a --min-age below 1h; only if nothing writes to the store.")
    ] = False,
    topic_lists: TopicListOptions,
    cluster_id: ClusterId = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete permanently instead of moving to quarantine.")
    ] = False,
    max_percent: Annotated[
        float,
        typer.Option(
            metavar="NUMBER", parser=percentage, help="Refuse to plan more than this share of the store's objects."
        ),
    ] = 10.0,
    max_objects: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Plan at most this many objects; leave the rest.", min=0)
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Plan at most this many bytes; leave the rest.", min=0)
    ] = None,
    valid_for: Annotated[str, typer.Option(metavar="DURATION", help="How long the plan may be applied.")] = "24h",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing plan.")] = False,
    view: View,
) -> ExitCode:
    """Write a plan to remove orphaned objects. Changes nothing in the store.

    It includes foreign and unknown objects only if they are named.
    """
    from tieredctl.ops.orphan_removal.orphan_plan import PlanOptions

    options = PlanOptions(
        plan_id=uuid4().hex,
        mode=RemovalMode.DELETE if delete else RemovalMode.QUARANTINE,
        cluster_id=cluster_id,
        valid_for_ms=duration_ms(valid_for),
        max_percent=max_percent,
        max_objects=max_objects,
        max_bytes=max_bytes,
        causes=frozenset(cause or OrphanCause),
        foreign_topic_ids=frozenset(foreign or ()),
        unknown_keys=frozenset(unknown or ()),
        allow_young=allow_young,
    )
    if mark is not None and (foreign or unknown):
        message = "A job marks orphaned objects alone: --foreign and --unknown have nothing to name with --from."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Make another plan for those, without --from.")
    metadata = metadata_options.place()
    places = ScanPlaces(
        metadata,
        remote_options.place(),
        topic_lists.beside(metadata),
        ListingPlace(inventory=inventory, resume=resume, mark=mark),
    )
    scanned = ScanOptions(
        now_ms=clock_ms(),
        min_age_ms=duration_ms(min_age),
        selection=selected.selection(),
    )
    planning, totals, source = write_plan(places, scanned, options, to, with_uploads=multipart, force=force)
    summary = _summary(options, totals, planning)
    listing = Listing("RemovalPlan", source, _rows(planning), _COLUMNS, summary, ("cause", "objects", "bytes"))
    if not view.quiet:
        say(printable(_headline(totals, planning.left, to)))
    return view.show(listing)


def _rows(planning: Planning) -> Sequence[dict[str, object]]:
    return [
        {"cause": cause, "objects": counted.objects, "bytes": counted.bytes}
        for cause, counted in sorted(planning.planned.items(), key=lambda item: -item[1].bytes)
    ]


def _summary(options: PlanOptions, totals: PlanTotals, planning: Planning) -> dict[str, object]:
    return {
        "planId": options.plan_id,
        "mode": options.mode.value,
        "planned": totals.objects + totals.uploads,
        "bytes": totals.bytes,
        "uploads": totals.uploads,
        "left": planning.left,
        "listed": totals.listed_objects,
    }


def _headline(totals: PlanTotals, left: int, to: Path) -> str:
    what = f"{totals.objects} of {counted(totals.listed_objects, 'object')}, {counted(totals.bytes, 'byte')}"
    if totals.uploads:
        what += f", and {counted(totals.uploads, 'upload')}"
    if left:
        what += f" ({left} more left for another plan)"
    return f"Planned to remove {what}. Apply it with: tieredctl orphans apply {to}"
