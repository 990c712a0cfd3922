"""`tieredctl remote …`: what is in the remote store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import duration_ms, given_path, kafka_id, now_ms
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.options import (
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
from tieredctl.cli.outcome import discard, finding_documents, finish, say, say_findings
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.places import metadata_place, store_place
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.layouts.protocol import AUTO, ORIGINAL_PARTS, Part
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.remote.remote_read import StoredPart, segment_in_metadata, segment_in_store
from tieredctl.ops.remote.unfinished_uploads import UnfinishedUploads

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


_OBJECT_FIELDS = ("key", "size", "lastModified", "segmentId", "topicId", "partition", "part", "storageClass")
_OBJECT_COLUMNS = (
    TableColumn("LAST-MODIFIED", "lastModified"),
    TableColumn("BYTES", "size"),
    TableColumn("PART", "part"),
    TableColumn("KEY", "key"),
    TableColumn("PARTITION", "partition", wide=True),
    TableColumn("TOPIC-ID", "topicId", wide=True),
    TableColumn("SEGMENT-ID", "segmentId", wide=True),
    TableColumn("CLASS", "storageClass", wide=True),
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
_UPLOAD_FIELDS = ("key", "uploadId", "initiated", "ageMs", "bytes", "segmentId", "topicId", "partition", "part")
_UPLOAD_COLUMNS = (
    TableColumn("INITIATED", "initiated"),
    TableColumn("BYTES", "bytes"),
    TableColumn("PART", "part"),
    TableColumn("KEY", "key"),
    TableColumn("UPLOAD-ID", "uploadId", wide=True),
    TableColumn("SEGMENT-ID", "segmentId", wide=True),
)
_READ_COLUMNS = (
    TableColumn("PART", "part"),
    TableColumn("BYTES", "bytes"),
    TableColumn("FILE", "file"),
    TableColumn("TOPIC", "topic", wide=True),
    TableColumn("PARTITION", "partition", wide=True),
    TableColumn("START", "startOffset", wide=True),
    TableColumn("SEGMENT-ID", "segmentId", wide=True),
)
_STDOUT = Path("-")


def _original_part(text: str) -> Part:
    if text not in ORIGINAL_PARTS:
        hint = f"The parts are {', '.join(ORIGINAL_PARTS)}."
        raise TieredctlError(ErrorCode.USAGE, f"{text!r} is no part of a segment that a broker wrote.", hint=hint)
    return Part(text)


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
    opened, chosen = store_place(store, store_option, layout, layout_option).open()
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
    opened, chosen = store_place(store, store_option, layout, layout_option).open()
    inventory = Inventory(opened, chosen, Selection(topic, topic_id, partition, segment_id))
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("RemoteUsage", source, inventory.usage(), _USAGE_COLUMNS, inventory.summary, _USAGE_FIELDS)
    return _finish(listing, inventory, output, quiet, metrics_file)


@_commands.command("multipart")
def multipart(
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    older_than: Annotated[str, typer.Option(metavar="DURATION", help="Only uploads begun longer ago: 24h, 7d.")] = "0s",
    now: Now = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    metrics_file: MetricsFile = None,
) -> ExitCode:
    """Uploads that were never completed: in no listing, but on the bill (exit 3 if there are any)."""
    opened, chosen = store_place(store, store_option, layout, layout_option).open()
    uploads = UnfinishedUploads(opened, chosen, now_ms(now), duration_ms(older_than))
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("MultipartUploads", source, uploads.rows(), _UPLOAD_COLUMNS, uploads.summary, _UPLOAD_FIELDS)
    return finish(listing, output, uploads.findings, quiet=quiet, metrics_file=metrics_file)


@_commands.command("read", cls=CommandOfIds)
def read(
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", parser=given_path, help="What to write; - for stdout.")],
    part: Annotated[
        Part, typer.Option(metavar="PART", parser=_original_part, help=f"One of {', '.join(ORIGINAL_PARTS)}.")
    ] = Part.LOG,
    store: Store = None,
    store_option: StoreOptions = None,
    layout: LayoutName = AUTO,
    layout_option: LayoutOptions = None,
    log_dir: LogDirs = None,
    bootstrap_server: BootstrapServer = None,
    command_config: CommandConfig = None,
    export: Export = None,
    topic: Topic = None,
    topic_id: TopicId = None,
    partition: Partition = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it is there already.")] = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """The segment or one of its indexes, decrypted, decompressed, as the broker wrote it.

    What was altered is written too, and reported: exit 4. Without metadata the store is searched for the segment;
    topic, topic id and partition make that quick.
    """
    opened, chosen = store_place(store, store_option, layout, layout_option).open()
    selection = Selection(topic, topic_id, partition, segment_id)
    place = metadata_place(log_dir, bootstrap_server, command_config, export)
    if place.is_given:
        with place.open() as stream:
            segment = segment_in_metadata(stream, selection)
    else:
        segment = segment_in_store(opened, chosen, selection)
    found = StoredPart(opened, chosen, segment, part)
    if to == _STDOUT:
        return _write_to_stdout(found)
    done = found.save_as(to, force=force)
    items = [found.document(done.size, to)]
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    summary = {"bytes": done.size, "findings": finding_documents(done.findings)}
    listing = Listing("RemoteRead", source, items, _READ_COLUMNS, summary)
    kept = [f"{to} has the bytes as they are stored: they are not what the broker wrote."] if done.findings else []
    return finish(listing, output, done.findings, quiet=quiet, sentences=kept)


def _write_to_stdout(found: StoredPart) -> ExitCode:
    try:
        done = found.copy_to(sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader that has gone, such as `head`
        discard(sys.stdout)
        return ExitCode.CLEAN
    say_findings(done.findings)
    return exit_code_of(done.findings)


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
