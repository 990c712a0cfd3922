"""`tieredctl diskless batches`."""

from __future__ import annotations

from typing import Annotated

import typer
from tieredctl_inkless.cli.diskless_places import CoordinatorLogsOptions

from tieredctl.cli.arguments import GREATEST_INT32, only_id, topic_partition_offset
from tieredctl.cli.options import TopicIds
from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.view import FindingsView
from tieredctl.errors import ExitCode
from tieredctl.ops.documents import Document
from tieredctl_proposals.cli.coordinator_options import OneCoordinator, last_records

_OFFSET_NOT_AVAILABLE = "OFFSET_NOT_AVAILABLE"


def _offsets(item: Item) -> str:
    return f"{item['baseOffset']}..{item['lastOffset']}"


_COLUMNS = (
    TableColumn("OFFSETS", _offsets, importance=2),
    TableColumn("OBJECT", "objectKey"),
    TableColumn("POSITION", "byteOffset"),
    TableColumn("SIZE", "byteSize"),
    TableColumn("MAX-TIMESTAMP", "batchMaxTimestamp"),
    TableColumn("APPENDED", "logAppendTimestamp", wide=True),
    TableColumn("TIMESTAMPS", "timestampType", wide=True),
    TableColumn("MAGIC", "magic", wide=True),
    TableColumn("BATCH", "batchId", wide=True),
)
_TIMES = ("logAppendTimestamp", "batchMaxTimestamp", "timestampType")
_FIELDS = ("batchId", "objectKey", "magic", "byteOffset", "byteSize", "baseOffset", "lastOffset", *_TIMES)


def batches(
    *,
    where: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION[@OFFSET]", help="A partition, and where to begin in it.")
    ],
    topic_id: TopicIds = None,
    logs: CoordinatorLogsOptions,
    metadata_partition: OneCoordinator = None,
    max_batches: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="At most this many, as in one answer.", min=1, max=GREATEST_INT32),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES", help="At most so much, as in one answer; at least one batch.", min=1, max=GREATEST_INT32
        ),
    ] = None,
    view: FindingsView,
) -> ExitCode:
    """Show a partition's batches and where they lie, as diskless coordinators find them by their logs (KIP-1164).

    From the batch that holds the offset, or from the log start. Exit 3 if the offset is before the log start, 5 if it
    is after the high watermark, where the coordinator may have batches by now, or if a log is missing or not whole.
    For example: tieredctl diskless batches orders:3@1200 --log-dir /var/lib/kafka/data
    """
    from tieredctl.ops.metadata.selection import Selection
    from tieredctl_proposals.ops.diskless.coordinator_answers import BatchLimits
    from tieredctl_proposals.wiring.coordinator_logs import CoordinatorLogsPlace, coordinator_answers

    topic, partition, offset = topic_partition_offset(where)
    selection = Selection.of(topic, only_id(topic_id), partition)
    named = logs.demanded()
    place = CoordinatorLogsPlace(tuple(named.log_dirs), named.coordinators)
    with coordinator_answers(place, metadata_partition) as (source, answers):
        of_partition = answers.batches(selection, offset, BatchLimits(max_bytes, max_batches))

        def summary() -> Document:
            log = {} if of_partition is None else of_partition.summary()
            besides = {"coordinators": answers.coordinators(), "findings": finding_documents(answers.findings)}
            return log | besides

        items = [] if of_partition is None else of_partition.documents()
        listing = Listing("DisklessBatches", source, items, _COLUMNS, summary, _FIELDS)
        sentences = (
            [] if of_partition is None else [_sentence(of_partition.summary()), last_records(answers.coordinators())]
        )
        return view.show(listing, answers.findings, _code(summary()), sentences=sentences)


def _sentence(log: Document) -> str:
    start, end = log["logStartOffset"], log["highWatermark"]
    sentence = f"{log['topic']}:{log['partition']} has offsets from {start}; its high watermark is {end}."
    if log["error"] is None:
        return sentence
    if log["error"] == _OFFSET_NOT_AVAILABLE:
        return f"{sentence} Whether there are batches from offset {log['offset']} on is unknown."
    return f"{sentence} It no longer has offset {log['offset']}."


def _code(log: Document) -> ExitCode:
    error = log.get("error")
    if error is None:
        return ExitCode.CLEAN
    return ExitCode.INCOMPLETE if error == _OFFSET_NOT_AVAILABLE else ExitCode.FINDINGS
