"""`tieredctl snapshot inspect`: the records of snapshots and of the metadata log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli.arguments import given_path
from tieredctl.cli.commands.snapshot_cluster import show_cluster
from tieredctl.cli.options import Output
from tieredctl.cli.outcome import finish, say, say_error
from tieredctl.cli.output import Item, Listing, OutputFormat, TableColumn
from tieredctl.cli.view import Talk, ToleranceOptions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.counted import counted
from tieredctl.ops.snapshots.record_files import record_files, wanted_types
from tieredctl.ops.snapshots.record_listing import RecordListing

_FIELDS = ("type", "version", "data")
_MOST_ERRORS = 3


def inspect(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", parser=given_path, help="KRaft snapshots, metadata log files, or folders with them."
        ),
    ],
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE", help="Only records of this type, such as TOPIC; repeat it for several."),
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Show the cluster as of the snapshot; of a folder, as of the log's end."),
    ] = False,
    output: Output = OutputFormat.TABLE,
    talk: Talk,
    tolerated: ToleranceOptions,
) -> ExitCode:
    """Show the records of KRaft snapshots and of the controllers' log, as dump-log decodes them.

    tieredctl snapshot inspect /var/lib/kafka/__cluster_metadata-0 -o jsonl
    """
    if cluster:
        if types:
            raise TieredctlError(ErrorCode.USAGE, "--type is for records; omit it with --cluster.")
        return show_cluster(paths, output, quiet=talk.quiet, tolerance=tolerated.tolerance)
    files, wanted = record_files(paths), wanted_types(types or [])
    records = RecordListing(files, wanted)
    source = {"kind": "metadata-log", "paths": [str(path) for path in paths]}
    items = records.rows() if output.is_table else records
    columns = _columns(several=len(files) > 1)
    listing = Listing("MetadataRecords", source, items, columns, lambda: _summary(len(files), records), _FIELDS)
    code = finish(listing, output, (), quiet=talk.quiet, besides=lambda: _code(records))
    if not talk.quiet:
        _say_what_is_unknown(records)
    _say_errors(records)
    return code


def _columns(*, several: bool) -> tuple[TableColumn, ...]:
    return (
        TableColumn("FILE", lambda item: Path(item["file"]).name, wide=not several),
        TableColumn("OFFSET", "offset"),
        TableColumn("TYPE", "type", importance=2),
        TableColumn("VERSION", "version"),
        TableColumn("EPOCH", "epoch", wide=True),
        TableColumn("TIMESTAMP", "timestamp", wide=True),
        TableColumn("POSITION", "position", wide=True),
        TableColumn("DATA", _data, importance=2),
    )


def _data(item: Item) -> object:
    data = item["data"]
    return json.dumps(data) if isinstance(data, dict) else data


def _summary(files: int, records: RecordListing) -> dict[str, Any]:
    kinds = sorted(records.counts.items())
    errors = [
        {"path": str(path), "code": error.code.value, "message": error.message}
        for path, faults in records.faults.items()
        for error in faults.first
    ]
    return {
        "files": files,
        "records": sum(count for _, count in kinds),
        "types": [
            {"type": kind.type, "version": kind.version, "known": kind.is_known, "records": count}
            for kind, count in kinds
        ],
        "damaged": sum(faults.count for faults in records.faults.values()),
        "errors": errors,
    }


def _say_what_is_unknown(records: RecordListing) -> None:
    unknown = sorted((kind, count) for kind, count in records.counts.items() if not kind.is_known)
    if unknown:
        total = sum(count for _, count in unknown)
        kinds = ", ".join(
            f"{count} of type {kind.type}" + (f" version {kind.version}" if kind.version is not None else "")
            for kind, count in unknown[:_MOST_ERRORS]
        )
        more = f" and {len(unknown) - _MOST_ERRORS} more" if len(unknown) > _MOST_ERRORS else ""
        say(f"{counted(total, 'record')} newer than this tieredctl, shown as bytes: {kinds}{more}.")


def _code(records: RecordListing) -> ExitCode:
    return worst(*(error.exit_code for faults in records.faults.values() for error in faults.first))


def _say_errors(records: RecordListing) -> None:
    for faults in records.faults.values():
        for error in faults.first[:_MOST_ERRORS]:
            say_error(error)
        if faults.count > _MOST_ERRORS:
            say(f"  … and {faults.count - _MOST_ERRORS} more in this file")
