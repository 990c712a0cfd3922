"""`tieredctl diskless offsets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer
from tieredctl_inkless.cli.diskless_places import CoordinatorLogsOptions

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.places import PartitionOptions
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.quantities import time_ms
from tieredctl_proposals.cli.coordinator_options import COORDINATOR, OneCoordinator, last_records


def _offset(name: str) -> Callable[[Item], object]:
    """A dash is for what there is none of, not for what is unknown."""
    return lambda item: "unknown" if name in item["errors"] else item[name]


_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("PARTITION", "partition"),
    TableColumn("EARLIEST", _offset("earliest")),
    TableColumn("LATEST", _offset("latest"), importance=2),
    TableColumn("MAX-TIMESTAMP", _offset("maxTimestampOffset")),
    TableColumn("EARLIEST-LOCAL", _offset("earliestLocal"), wide=True),
    TableColumn("LATEST-TIERED", _offset("latestTiered"), wide=True),
)
_AT_TIME = (TableColumn("AT-TIME", _offset("offsetAtTime"), importance=2), TableColumn("TIME-MS", "timestampAtTime"))
_ENDING = (COORDINATOR, TableColumn("TOPIC-ID", "topicId", wide=True))
_OFFSETS = ("earliest", "earliestLocal", "latestTiered", "latest", "maxTimestampOffset")
_FIELDS = ("topic", "topicId", "partition", "metadataPartition", *_OFFSETS)


def offsets(
    *,
    logs: CoordinatorLogsOptions,
    metadata_partition: OneCoordinator = None,
    partitions: PartitionOptions,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Also the first offset at or after a time (ISO 8601, or ms since the epoch)."
        ),
    ] = None,
    view: FindingsView,
) -> ExitCode:
    """Show where partitions begin and end, as diskless coordinators list offsets by their logs (KIP-1164).

    A dash means there is no such offset. Latest is the high watermark. Offsets of a coordinator whose log is missing or
    not whole are unknown (exit 5).
    For example: tieredctl diskless offsets --log-dir /var/lib/kafka/data --topic orders
    """
    from tieredctl_proposals.wiring.coordinator_logs import CoordinatorLogsPlace, coordinator_answers

    named = logs.demanded()
    at_ms = None if time is None else _time_ms(time)
    place = CoordinatorLogsPlace(tuple(named.log_dirs), named.coordinators)
    with coordinator_answers(place, metadata_partition) as (source, answers):
        rows = answers.offsets(partitions.selection(), at_ms)
        summary = {
            "partitions": len(rows),
            "errors": sum(len(row["errors"]) for row in rows),
            "coordinators": answers.coordinators(),
            "findings": finding_documents(answers.findings),
        }
        at_time, fields = ((), ()) if at_ms is None else (_AT_TIME, ("offsetAtTime", "timestampAtTime"))
        columns = (*_COLUMNS, *at_time, *_ENDING)
        listing = Listing("DisklessOffsets", source, rows, columns, summary, (*_FIELDS, *fields, "errors"))
        return view.show(listing, answers.findings, sentences=[last_records(answers.coordinators())])


def _time_ms(text: str) -> int:
    """A time in ms, never negative: a negative number would mean something else to a coordinator."""
    moment_ms = time_ms(text)
    if moment_ms < 0:
        raise TieredctlError(ErrorCode.USAGE, f"--time {text} is before 1970.")
    return moment_ms
