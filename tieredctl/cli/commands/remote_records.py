"""`tieredctl remote records`: a topic's records, straight from the remote store."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tieredctl.cli.arguments import topic_partition
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import TopicIds
from tieredctl.cli.outcome import discard, finish, say, say_error, say_findings, say_what_is_incomplete
from tieredctl.cli.output import Listing, OutputFormat
from tieredctl.cli.places import PastMetadataOptions, RemoteOptions
from tieredctl.cli.records.avro_options import AvroOptions
from tieredctl.cli.records.binary_output import WRITERS, RecordOutput
from tieredctl.cli.records.record_files import RecordFiles
from tieredctl.cli.records.record_items import ITEM_FIELDS, RecordFormat, shown_items, table_columns
from tieredctl.cli.records.shown_bytes import BytesAs, ShownBytes
from tieredctl.cli.terminal import demand_stdout, width_of
from tieredctl.cli.view import Talk, ToleranceOptions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.model.findings import exit_code_of
from tieredctl.model.printable import printable
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import EARLIEST, LATEST, Isolation, OnDamage, RecordRequest, most_unfolded, record_place

if TYPE_CHECKING:
    from tieredctl.model.tolerance import Tolerance
    from tieredctl.records.topic_reading import TopicReading


@dataclass(frozen=True, slots=True)
class RecordRange(OptionGroup):
    """The records that are asked for."""

    start: Annotated[
        str, typer.Option("--from", metavar="PLACE", help="The first record: an offset, a time, earliest or latest.")
    ] = EARLIEST
    end: Annotated[
        str, typer.Option("--to", metavar="PLACE", help="Up to, not including: an offset, a time, earliest or latest.")
    ] = LATEST
    isolation: Annotated[
        Isolation, typer.Option(help="As a consumer's isolation.level: whether uncommitted records are shown.")
    ] = Isolation.READ_UNCOMMITTED
    max_records: Annotated[int | None, typer.Option(metavar="N", min=0, help="At most this many records.")] = None
    grep: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only records whose key or value matches as text.")
    ] = None
    damage: Annotated[
        OnDamage, typer.Option(help="Stop at records that cannot be read, skip them, or show a row for them.")
    ] = OnDamage.FAIL
    max_batch_bytes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Read compressed batches of up to this size; by default 64MiB, or 64 times what is stored.",
        ),
    ] = None

    def request(self) -> RecordRequest:
        """Raises TieredctlError `usage` for what is not a place or a size."""
        return RecordRequest(
            *(record_place("--from", self.start), record_place("--to", self.end), self.isolation, self.damage),
            most_unfolded=most_unfolded("--max-batch-bytes", self.max_batch_bytes),
        )


def records(
    *,
    where: Annotated[str, typer.Argument(metavar="TOPIC[:PARTITION]", help="A topic, or one of its partitions.")],
    record_range: RecordRange,
    output: Annotated[RecordOutput, typer.Option("-o", "--output", help="How records are written.")] = (
        RecordOutput.TABLE
    ),
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="Instead of -o, as kcat has it: '%t %p %o %k %s\\n'."),
    ] = None,
    output_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write files into this folder; run it again to resume, or to add what is new."
        ),
    ] = None,
    avro: AvroOptions,
    with_local: Annotated[
        bool,
        typer.Option("--with-local", help="Where remote storage ends, go on in --log-dir or on the cluster."),
    ] = False,
    metadata_options: PastMetadataOptions,
    topic_id: TopicIds = None,
    remote_options: RemoteOptions,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Read a topic's records straight from the remote store, brokers untouched. They are those that a consumer would
    get of remote storage, partition by partition; those on brokers' disks alone are left out, unless --with-local adds
    them.

    Exit 4 or 5 if records could not be read, 3 if keys or values could not be decoded.

    For example: tieredctl remote records orders:0 --from 2026-01-01 --max-records 10 --store s3://kafka-tiered
    """
    request = record_range.request()
    _demand_fitting(output, output_dir, request, (avro.key, avro.value), has_format=form is not None)
    shown = avro.shown()
    record_format = None if form is None else RecordFormat(form, shown)
    from tieredctl.records.asked_records import TextPattern
    from tieredctl.records.topic_reading import TopicReading
    from tieredctl.wiring.records import topic_records

    pattern = None if record_range.grep is None else TextPattern(record_range.grep)
    selection = _selection(where, topic_id)
    places = metadata_options.place(), remote_options.place()
    with topic_records(*places, selection, with_local=with_local) as opened:
        reading = TopicReading(
            *(opened.partitions, opened.store, opened.layout, request),
            most=record_range.max_records,
            pattern=pattern,
            is_deleted=opened.is_deleted,
            findings=[*opened.findings],
        )
        if record_format is None and not output.is_binary:
            reading = reading.with_columns(ITEM_FIELDS)
        if output_dir is not None:
            asked = RecordFiles(
                *(output_dir, output, shown, avro.identity(), where, record_range.grep, places[0].as_of),
                with_local=with_local,
            )
            code = _write_files(reading, asked, tolerated.tolerance, quiet=talk.quiet)
        elif record_format is not None or output.is_binary:
            code = _write_bytes(reading, output, record_format, tolerated.tolerance, quiet=talk.quiet)
        else:
            code = _show(reading, output, shown, tolerated.tolerance, quiet=talk.quiet)
        _say_end(reading, quiet=talk.quiet)
    if undecoded := reading.undecoded + shown.undecoded:
        code = worst(code, ExitCode.FINDINGS)
        if not talk.quiet:
            say(f"{counted(undecoded, 'key or value', 'keys or values')} could not be decoded.")
    if reading.failure is None:
        return code
    if not reading.ends_at_damage:
        raise reading.failure
    if talk.quiet:
        say_error(reading.failure)
    return worst(code, reading.failure.exit_code)


def _demand_fitting(
    output: RecordOutput,
    output_dir: Path | None,
    request: RecordRequest,
    shown: tuple[BytesAs | None, BytesAs | None],
    *,
    has_format: bool,
) -> None:
    """Raises TieredctlError `usage` for options that do not go together, and for what cannot be written to stdout."""
    if has_format and output is not RecordOutput.TABLE:
        raise TieredctlError(ErrorCode.USAGE, "--format and -o cannot be combined.")
    if has_format and request.on_damage is OnDamage.ROW:
        raise TieredctlError(ErrorCode.USAGE, "--damage row is for -o: --format has no place for the reason.")
    if output.is_binary and any(shown):
        raise TieredctlError(ErrorCode.USAGE, f"--key and --value are for text: -o {output} has the bytes themselves.")
    if output_dir is not None and (has_format or output.is_table):
        raise TieredctlError(ErrorCode.USAGE, "--output-dir takes -o jsonl, csv, parquet or arrow.")
    if output.is_binary and output_dir is None and sys.stdout.isatty():
        hint = "Redirect it to a file, or into a program that reads it."
        raise TieredctlError(ErrorCode.USAGE, f"-o {output} is not for a terminal.", hint=hint)
    if output_dir is None:
        demand_stdout("records")


def _selection(where: str, topic_ids: list[str] | None) -> Selection:
    """TOPIC:PARTITION, or a topic: no name of a topic has a colon."""
    if ":" not in where:
        return Selection.given([where], topic_ids)
    topic, number = topic_partition(where)
    return Selection.given([topic], topic_ids, [number])


def _show(
    reading: TopicReading,
    output: RecordOutput,
    shown: ShownBytes,
    tolerance: Tolerance,
    *,
    quiet: bool,
) -> ExitCode:
    source = {"kind": "store", "store": reading.store.url, "layout": reading.layout.name}
    columns = table_columns(of_several_partitions=len(reading.partitions) > 1, width=width_of(sys.stdout))
    otherwise = BytesAs.TEXT if output.is_table else BytesAs.BASE64
    items = shown_items(reading.batches(), shown, otherwise)
    listing = Listing("RemoteRecords", source, items, columns, {}, reading.schema.names)
    return finish(listing, OutputFormat(output.value), reading.findings, quiet=quiet, tolerance=tolerance)


def _write_bytes(
    reading: TopicReading,
    output: RecordOutput,
    record_format: RecordFormat | None,
    tolerance: Tolerance,
    *,
    quiet: bool,
) -> ExitCode:
    first = [] if quiet else say_what_is_incomplete(reading.findings, tolerance)
    out = sys.stdout.buffer
    try:
        if record_format is not None:
            out.writelines(record_format.lines(reading.batches()))
        else:
            WRITERS[output](reading.schema, reading.batches(), out)
        out.flush()
    except BrokenPipeError:  # a reader that has gone, such as `head`
        discard(sys.stdout)
    if not quiet:
        say_findings([finding for finding in reading.findings if finding not in first], tolerance)
    return exit_code_of(reading.findings, tolerance)


def _write_files(reading: TopicReading, files: RecordFiles, tolerance: Tolerance, *, quiet: bool) -> ExitCode:
    first = [] if quiet else say_what_is_incomplete(reading.findings, tolerance)
    count = files.write(reading)
    if not quiet:
        say_findings([finding for finding in reading.findings if finding not in first], tolerance)
        say(f"{files.folder} has {counted(count, 'file')}.")
    return exit_code_of(reading.findings, tolerance)


def _say_end(reading: TopicReading, *, quiet: bool) -> None:
    if quiet:
        return
    of = counted(len(reading.partitions), "partition")
    say(f"{counted(reading.returned, 'record')} of {of}.")
    if reading.ends_at_damage:
        say("Reading ended there: --damage skip reads on after what cannot be read.")
    elif reading.lost_offsets:
        say(f"{counted(reading.lost_offsets, 'offset')} could not be read.")
    for partition, offset in reading.open_transactions:
        name = printable(f"{partition.topic}-{partition.partition}")
        say(f"{name} ends before offset {offset}: the transaction that begins there has no end in remote storage.")
