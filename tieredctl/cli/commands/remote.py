"""`tieredctl remote …`: what is in the remote store."""

from __future__ import annotations

import typer

from tieredctl.cli.options import (
    LayoutName,
    LayoutOptions,
    MetricsFile,
    Output,
    Partition,
    Quiet,
    SegmentId,
    Store,
    StoreOptions,
    Topic,
    TopicId,
)
from tieredctl.cli.outcome import finish, say
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.wiring import AUTO, open_remote
from tieredctl.errors import ExitCode
from tieredctl.ops.inventory import Inventory
from tieredctl.ops.selection import Selection

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


_OBJECT_FIELDS = ("key", "size", "lastModified", "segmentId", "topicId", "partition", "part")
_OBJECT_COLUMNS = (
    TableColumn("LAST-MODIFIED", "lastModified"),
    TableColumn("BYTES", "size"),
    TableColumn("PART", "part"),
    TableColumn("KEY", "key"),
    TableColumn("PARTITION", "partition", wide=True),
    TableColumn("TOPIC-ID", "topicId", wide=True),
    TableColumn("SEGMENT-ID", "segmentId", wide=True),
)
_USAGE_FIELDS = ("topic", "topicId", "partition", "part", "objects", "bytes")
_USAGE_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("TOPIC-ID", "topicId"),
    TableColumn("PARTITION", "partition"),
    TableColumn("PART", "part"),
    TableColumn("OBJECTS", "objects"),
    TableColumn("BYTES", "bytes"),
)


@_commands.command("ls")
def list_objects(
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    topic: Topic = None,
    topic_id: TopicId = None,
    partition: Partition = None,
    segment_id: SegmentId = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """Every object, and what of which segment it holds by its key."""
    opened, chosen = open_remote(store, store_option, layout, layout_option)
    inventory = Inventory(opened, chosen, Selection(topic, topic_id, partition, segment_id))
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("RemoteObjects", source, inventory.rows(), _OBJECT_COLUMNS, inventory.summary, _OBJECT_FIELDS)
    return _finish(listing, inventory, output, quiet)


@_commands.command("du")
def disk_usage(
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    topic: Topic = None,
    topic_id: TopicId = None,
    partition: Partition = None,
    segment_id: SegmentId = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """How many objects and bytes each partition has, by part."""
    opened, chosen = open_remote(store, store_option, layout, layout_option)
    inventory = Inventory(opened, chosen, Selection(topic, topic_id, partition, segment_id))
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("RemoteUsage", source, inventory.usage(), _USAGE_COLUMNS, inventory.summary, _USAGE_FIELDS)
    return _finish(listing, inventory, output, quiet, metrics_file)


def _finish(
    listing: Listing, inventory: Inventory, output: OutputFormat, quiet: bool, metrics_file: MetricsFile = None
) -> ExitCode:
    code = finish(listing, output, [], quiet=quiet, metrics_file=metrics_file)
    if output in (OutputFormat.TABLE, OutputFormat.WIDE) and not quiet:
        say(_total(inventory))
    return code


def _total(inventory: Inventory) -> str:
    said = f"{inventory.total.objects} objects, {inventory.total.bytes} bytes"
    if inventory.unexplained:
        said += f"; layout {inventory.layout.name} cannot explain {inventory.unexplained} of them"
    return f"{said}."
