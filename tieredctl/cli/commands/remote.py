"""`tieredctl remote …`: what is in the remote store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import given_path, kafka_id, now_ms
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.options import Now, Output, Quiet
from tieredctl.cli.outcome import discard, finding_documents, finish, say, say_findings
from tieredctl.cli.output import Listing, OutputFormat, TableColumn
from tieredctl.cli.places import MetadataOptions, PartitionOptions, RemoteOptions, SegmentOptions
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.view import FindingsView, ToleranceOptions, View
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.layouts.protocol import ORIGINAL_PARTS, Part
from tieredctl.model.counted import counted
from tieredctl.model.findings import exit_code_of
from tieredctl.model.quantities import duration_ms
from tieredctl.model.tolerance import Tolerance
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
    moment_column("MODIFIED", "lastModified"),
    size_column("size"),
    TableColumn("PART", "part"),
    TableColumn("KEY", "key", importance=2),
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
    size_column("bytes"),
)
_UPLOAD_FIELDS = ("key", "uploadId", "initiated", "ageMs", "bytes", "segmentId", "topicId", "partition", "part")
_UPLOAD_COLUMNS = (
    moment_column("INITIATED", "initiated"),
    size_column("bytes"),
    TableColumn("PART", "part"),
    TableColumn("KEY", "key", importance=2),
    TableColumn("UPLOAD-ID", "uploadId", wide=True),
    TableColumn("SEGMENT-ID", "segmentId", wide=True),
)
_READ_COLUMNS = (
    TableColumn("PART", "part"),
    size_column("bytes"),
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
        raise TieredctlError(ErrorCode.USAGE, f"Unknown part {text!r}.", hint=hint)
    return Part(text)


@_commands.command("ls")
def list_objects(
    *,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """List every object, and which part of which segment it holds, by its key.

    For example: tieredctl remote ls --store s3://kafka-tiered --topic orders
    """
    opened, chosen = remote_options.place().open()
    inventory = Inventory(opened, chosen, selected.selection())
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("RemoteObjects", source, inventory.rows(), _OBJECT_COLUMNS, inventory.summary, _OBJECT_FIELDS)
    return _finish(listing, inventory, View(output, quiet))


@_commands.command("du")
def disk_usage(
    *,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    view: View,
) -> ExitCode:
    """Show how many objects and bytes each partition has, by part.

    For example: tieredctl remote du --store s3://kafka-tiered
    """
    opened, chosen = remote_options.place().open()
    inventory = Inventory(opened, chosen, selected.selection())
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("RemoteUsage", source, inventory.usage(), _USAGE_COLUMNS, inventory.summary, _USAGE_FIELDS)
    return _finish(listing, inventory, view)


@_commands.command("multipart")
def multipart(
    *,
    remote_options: RemoteOptions,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Only uploads that began longer ago than this: 24h, 7d.")
    ] = "0s",
    now: Now = None,
    view: FindingsView,
) -> ExitCode:
    """List incomplete uploads, which no listing shows but you pay for (exit 3 if any).

    For example: tieredctl remote multipart --store s3://kafka-tiered --older-than 7d
    """
    opened, chosen = remote_options.place().open()
    uploads = UnfinishedUploads(opened, chosen, now_ms(now), duration_ms(older_than))
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    listing = Listing("MultipartUploads", source, uploads.rows(), _UPLOAD_COLUMNS, uploads.summary, _UPLOAD_FIELDS)
    return view.show(listing, uploads.findings)


@_commands.command("read", cls=CommandOfIds)
def read(
    *,
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", parser=given_path, help="The file to write; - for stdout.")],
    part: Annotated[
        Part, typer.Option(metavar="PART", parser=_original_part, help=f"One of {', '.join(ORIGINAL_PARTS)}.")
    ] = Part.LOG,
    remote_options: RemoteOptions,
    metadata_options: MetadataOptions,
    selected: PartitionOptions,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Write a segment or one of its indexes as the broker wrote it, decrypted and decompressed.

    An altered segment is written too, and reported: exit 4. Without metadata, the store is searched for the segment;
    topic, topic id and partition speed that up.

    For example: tieredctl remote read zYJ8cWbWS6Wrn_UH97CRKw --to segment.log --store s3://kafka-tiered
    """
    opened, chosen = remote_options.place().open()
    selection = Selection(selected.topic, selected.topic_id, selected.partition, segment_id)
    place = metadata_options.place()
    if place.is_given:
        with place.open() as stream:
            segment = segment_in_metadata(stream, selection)
    else:
        segment = segment_in_store(opened, chosen, selection)
    found = StoredPart(opened, chosen, segment, part)
    if to == _STDOUT:
        return _write_to_stdout(found, tolerated.tolerance)
    done = found.save_as(to, force=force)
    items = [found.document(done.size, to)]
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    summary = {"bytes": done.size, "findings": finding_documents(done.findings)}
    listing = Listing("RemoteRead", source, items, _READ_COLUMNS, summary)
    kept = [f"{to} has the bytes as stored, not as the broker wrote them."] if done.findings else []
    return finish(listing, output, done.findings, quiet=quiet, sentences=kept, tolerance=tolerated.tolerance)


def _write_to_stdout(found: StoredPart, tolerance: Tolerance) -> ExitCode:
    try:
        done = found.copy_to(sys.stdout.buffer)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader that has gone, such as `head`
        discard(sys.stdout)
        return ExitCode.CLEAN
    say_findings(done.findings, tolerance)
    return exit_code_of(done.findings, tolerance)


def _finish(listing: Listing, inventory: Inventory, view: View) -> ExitCode:
    code = view.show(listing, [])
    if view.is_table and not view.quiet:
        say(_total(inventory))
    return code


def _total(inventory: Inventory) -> str:
    said = f"{counted(inventory.total.objects, 'object')}, {counted(inventory.total.bytes, 'byte')}"
    if inventory.unexplained:
        said += f"; layout {inventory.layout.name} cannot explain {inventory.unexplained} of them"
    return f"{said}."
