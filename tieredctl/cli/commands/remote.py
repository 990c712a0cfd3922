"""`tieredctl remote …`: what is in the remote store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, TextIO

import typer

from tieredctl.cli.arguments import given_path, kafka_id, now_ms
from tieredctl.cli.commands.remote_records import records
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.options import DryRun, Now, Output
from tieredctl.cli.outcome import discard, finding_documents, finish, say, say_findings
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn, write_table
from tieredctl.cli.pages.report import Reported, table_of
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import MetadataOptions, PartitionOptions, RemoteOptions, SegmentOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.shown_quantities import moment_column, size_column
from tieredctl.cli.terminal import coloured, demand_stdout, has_blocks, width_of
from tieredctl.cli.view import FindingsView, ProgressView, Talk, ToleranceOptions, View
from tieredctl.drawing.scale import bars
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.findings import exit_code_of
from tieredctl.model.printable import printable
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.inventory import Depth, Inventory, Totals
from tieredctl.ops.remote.remote_read import PartRead, StoredPart, WrittenPart, segment_in_metadata, segment_in_store
from tieredctl.ops.remote.unfinished_uploads import UnfinishedUploads, UploadRow
from tieredctl.ports.layout import AUTO, ORIGINAL_PARTS, Part
from tieredctl.ports.object_store import list_unreserved
from tieredctl.process.replaced_file import CountedBytes

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_commands.command("records")(records)


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
    talk: Talk,
) -> ExitCode:
    """List every object, and which part of which segment it holds, by its key.

    Where no layout explains the store's keys, objects are listed without segments, and that is said.

    For example: tieredctl remote ls --store s3://kafka-tiered --topic orders
    """
    place, selection = remote_options.place(), selected.selection()
    opened = place.open_store()
    chosen = None
    try:
        chosen = place.layout_in(opened)
    except TieredctlError as error:
        is_listed = place.layout == AUTO and selection == Selection() and next(list_unreserved(opened), None)
        if error.code is not ErrorCode.UNKNOWN_LAYOUT or not is_listed:
            raise
        if not talk.quiet:
            say(printable(f"{error.message} {error.hint} Objects are listed without segments."))
    inventory = Inventory(opened, chosen, selection)
    source = {"kind": "store", "store": opened.url, "layout": chosen and chosen.name}
    listing = Listing("RemoteObjects", source, inventory.rows(), _OBJECT_COLUMNS, inventory.summary, _OBJECT_FIELDS)
    return _finish(listing, inventory, View(output, talk.quiet))


@_commands.command("du")
def disk_usage(
    *,
    remote_options: RemoteOptions,
    selected: SegmentOptions,
    depth: Annotated[
        Depth | None, typer.Option(help="A row for each of these; by default topic, and part for -o json, jsonl, csv.")
    ] = None,
    view: ProgressView,
    page: ReportOptions,
) -> ExitCode:
    """Show how many objects and bytes each topic has, the largest first.

    For example: tieredctl remote du --store s3://kafka-tiered --depth partition
    """
    page.demand_possible()
    opened, chosen = remote_options.place().open()
    inventory = Inventory(opened, chosen, selected.selection())
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    chosen_depth = depth or (Depth.TOPIC if view.is_table else Depth.PART)
    rows: list[Item] = [*inventory.usage(chosen_depth)]
    columns = usage_columns(rows, chosen_depth)
    items = with_total(rows, inventory.total) if view.is_table else rows
    written = partial(write_usage, items, columns)
    code = view.show(Listing("RemoteUsage", source, items, columns, inventory.summary, _USAGE_FIELDS, written))
    if view.is_table and (inventory.unexplained or not rows):
        view.say(_total(inventory))
    return page.write(code, lambda: _reported(rows, columns, inventory, source))


def _reported(rows: Sequence[Item], columns: Sequence[TableColumn], inventory: Inventory, source: Document) -> Reported:
    from tieredctl.cli.pages.report_plots import usage_plot

    plot = usage_plot(rows)
    table = table_of("Objects and bytes", columns, rows)
    return Reported(source, headline=_total(inventory), plots=[] if plot is None else [plot], tables=[table])


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
    listing = result_listing("MultipartUploads", source, UploadRow, uploads.rows(), uploads.summary)
    return view.show(replace(listing, reads_on=True), uploads.findings)


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
    dry_run: DryRun = False,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Write a segment or one of its indexes as the broker wrote it, decrypted and decompressed.

    An altered segment is written too, and reported: exit 4. Without metadata, the store is searched for the segment;
    topic, topic id and partition speed that up.

    For example: tieredctl remote read zYJ8cWbWS6Wrn_UH97CRKw --to segment.log --store s3://kafka-tiered
    """
    if to == _STDOUT and not dry_run:
        demand_stdout("the segment's bytes")
    opened, chosen = remote_options.place().open()
    selection = replace(selected.selection(), segment_ids=(segment_id,))
    place = metadata_options.place()
    if place.is_given:
        with place.open() as stream:
            segment = segment_in_metadata(stream, selection)
    else:
        segment = segment_in_store(opened, chosen, selection)
    stored_part = StoredPart(opened, chosen, segment, part)
    if to == _STDOUT and not dry_run:
        return _write_to_stdout(stored_part, tolerated.tolerance, quiet=talk.quiet)
    done = _counted(stored_part) if to == _STDOUT else stored_part.save_as(to, force=force, dry_run=dry_run)
    source = {"kind": "store", "store": opened.url, "layout": chosen.name}
    summary = {"bytes": done.size, "findings": finding_documents(done.findings), "dryRun": dry_run}
    listing = result_listing("RemoteRead", source, WrittenPart, [stored_part.row(done.size, to)], summary)
    would = "would have" if dry_run else "has"
    kept = [f"Would write {size_text(done.size)} to {to}."] if dry_run else []
    kept += [f"{to} {would} the bytes as stored, not as the broker wrote them."] if done.findings else []
    return finish(listing, output, done.findings, quiet=talk.quiet, sentences=kept, tolerance=tolerated.tolerance)


def _counted(stored_part: StoredPart) -> PartRead:
    with CountedBytes() as nowhere:
        return stored_part.copy_to(nowhere)


def _write_to_stdout(stored_part: StoredPart, tolerance: Tolerance, *, quiet: bool) -> ExitCode:
    done = stored_part.copy_to(sys.stdout.buffer)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # a reader that has gone, such as `head`
        discard(sys.stdout)
    if not quiet:
        say_findings(done.findings, tolerance)
    return exit_code_of(done.findings, tolerance)


def _finish(listing: Listing, inventory: Inventory, view: View) -> ExitCode:
    code = view.show(listing)  # nothing is found
    if view.is_table and not view.quiet:
        say(_total(inventory))
    return code


def _total(inventory: Inventory) -> str:
    sentence = f"{counted(inventory.total.objects, 'object')}, {size_text(inventory.total.bytes)}"
    if inventory.layout is not None and inventory.unexplained:
        sentence += f"; layout {inventory.layout.name} cannot explain {inventory.unexplained} of them"
    return f"{sentence}."


_USUAL_WIDTH = 80
_LEAST_BAR, _MOST_BAR = 6, 60
_GAP = "  "
_COLOUR = "34"


def usage_columns(rows: Sequence[Item], depth: Depth) -> list[TableColumn]:
    """What rows of this depth show. Ids stay in sight where a topic was made again, and one name has several."""
    names = {(row["topic"], row["topicId"]) for row in rows}
    is_again = len({topic for topic, _ in names}) < len(names)
    columns = [
        TableColumn("TOPIC", lambda row: "(owner unknown)" if row["topic"] is None else row["topic"], importance=2),
        TableColumn("TOPIC-ID", "topicId", wide=not is_again, importance=2),
    ]
    if depth is not Depth.TOPIC:
        columns.append(TableColumn("PARTITION", "partition", importance=2))
    if depth is Depth.PART:
        columns.append(TableColumn("PART", "part", importance=2))
    return [*columns, TableColumn("OBJECTS", "objects"), size_column("bytes", importance=2)]


def with_total(rows: Sequence[Item], total: Totals) -> list[Item]:
    """The largest first, and the total at the end; no name of a topic has parentheses."""
    last = {"topic": "(total)", "topicId": None, "partition": None, "part": None}
    largest_first = sorted(rows, key=lambda row: -row["bytes"])
    return [*largest_first, last | {"objects": total.objects, "bytes": total.bytes}] if rows else []


def write_usage(rows: Sequence[Item], columns: Sequence[TableColumn], out: TextIO) -> None:
    """Rows as `with_total` gives them."""
    if not rows:
        return
    width = width_of(out) or _USUAL_WIDTH
    table = StringIO()
    write_table(columns, rows, table, wide=False, width=width)
    lines = table.getvalue().splitlines()
    longest = max(map(len, lines))
    room = min(width - longest - len(_GAP), _MOST_BAR)
    if room < _LEAST_BAR:
        out.writelines(f"{line}\n" for line in lines)
        return
    drawn = bars([row["bytes"] for row in rows[:-1]], room, ascii_only=not has_blocks(out))
    for line, bar in zip(lines, ["", *drawn, ""], strict=True):
        padded = f"{line:<{longest}}{_GAP}" if bar else line
        out.write(padded + (coloured(bar, _COLOUR, out) if bar else "") + "\n")
