"""`tieredctl orphans plan`: what is to be removed, in a file that is applied later or never."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from tieredctl.cli.arguments import clock_ms, given_path, kafka_id
from tieredctl.cli.commands.removal_plan import show_plan
from tieredctl.cli.findings.remedies import next_command
from tieredctl.cli.options import ClusterId, Inventory, MinAge, Resume
from tieredctl.cli.places import MetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.removal_options import AllowYoung, PlanSizeOptions, young_sentence
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.finding_subjects import UnknownObjects
from tieredctl.model.ownership import OrphanCause
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces, write_plan


def plan(
    *,
    to: Annotated[Path, typer.Option("--to", metavar="PLAN", parser=given_path, help="Write the plan here.")],
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    cause: Annotated[
        list[OrphanCause] | None,
        typer.Option(
            metavar="CAUSE", help=f"Only objects of this cause; repeat it for several: {', '.join(OrphanCause)}."
        ),
    ] = None,
    foreign: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-ID", parser=kafka_id, help="Also plan this foreign topic's objects; repeatable."),
    ] = None,
    unknown: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Also plan this object that no layout explains; repeatable."),
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
    allow_young: AllowYoung = False,
    topic_lists: TopicListOptions,
    cluster_id: ClusterId = None,
    size: PlanSizeOptions,
    view: ProgressView,
) -> ExitCode:
    """Write a plan to remove orphaned objects. Changes nothing in the store.

    It includes foreign and unknown objects only if they are named.

    For example: tieredctl orphans plan --to orphans.plan --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
    from tieredctl.ops.orphan_removal.limits import PlanOptions

    options = PlanOptions(
        plan_id=uuid4().hex,
        mode=size.mode,
        cluster_id=cluster_id,
        valid_for_ms=duration_ms(size.valid_for),
        max_percent=size.max_percent,
        max_missing=size.max_missing,
        max_objects=size.max_objects,
        max_bytes=size.max_bytes,
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
        ListingPlace(inventory=inventory, resume=None if size.dry_run else resume, mark=mark),
    )
    scanned = ScanOptions(
        now_ms=clock_ms(),
        min_age_ms=duration_ms(min_age),
        selection=selected.selection(),
    )
    written = write_plan(
        *(places, scanned, options, to, clock_ms), with_uploads=multipart, force=size.force, dry_run=size.dry_run
    )
    planned, totals = written.planning.planned, written.totals
    for finding in written.planning.scan.findings:
        if isinstance(finding.about, UnknownObjects):
            view.say(f"Not planned: {finding.message}. Recover the metadata first: {next_command(finding.remedy)}")
    code = show_plan(
        *(view, written.source, planned, totals, to, "orphans apply"), dry_run=size.dry_run, silence=written.silence
    )
    if written.lone_witness:
        view.say(written.lone_witness)
    if young := young_sentence(written.planning.scan.summary(), min_age):
        view.say(young)
    return code
