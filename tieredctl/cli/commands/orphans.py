"""`tieredctl orphans …`: orphaned objects of the remote store."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path, now_ms, pairs
from tieredctl.cli.commands.orphans_apply import apply
from tieredctl.cli.commands.orphans_own import quarantine, unlock
from tieredctl.cli.commands.orphans_plan import plan
from tieredctl.cli.commands.orphans_purge import purge
from tieredctl.cli.commands.orphans_restore import restore
from tieredctl.cli.commands.orphans_show import show
from tieredctl.cli.options import Engine, Inventory, MinAge, Now, Resume, SparkConf
from tieredctl.cli.outcome import say
from tieredctl.cli.output import Listing, TableColumn, printable
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions, SegmentOptions, TopicListOptions
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.prices import StoragePrice
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.verification.engine import LOCAL, engine_named
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces, ShownScan, scan_on

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
) -> ExitCode:
    """Show which segment owns each object (exit 3 if any is orphaned).

    Tables show totals; other formats list each object with the evidence. Changes nothing.

    For example: tieredctl orphans scan --bootstrap-server broker:9092 --store s3://kafka-tiered
    """
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
        found = opened.scan
        unlisted = cache(opened.noncurrent)

        def summary() -> Document:
            counted = unlisted()
            return found.summary() | {"noncurrent": counted and counted.document()}

        if view.is_table:
            found.run()
            price = found.options.price
            columns = _TOTAL_COLUMNS if price is None else (*_TOTAL_COLUMNS, _cost_column(price))
            listing = Listing("RemoteObjects", opened.source, found.totals(), columns, summary)
        else:
            listing = Listing("RemoteObjects", opened.source, found.documents(), (), summary, _OBJECT_FIELDS)
        code = view.show(listing, found.findings)
        if not view.quiet:
            say_unanswered(opened.topics)
            doubt = opened.doubt()
            if doubt is not None:
                say(printable(f"{doubt.message} Objects that it lacks look deleted."))
            say(_headline(found))
            if unpriced := found.summary()["classesWithoutPrice"]:
                say(printable(f"Priced like the store, since they have no price of their own: {', '.join(unpriced)}."))
            counted = unlisted()
            if counted and (sentence := counted.sentence()):
                say(sentence)
    return code


def _cost_column(price: StoragePrice) -> TableColumn:
    return TableColumn(f"{price.currency}/MONTH", "monthlyCost")


def _headline(found: ShownScan) -> str:
    summary = found.summary()
    orphans = summary["status"][ObjectStatus.ORPHAN]
    cost = f", {orphans['monthlyCost']:.2f} {summary['currency']} a month" if "monthlyCost" in orphans else ""
    found_of_all = f"{orphans['objects']} of {counted(summary['objects'], 'object')}"
    are = "is" if orphans["objects"] == 1 else "are"
    what = f"{found_of_all}, {counted(orphans['bytes'], 'byte')}{cost}, {are} orphaned."
    return what if summary["complete"] else f"{what} The metadata is incomplete: there may be more."


def say_unanswered(topics: TopicSources) -> None:
    """Why a live cluster did not report which topics it has, where it did not."""
    reason = topics.cluster.describe().get("unanswered") if topics.cluster else None
    if reason is not None:
        say(printable(f"It is unknown which topics are live: {reason}"))


for verb in (plan, show, apply, restore, purge, unlock):  # after `scan`, which comes first when somebody removes
    _commands.command(verb.__name__)(verb)
_commands.add_typer(quarantine, name="quarantine", help="What is in quarantine.")
