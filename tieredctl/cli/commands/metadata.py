"""`tieredctl metadata …`: what `__remote_log_metadata` says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sized
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import GREATEST_INT32, GREATEST_INT64, given_path, kafka_id, now_ms, topic_partition
from tieredctl.cli.dashed_ids import CommandOfIds
from tieredctl.cli.metadata_tables import (
    EPOCH_COLUMNS,
    EVENT_COLUMNS,
    EVENT_FIELDS,
    EXPORT_COLUMNS,
    SEGMENT_COLUMNS,
    STATISTICS_COLUMNS,
    STUCK_COLUMNS,
)
from tieredctl.cli.options import MetadataPartition, Now, Output, Quiet, TopicId
from tieredctl.cli.outcome import finding_documents, finish, say, say_findings, say_what_is_incomplete, told
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn, printable
from tieredctl.cli.places import MetadataOptions, PartitionOptions, PastMetadataOptions, SegmentOptions
from tieredctl.cli.view import FindingsView, ToleranceOptions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import exit_code_of
from tieredctl.model.quantities import duration_ms
from tieredctl.ops.documents import event_document, segment_document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection

_STATISTICS_SENTENCE = (
    "{events} events, {deadEvents} of them dead, {liveSegments} live segments; "
    "replay takes {replaySeconds} s at {assumedEventsPerSecond} events a second"
)
_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds the noun's commands to the application."""
    app.add_typer(_commands, name=noun, help=meaning)


class Style(StrEnum):
    """Whose text `metadata format` prints."""

    KAFKA = "kafka"
    KIP405 = "kip405"


def _listing(
    kind: str, stream: EventStream, items: Iterable[Item], columns: tuple[TableColumn, ...], **summary: Any
) -> Listing:
    counted = items if isinstance(items, Sized) else _Counted(items)

    def totals() -> dict[str, Any]:
        return {"items": len(counted), **summary, "findings": finding_documents(stream.findings)}

    return Listing(kind, stream.source.describe, counted, columns, totals)


class _Counted:
    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._count = 0

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self._count += 1
            yield item

    def __len__(self) -> int:
        return self._count


@_commands.command("format")
def format_events(
    *,
    metadata_options: PastMetadataOptions,
    metadata_partition: MetadataPartition = None,
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
    quiet: Quiet = False,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Print every event, one per line, by metadata partition, then offset.

    For example: tieredctl metadata format --log-dir /var/lib/kafka --metadata-partition 1
    """
    if formatter_property and style is not Style.KIP405:
        raise TieredctlError(ErrorCode.USAGE, "--property is for --style kip405.")
    with metadata_options.place().open(metadata_partition) as stream:
        if output is not None:
            documents = map(event_document, stream.records())
            listing = replace(_listing("MetadataEvents", stream, documents, EVENT_COLUMNS), fields=EVENT_FIELDS)
            return finish(listing, output, stream.findings, quiet=quiet, tolerance=tolerated.tolerance)
        pieces = _pieces(stream, style, kafka_version, formatter_property)
        first = set() if quiet else {told(one) for one in say_what_is_incomplete(stream.findings, tolerated.tolerance)}
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        if not quiet:
            said = (finding for finding in stream.findings if told(finding) not in first)
            say_findings(said, tolerated.tolerance)
        return exit_code_of(stream.findings, tolerated.tolerance)


def _pieces(
    stream: EventStream, style: Style, kafka_version: str, properties: list[str] | None
) -> Iterable[bytes | memoryview]:
    from tieredctl.ops.metadata.format import kafka_lines, kafka_text, kip_405_lines, kip_405_style

    escape = printable if sys.stdout.isatty() else None  # elsewhere it is to the byte what Kafka prints
    if style is Style.KIP405:
        return kip_405_lines(stream, kip_405_style(properties or []), escape)
    return kafka_lines(stream, kafka_text(kafka_version), escape)


@_commands.command("segments")
def segments(
    *,
    metadata_options: PastMetadataOptions,
    selected: SegmentOptions,
    state: Annotated[str | None, typer.Option(metavar="STATE", help="Only segments in this state.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include deleted segments.")] = False,
    view: FindingsView,
) -> ExitCode:
    """Show the current state of every segment, after replay.

    For example: tieredctl metadata segments --bootstrap-server broker:9092 --topic orders
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.ops.metadata.segment_documents import SegmentDocuments

    selection = selected.selection()
    wanted = _state(state)
    with metadata_options.place().open() as stream:
        store = metadata_state.replayed(stream, selection, keep_deleted=everything)
        rows = metadata_state.segments(store, selection, wanted)
        if not len(rows) and view.is_table and not view.quiet:
            say("No segments.")
        items, size = SegmentDocuments(store, rows), int(store.sizes(rows).sum())
        listing = _listing("RemoteLogSegments", stream, items, SEGMENT_COLUMNS, segments=len(rows), bytes=size)
        return view.show(listing, stream.findings)


def _state(text: str | None) -> RemoteLogSegmentState | None:
    if text is None:
        return None
    try:
        return RemoteLogSegmentState[text.upper()]
    except KeyError:
        known = ", ".join(state.name for state in RemoteLogSegmentState)
        raise TieredctlError(ErrorCode.USAGE, f"Unknown state {text!r}.", hint=f"States are {known}.") from None


@_commands.command("history", cls=CommandOfIds)
def history(
    *,
    segment_id: Annotated[
        str, typer.Argument(metavar="SEGMENT-ID", parser=kafka_id, help="The segment's id, 22 characters.")
    ],
    metadata_options: MetadataOptions,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show all events of one segment, with offsets, times and brokers.

    For example: tieredctl metadata history zYJ8cWbWS6Wrn_UH97CRKw --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state

    with metadata_options.place().open() as stream:
        items = list(metadata_state.history(stream, segment_id))
        if not items:
            why = f"The metadata has no event of segment {segment_id}."
            stream.coverage.demand_all(why)
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)
        listing = _listing("SegmentHistory", stream, items, EVENT_COLUMNS)
        return finish(listing, output, stream.findings, quiet=quiet, tolerance=tolerated.tolerance)


@_commands.command("lookup")
def lookup(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION")],
    epoch: Annotated[
        int,
        typer.Option(
            metavar="EPOCH", help="The leader epoch that the reader has for this offset.", min=0, max=GREATEST_INT32
        ),
    ],
    offset: Annotated[int, typer.Option(metavar="OFFSET", help="The offset to fetch.", min=0, max=GREATEST_INT64)],
    metadata_options: PastMetadataOptions,
    topic_id: TopicId = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
) -> ExitCode:
    """Show which segment serves a fetch, or why none does (exit 3).

    For example: tieredctl metadata lookup orders:0 --epoch 3 --offset 4711 --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.wiring.metadata import opened_partition

    topic, partition = topic_partition(where)
    selection = Selection(topic, topic_id, partition)
    place = metadata_options.place()
    with opened_partition(place, selection) as opened:
        answer = metadata_state.lookup(opened.cache, epoch, offset)
        items = [segment_document(answer.segment)] if answer.segment else []
        listing = _listing("SegmentLookup", opened.stream, items, SEGMENT_COLUMNS, reason=answer.reason)
        findings = [finding for finding in opened.stream.findings if finding.kind.incomplete]
        if answer.reason and output.is_table and not quiet:
            say(f"No segment serves it: {answer.reason}.")
        return finish(
            listing, output, findings, quiet=quiet, otherwise=ExitCode.CLEAN if answer.segment else ExitCode.FINDINGS
        )


@_commands.command("epochs")
def epochs(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC:PARTITION")],
    metadata_options: PastMetadataOptions,
    topic_id: TopicId = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show what each leader epoch of a partition has in remote storage.

    Its lineage, with gaps and overlaps.

    For example: tieredctl metadata epochs orders:0 --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state
    from tieredctl.wiring.metadata import opened_partition

    topic, number = topic_partition(where)
    selection = Selection(topic, topic_id, number)
    place = metadata_options.place()
    with opened_partition(place, selection) as opened:
        items = list(metadata_state.leader_epochs(opened.partition, opened.cache))
        listing = _listing("LeaderEpochs", opened.stream, items, EPOCH_COLUMNS)
        return finish(listing, output, opened.stream.findings, quiet=quiet, tolerance=tolerated.tolerance)


@_commands.command("stuck")
def stuck(
    *,
    metadata_options: PastMetadataOptions,
    selected: PartitionOptions,
    older_than: Annotated[
        str, typer.Option(metavar="DURATION", help="Ignore those younger than this: 90s, 15m, 1h, 7d.")
    ] = "1h",
    now: Now = None,
    view: FindingsView,
) -> ExitCode:
    """List copies and deletions that never finished (exit 3 if any).

    For example: tieredctl metadata stuck --older-than 2h --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata import state as metadata_state

    selection = selected.selection()
    age_ms, moment = duration_ms(older_than), now_ms(now)
    with metadata_options.place().open() as stream:
        store = metadata_state.replayed(stream, selection)
        metadata_state.demand_known(stream, store, selection)
        found = metadata_state.stuck(store, selection, moment, age_ms)
        items = finding_documents(found)
        listing = _listing("StuckSegments", stream, items, STUCK_COLUMNS, stuck=len(found))
        said = [*stream.findings, *found] if view.metrics_file else stream.findings
        otherwise = exit_code_of(found, view.tolerance)
        return view.show(listing, said, otherwise)


@_commands.command("partition-of", cls=CommandOfIds)
def partition_of(
    topic_id: Annotated[str, typer.Argument(metavar="TOPIC-ID", parser=kafka_id)],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, max=GREATEST_INT32)],
    metadata_partitions: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="The cluster's remote.log.metadata.topic.num.partitions.", min=1, max=GREATEST_INT32
        ),
    ] = 50,
    output: Output = OutputFormat.TABLE,
) -> ExitCode:
    """Show which metadata partition holds a user partition's events.

    For example: tieredctl metadata partition-of Ex-aw3fEQIi3do0H9Y7cKQ 0
    """
    from tieredctl.rlmm.partitioner import metadata_partition

    number = metadata_partition(topic_id, partition, metadata_partitions)
    if output is OutputFormat.TABLE:
        print(number)
        return ExitCode.CLEAN
    item = {"topicId": topic_id, "partition": partition, "metadataPartition": number}
    source = {"kind": "arguments", "metadataPartitions": metadata_partitions}
    columns = tuple(TableColumn(name, name) for name in item)
    return finish(Listing("MetadataPartition", source, [item], columns, {"items": 1}), output, [])


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
        found = statistics(stream)
        listing = _listing("MetadataStatistics", stream, found.partitions, STATISTICS_COLUMNS, **found.total)
        said = [_STATISTICS_SENTENCE.format_map(found.total)] if view.is_table else []
        return view.show(listing, stream.findings, sentences=said)


@_commands.command("export")
def export_to_file(
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", parser=given_path, help="The file to write: *.parquet or *.jsonl.")
    ],
    metadata_options: MetadataOptions,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    view: FindingsView,
) -> ExitCode:
    """Write all records to one file, for --export.

    Query engines read it as a table.

    For example: tieredctl metadata export events.parquet --bootstrap-server broker:9092
    """
    from tieredctl.ops.metadata.export import export_metadata

    with metadata_options.place().open() as stream:
        items = export_metadata(stream, file, force=force)
        records = sum(item["records"] for item in items)
        summary = {"file": str(file), "records": records, "bytes": file.stat().st_size}
        listing = _listing("MetadataExport", stream, items, EXPORT_COLUMNS, **summary)
        return view.show(listing, stream.findings)
