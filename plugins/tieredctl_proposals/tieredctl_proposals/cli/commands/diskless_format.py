"""`tieredctl diskless format`."""

from __future__ import annotations

from typing import Any

from tieredctl_inkless.cli.diskless_places import CoordinatorLogsOptions

from tieredctl.cli.outcome import finding_documents
from tieredctl.cli.output import Item, Listing, TableColumn
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl_proposals.cli.coordinator_options import OneCoordinator

_MOST_SHOWN = 3


def _what(item: Item) -> str:
    fields = item["fields"]
    if "objectKey" in fields:
        return _file(fields)
    named = f"{fields['name']} " if "name" in fields else ""
    partition = f":{fields['partitionIndex']}" if "partitionIndex" in fields else ""
    start = f", log start {fields['newLogStartOffset']}" if "newLogStartOffset" in fields else ""
    return f"{named}{fields['topicId']}{partition}{start}"


def _file(fields: dict[str, Any]) -> str:
    """Such as KEY, 84 bytes: TOPIC-ID:3@100..101."""
    batches = [
        f"{topic['topicId']}:{partition['partitionIndex']}@{one['assignedBaseOffset']}..{one['assignedLastOffset']}"
        for topic in fields["topics"]
        for partition in topic["partitions"]
        for one in partition["batches"]
    ]
    more = f", {len(batches) - _MOST_SHOWN} more" if len(batches) > _MOST_SHOWN else ""
    held = ", ".join(batches[:_MOST_SHOWN]) + more
    return f"{fields['objectKey']}, {size_text(fields['fileSize'])}: {held or 'no batch'}"


_COLUMNS = (
    TableColumn("PARTITION", "metadataPartition"),
    TableColumn("OFFSET", "metadataOffset"),
    TableColumn("TIME-MS", "timestampMs"),
    TableColumn("RECORD", lambda item: item["type"].removeprefix("Diskless").removesuffix("Record")),
    TableColumn("WHAT", _what),
    TableColumn("OWNERS", lambda item: " ".join(map(str, item["fields"].get("ownerIds", []))) or "-", wide=True),
    TableColumn("UPLOADER", lambda item: item["fields"].get("uploaderBrokerId", "-"), wide=True),
)
_FIELDS = ("metadataPartition", "metadataOffset", "timestampMs", "type", "fields")


def format_records(
    *,
    logs: CoordinatorLogsOptions,
    metadata_partition: OneCoordinator = None,
    view: ProgressView,
) -> ExitCode:
    """Show every record in diskless coordinators' logs, by partition of __diskless_metadata, then offset (KIP-1164).

    Exit 5 if a log is missing, not whole, or has records that are not known.
    For example: tieredctl diskless format --log-dir /var/lib/kafka/data -o jsonl
    """
    from tieredctl_proposals.wiring.coordinator_logs import CoordinatorLogsPlace, coordinator_records

    named = logs.demanded()
    place = CoordinatorLogsPlace(tuple(named.log_dirs), named.coordinators)
    with coordinator_records(place, metadata_partition) as (source, records):

        def summary() -> Document:
            return records.summary() | {"findings": finding_documents(records.findings)}

        listing = Listing("DisklessRecords", source, records.documents(), _COLUMNS, summary, _FIELDS)
        return view.show(listing, records.findings)
