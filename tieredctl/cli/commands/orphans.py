"""`tieredctl orphans …`: objects of the remote store that nobody owns."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import duration_ms, given_path, now_ms
from tieredctl.cli.options import (
    AsOfPoint,
    BootstrapServer,
    CommandConfig,
    Export,
    LayoutName,
    LayoutOptions,
    LogDirs,
    MetricsFile,
    Now,
    Output,
    Partition,
    Quiet,
    SegmentId,
    Store,
    StoreOptions,
    Topic,
    TopicId,
)
from tieredctl.cli.outcome import finish
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.wiring import open_remote, open_stream
from tieredctl.errors import ExitCode
from tieredctl.layouts.protocol import AUTO
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.listing import KeyFile, SpooledListing
from tieredctl.ops.orphans.live_topics import read_topic_ids
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.selection import Selection

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


_TABLES = (OutputFormat.TABLE, OutputFormat.WIDE)
_OBJECT_FIELDS = (
    *("key", "size", "lastModified", "segmentId", "topicId", "partition", "part"),
    *("status", "cause", "topicLive", "evidence"),
)
_TOTAL_COLUMNS = (
    TableColumn("STATUS", "status"),
    TableColumn("CAUSE", "cause"),
    TableColumn("TOPIC", "topic"),
    TableColumn("TOPIC-ID", "topicId"),
    TableColumn("OBJECTS", "objects"),
    TableColumn("BYTES", "bytes"),
    TableColumn("OLDEST", "oldest"),
    TableColumn("NEWEST", "newest", wide=True),
)


@_commands.command("scan")
def scan(
    log_dir: LogDirs = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    export: Export = None,
    as_of: AsOfPoint = None,
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    topic: Topic = None,
    topic_id: TopicId = None,
    partition: Partition = None,
    segment_id: SegmentId = None,
    min_age: Annotated[
        str, typer.Option(metavar="DURATION", help="Younger objects may still get an owner: 90s, 15m, 24h, 7d.")
    ] = "24h",
    live_topic_ids: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=given_path, help="The ids of all topics that there are, one a line."),
    ] = None,
    key_list: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=given_path, help="The store's keys, one a line, instead of listing it; no sizes."
        ),
    ] = None,
    now: Now = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Whose every object is (exit 3 if any is nobody's).

    A table has totals; the other forms have each object, with the evidence. Changes nothing.
    """
    opened, chosen = open_remote(store, store_option, layout, layout_option)
    objects = KeyFile(key_list) if key_list else SpooledListing(opened.list())
    options = ScanOptions(
        now_ms=now_ms(now),
        min_age_ms=duration_ms(min_age),
        live_topic_ids=read_topic_ids(live_topic_ids) if live_topic_ids else None,
        selection=Selection(topic, topic_id, partition, segment_id),
    )
    read = partial(open_stream, log_dir, bootstrap_server, command_config, export, as_of)
    read()  # what cannot be read is refused now, not after the store was listed
    found = Scan(objects, chosen, opened.url, read, options)

    def source() -> Document:
        described = found.stream.source.describe() if found.stream else {}
        return {**described, "store": opened.url, "layout": chosen.name}

    if output in _TABLES:
        found.run()
        listing = Listing("RemoteObjects", source, found.totals(), _TOTAL_COLUMNS, found.summary)
    else:
        listing = Listing("RemoteObjects", source, found.documents(), (), found.summary, _OBJECT_FIELDS)
    return finish(listing, output, found.findings, quiet=quiet, metrics_file=metrics_file)
