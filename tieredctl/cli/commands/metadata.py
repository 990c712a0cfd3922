"""`tieredctl metadata …`: what `__remote_log_metadata` says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Never, TypeVar

import typer

from tieredctl.cli.arguments import given_path, kafka_id, now_ms, topic_partition
from tieredctl.cli.commands.metadata_lookup import lookup
from tieredctl.cli.commands.metadata_partition import partition_of
from tieredctl.cli.commands.metadata_segments import segments
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.metadata_listing import metadata_listing
from tieredctl.cli.metadata_tables import (
    EVENT_COLUMNS,
    EVENT_FIELDS,
    EXPORT_COLUMNS,
    EXPORT_FIELDS,
    STATISTICS_COLUMNS,
    STATISTICS_FIELDS,
    STUCK_COLUMNS,
    ranges,
)
from tieredctl.cli.options import DryRun, MetadataPartition, Now, Output, TopicIds
from tieredctl.cli.outcome import discard, finding_documents, finish, say, say_findings, say_what_is_incomplete, told
from tieredctl.cli.output import OutputFormat
from tieredctl.cli.pages.report_options import ReportOptions
from tieredctl.cli.places import EventOptions, MetadataOptions, PartitionOptions, PastMetadataOptions
from tieredctl.cli.view import FindingsView, Talk, ToleranceOptions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.findings import exit_code_of
from tieredctl.model.printable import printable
from tieredctl.model.quantities import duration_ms, size_text
from tieredctl.ops.documents import event_document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection

if TYPE_CHECKING:
    from tieredctl.ops.metadata.event_filter import EventFilter
    from tieredctl.wiring.places import MetadataPlace

_Found = TypeVar("_Found")
_STATISTICS_SENTENCE = (
    "{events} events, {deadEvents} of them dead, {liveSegments} live segments; "
    "replay takes {replaySeconds} s at {assumedEventsPerSecond} events a second"
)
_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds the noun's commands to the application."""
    app.add_typer(_commands, name=noun, help=meaning)


class Style(StrEnum):
    """The formatter whose text `metadata format` prints."""

    KAFKA = "kafka"
    KIP405 = "kip405"


@_commands.command("format")
def format_events(
    *,
    metadata_options: PastMetadataOptions,
    metadata_partition: MetadataPartition = None,
    selected: EventOptions,
    style: Annotated[
        Style, typer.Option(help="kafka: as RemoteLogMetadataFormatter; kip405: as the KIP.")
    ] = Style.KAFKA,
    kafka_version: Annotated[
        str, typer.Option(metavar="VERSION", help="Print as this release does: 3.5, 3.9, 4.0 or later.")
    ] = "4.0",
    formatter_property: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="NAME=VALUE", help="What kip405 prints; repeat it for several."),
    ] = None,
    output: Annotated[
        OutputFormat | None, typer.Option("--output", "-o", help="Events as data instead of text.")
    ] = None,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Print every event, one per line, by metadata partition, then offset.

    A record that cannot be decoded is a finding, whatever topic is selected: it may be of that one.

    For example: tieredctl metadata format --log-dir /var/lib/kafka --metadata-partition 1
    """
    if formatter_property and style is not Style.KIP405:
        raise TieredctlError(ErrorCode.USAGE, "--property is for --style kip405.")
    place, only = metadata_options.place(), selected.filter()
    with place.open(metadata_partition, only) as stream:
        if output is not None:
            documents = map(event_document, _if_known(place, stream, only, stream.records()))
            listing = metadata_listing("MetadataEvents", stream, documents, EVENT_COLUMNS, EVENT_FIELDS)
            return finish(listing, output, stream.findings, quiet=talk.quiet, tolerance=tolerated.tolerance)
        lines = filter(len, _pieces(stream, style, kafka_version, formatter_property))
        pieces = _if_known(place, stream, only, lines)
        first = (
            set() if talk.quiet else {told(one) for one in say_what_is_incomplete(stream.findings, tolerated.tolerance)}
        )
        has_events = False
        try:
            for piece in pieces:
                has_events = True
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        except BrokenPipeError:  # a reader that has gone, such as `head`
            discard(sys.stdout)
        if not talk.quiet:
            if not has_events and only is not None:
                say("No events.")
            added = (finding for finding in stream.findings if told(finding) not in first)
            say_findings(added, tolerated.tolerance)
        return exit_code_of(stream.findings, tolerated.tolerance)


def _if_known(
    place: MetadataPlace, stream: EventStream, only: EventFilter | None, documents: Iterable[_Found]
) -> Iterable[_Found]:
    """What was found. Raises TieredctlError where that is nothing because nobody knows what is selected, and after all
    of it where nobody knows one of several that are."""
    rest = iter(documents)
    first = next(rest, None)
    if first is not None:
        after = _after(place, stream, only) if only is not None and only.selection.names_several else ()
        return chain([first], rest, after)
    return list(_after(place, stream, only))


def _after(place: MetadataPlace, stream: EventStream, only: EventFilter | None) -> Iterator[Never]:
    if only is not None and not exit_code_of(stream.findings):
        from tieredctl.wiring.metadata import demand_known_by_all

        demand_known_by_all(place, only.selection)
    yield from ()


def _pieces(
    stream: EventStream, style: Style, kafka_version: str, properties: list[str] | None
) -> Iterable[bytes | memoryview]:
    from tieredctl.ops.metadata.format import kafka_lines, kafka_text, kip_405_lines, kip_405_style

    escape = printable if sys.stdout.isatty() else None  # elsewhere it is to the byte what Kafka prints
    if style is Style.KIP405:
        return kip_405_lines(stream, kip_405_style(properties or []), escape)
    return kafka_lines(stream, kafka_text(kafka_version), escape)


_commands.command("segments")(segments)


@_commands.command("history", cls=CommandOfIds)
def history(
    *,
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    metadata_options: MetadataOptions,
    selected: EventOptions,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show all events of one segment, with offsets, times and brokers.

    A record that cannot be decoded is a finding, whatever is selected: it may be of that segment.

    For example: tieredctl metadata history zYJ8cWbWS6Wrn_UH97CRKw --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.completeness import demand_nothing_lost
    from tieredctl.wiring.metadata import demand_known

    place, only = metadata_options.place(), selected.filter()
    with place.open() as stream:
        records = list(metadata_state.history(stream, segment_id))
        if not records:
            why = f"The metadata has no event of segment {segment_id}."
            demand_nothing_lost(stream, why)
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)
        items = [event_document(record) for record in records if only is None or only.has(record)]
        if only is not None and (not items or only.selection.names_several):
            demand_known(place, stream, only.selection)
        if not items and output.is_table and not talk.quiet:
            say(f"No event is selected; the segment has {counted(len(records), 'event')}.")
        listing = metadata_listing("SegmentHistory", stream, items, EVENT_COLUMNS, EVENT_FIELDS)
        return finish(listing, output, stream.findings, quiet=talk.quiet, tolerance=tolerated.tolerance)


_commands.command("lookup")(lookup)


@_commands.command("epochs")
def epochs(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION")],
    metadata_options: PastMetadataOptions,
    topic_id: TopicIds = None,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show what each leader epoch of a partition has in remote storage.

    Its lineage, with gaps and overlaps.

    For example: tieredctl metadata epochs orders:0 --bootstrap-server broker:9092
    """
    from tieredctl.cli.result_listing import columns_of
    from tieredctl.ops.metadata.epoch_rows import EpochRow, leader_epochs
    from tieredctl.wiring.metadata import opened_partition

    topic, number = topic_partition(where)
    selection = Selection.given([topic], topic_id, [number])
    place = metadata_options.place()
    with opened_partition(place, selection) as opened:
        items = [row.document() for row in leader_epochs(opened.partition, opened.cache)]
        columns = columns_of(EpochRow, gaps=ranges("gaps"), overlaps=ranges("overlaps"))
        listing = metadata_listing("LeaderEpochs", opened.stream, items, columns, (*EpochRow.json_names().values(),))
        return finish(listing, output, opened.stream.findings, quiet=talk.quiet, tolerance=tolerated.tolerance)


@_commands.command("stuck")
def stuck(
    *,
    metadata_options: PastMetadataOptions,
    selected: PartitionOptions,
    older_than: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Ignore what began later: 90s, 15m, 1h, 7d ago. Failing copies count at once."
        ),
    ] = "1h",
    now: Now = None,
    view: FindingsView,
    page: ReportOptions,
) -> ExitCode:
    """List copies and deletions that never finished, and copies that fail again and again (exit 3 if any).

    For example: tieredctl metadata stuck --older-than 2h --bootstrap-server broker:9092
    """
    from tieredctl.cli.findings.findings_table import FINDING_FIELDS
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.completeness import is_whole
    from tieredctl.ops.metadata.state import failing_copies, failing_finding
    from tieredctl.wiring.metadata import demand_known

    selection = selected.selection()
    age_ms, moment = duration_ms(older_than), now_ms(now)
    page.demand_possible()
    place = metadata_options.place()
    with place.open() as stream:
        store = metadata_state.replayed(stream, selection)
        demand_known(place, stream, selection)
        findings, unknown = metadata_state.stuck(store, selection, Clock(moment, age_ms))
        stream.findings += unknown
        if not selection.segment_ids:
            failing = (one for one in failing_copies(store, moment) if selection.has(one.partition))
            findings += [failing_finding(one, moment) for one in failing]
        items = finding_documents(findings)
        listing = metadata_listing("StuckSegments", stream, items, STUCK_COLUMNS, FINDING_FIELDS, stuck=len(findings))
        if not findings and view.is_table and is_whole(stream.findings):
            view.say(f"Nothing is stuck: no copy or deletion has been unfinished for {older_than}.")
        code = view.show(listing, stream.findings, listed=findings)
        if page.report is None:
            return code
        from tieredctl.cli.pages.stuck_page import stuck_page

        return page.write(code, lambda: stuck_page(stream, store, findings, view.tolerance))


_commands.command("partition-of", cls=CommandOfIds)(partition_of)


@_commands.command("stats")
def stats(
    *,
    metadata_options: PastMetadataOptions,
    view: FindingsView,
) -> ExitCode:
    """Show what each metadata partition costs.

    Events, bytes, how many of them are dead, how long a broker replays them.

    For example: tieredctl metadata stats --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata.stats import statistics

    with metadata_options.place().open() as stream:
        counts = statistics(stream)
        listing = metadata_listing(
            "MetadataStatistics", stream, counts.partitions, STATISTICS_COLUMNS, STATISTICS_FIELDS, **counts.total
        )
        sentences = [_STATISTICS_SENTENCE.format_map(counts.total)] if view.is_table else []
        return view.show(listing, stream.findings, sentences=sentences)


@_commands.command("export")
def export_to_file(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", parser=given_path, help="The file to write: *.parquet or *.jsonl.")
    ],
    metadata_options: MetadataOptions,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dry_run: DryRun = False,
    view: FindingsView,
) -> ExitCode:
    """Write all records to one file, for --export.

    Query engines read it as a table.

    For example: tieredctl metadata export events.parquet --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata.export import export_metadata

    with metadata_options.place().open() as stream:
        written = export_metadata(stream, file, force=force, dry_run=dry_run)
        records = sum(item["records"] for item in written.rows)
        summary = {"file": str(file), "records": records, "bytes": written.size, "dryRun": dry_run}
        listing = metadata_listing("MetadataExport", stream, written.rows, EXPORT_COLUMNS, EXPORT_FIELDS, **summary)
        if dry_run:
            view.say(f"Would write {counted(records, 'record')}, {size_text(written.size)}, to {file}.")
        return view.show(listing, stream.findings)
