"""`tieredctl orphans …`: orphaned objects of the remote store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import clock_ms, given_path, now_ms, pairs
from tieredctl.cli.commands.orphans_apply import apply
from tieredctl.cli.commands.orphans_own import quarantine, unlock
from tieredctl.cli.commands.orphans_plan import plan
from tieredctl.cli.commands.orphans_purge import purge
from tieredctl.cli.commands.orphans_restore import restore
from tieredctl.cli.commands.orphans_show import show
from tieredctl.cli.options import Engine, Inventory, MinAge, Now, Resume, SparkConf
from tieredctl.cli.outcome import say
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.pages.orphan_rows import OrphanRows
from tieredctl.cli.pages.report import Reported, table_of
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.removal_options import young_sentence
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.prices import StoragePrice
from tieredctl.model.printable import printable
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import (
    ScanPlaces,
    ShownScan,
    ShownScanSources,
    demand_known_objects,
    known_documents,
    scan_on,
)

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


_OBJECT_FIELDS = (
    *("key", "size", "lastModified", "segmentId", "topicId", "partition", "part", "storageClass"),
    *("status", "cause", "topicLive", "evidence"),
)
_TOTAL_COLUMNS = (
    TableColumn("STATUS", "status"),
    TableColumn("CAUSE", "cause"),
    TableColumn("TOPIC", "topic"),
    TableColumn("TOPIC-ID", "topicId", importance=0),
    TableColumn("OBJECTS", "objects"),
    size_column("bytes"),
    moment_column("OLDEST", "oldest"),
    moment_column("NEWEST", "newest", wide=True),
)


@_commands.command("scan")
def scan(
    *,
    metadata_options: PastMetadataOptions,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    min_age: MinAge = "24h",
    topic_lists: TopicListOptions,
    key_list: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            parser=given_path,
            help="A file with the store's keys, one per line, instead of listing it; without sizes.",
        ),
    ] = None,
    inventory: Inventory = None,
    resume: Resume = None,
    now: Now = None,
    engine: Engine = LOCAL,
    spark_conf: SparkConf = None,
    view: FindingsView,
    page: ReportOptions,
) -> ExitCode:
    """Show which segment owns each object (exit 3 if any is orphaned).

    Tables show totals; other formats list each object with the evidence. Changes nothing.

    For example: tieredctl orphans scan --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
    page.demand_possible()
    metadata = metadata_options.place()
    places = ScanPlaces(
        metadata,
        remote_options.place(),
        topic_lists.beside(metadata),
        ListingPlace(key_list, inventory, resume),
    )
    options = ScanOptions(
        now_ms=now_ms(now),
        min_age_ms=duration_ms(min_age),
        selection=selected.selection(),
    )
    chosen = engine_named(engine, pairs("--spark-conf", spark_conf))
    with scan_on(chosen, places, options, lists_all=not view.is_table) as opened:
        result = opened.scan
        unlisted = cache(opened.noncurrent)

        def source() -> Document:
            return opened.source() | {"at": iso_8601(clock_ms())}

        def summary() -> Document:
            counted, totals = unlisted(), result.summary()
            is_complete = totals["complete"] and opened.topics.silence is None
            beside = {"complete": is_complete, "noncurrent": counted and counted.document()}
            return totals | beside | options.selection.document()

        def code_of_topics() -> ExitCode:
            return ExitCode.CLEAN if opened.topics.silence is None else ExitCode.INCOMPLETE

        orphans = OrphanRows(options.now_ms, has_sizes=key_list is None) if page.report is not None else None
        if view.is_table:
            _read(result, orphans)
            demand_known_objects(places, result)
            price = result.options.price
            columns = _TOTAL_COLUMNS if price is None else (*_TOTAL_COLUMNS, _cost_column(price))
            listing = Listing("RemoteObjects", source, result.totals(), columns, summary, ())
        else:
            documents = known_documents(places, result)
            items = documents if orphans is None else orphans.through(documents)
            listing = Listing("RemoteObjects", source, items, (), summary, _OBJECT_FIELDS, reads_on=True)
        code = view.show(listing, result.findings, code_of_topics)
        if silence := opened.topics.silence:
            view.say(silence)
        if witness := _unproven(opened) or opened.topics.lone_witness:
            view.say(witness)
        if not view.quiet:
            doubt = opened.doubt()
            if doubt is not None:
                say(printable(f"{doubt.message} Objects that it lacks look deleted."))
            say(_headline(result))
            if young := young_sentence(result.summary(), min_age):
                say(young)
            if view.is_table and (unknown := _unknown(result.summary())):
                say(unknown)
            if unpriced := result.summary()["classesWithoutPrice"]:
                say(printable(f"Priced like the store, since they have no price of their own: {', '.join(unpriced)}."))
            counted = unlisted()
            if counted and (sentence := counted.sentence()):
                say(sentence)
        if orphans is not None:
            doubts = list(_doubts(opened, places))
            page.write(code, lambda: _reported(result, opened.source(), doubts, orphans, view.tolerance))
    return code


def _read(result: ShownScan, orphans: OrphanRows | None) -> None:
    """Runs a scan of which only totals are shown."""
    if orphans is None:
        result.run()
    else:
        deque(orphans.through(result.documents()), maxlen=0)


def _unproven(opened: ShownScanSources) -> str:
    """Why the metadata log beside the metadata does not tell which topics are gone; empty where it does, or is not
    there."""
    reason = (opened.source()["liveTopics"] or {}).get("unproven")
    return f"It is unknown which topics are gone: {reason}" if reason else ""


def _doubts(opened: ShownScanSources, places: ScanPlaces) -> Iterator[str]:
    """What a scan did not see."""
    if not opened.scan.summary()["complete"]:
        yield "The scan is incomplete: its findings say why."
    if silence := opened.topics.silence:
        yield silence
    if witness := _unproven(opened) or opened.topics.lone_witness:
        yield witness
    if doubt := opened.doubt():
        yield f"{doubt.message} Objects that it lacks look deleted."
    if places.listing.key_list is not None:
        yield "Sizes and ages are unknown: a list of keys has none."


def _reported(
    result: ShownScan, source: Document, doubts: Sequence[str], orphans: OrphanRows, tolerance: Tolerance
) -> Reported:
    from tieredctl.cli.pages.report_plots import ages_plot

    plot = ages_plot(orphans.sizes) if orphans.has_sizes else None
    columns = [column for column in _TOTAL_COLUMNS if orphans.has_sizes or column.people_read is None]
    tables = [table_of("Totals", columns, result.totals()), *([orphans.table()] if orphans.rows else [])]
    plots = [] if plot is None else [plot]
    return Reported(source, result.findings, _headline(result), (), doubts, plots, tables, tolerance)


def _cost_column(price: StoragePrice) -> TableColumn:
    return TableColumn(f"{price.currency}/MONTH", "monthlyCost")


def _headline(result: ShownScan) -> str:
    summary = result.summary()
    orphans = summary["status"][ObjectStatus.ORPHAN]
    cost = f", {orphans['monthlyCost']:.2f} {summary['currency']} a month" if "monthlyCost" in orphans else ""
    found_of_all = f"{orphans['objects']} of {counted(summary['objects'], 'object')}"
    are = "is" if orphans["objects"] == 1 else "are"
    what = f"{found_of_all}, {size_text(orphans['bytes'])}{cost}, {are} orphaned."
    return what if summary["complete"] else f"{what} The scan is incomplete: its findings say why."


def _unknown(summary: Document) -> str:
    """How many objects could not be judged, and where the reason is; empty without any."""
    unknown = summary["status"][ObjectStatus.UNKNOWN]
    if not unknown["objects"]:
        return ""
    objects = counted(unknown["objects"], "object is", "objects are")
    return f"{objects} unknown, {size_text(unknown['bytes'])}, and not removed: -o jsonl shows each with its evidence."


for verb in (plan, show, apply, restore, purge, unlock):  # after `scan`, which comes first when somebody removes
    _commands.command(verb.__name__)(verb)
_commands.add_typer(quarantine, name="quarantine", help="What is in quarantine.")
