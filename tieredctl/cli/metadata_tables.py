"""Columns of the tables that show segments, events and partitions."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.cli.output import Item, TableColumn
from tieredctl.cli.shown_quantities import size_column
from tieredctl.model.quantities import age_text


def _author(item: Item) -> object:
    return item.get("brokerId", item.get("leaderEpoch"))


def _epochs(item: Item) -> str | None:
    epochs = item.get("segmentLeaderEpochs")
    return None if epochs is None else ",".join(f"{epoch['leaderEpoch']}={epoch['offset']}" for epoch in epochs)


def ranges(name: str) -> Callable[[Item], str | None]:
    """For a column: a field's ranges of offsets."""
    return lambda item: " ".join(f"{first}..{last}" for first, last in item[name]) or None


def _place(item: Item) -> str:
    return f"{item['metadataPartition']}@{item['metadataOffset']}"


def _instant(timestamp_ms: int) -> str:
    """To the millisecond: what was first matters among events."""
    from tieredctl.ops.remote.inventory import iso_8601

    return iso_8601(timestamp_ms) or str(timestamp_ms)


_PARTITION_COLUMNS = (
    TableColumn("TOPIC", "topic"),
    TableColumn("TOPIC-ID", "topicId", wide=True),
    TableColumn("PARTITION", "partition"),
)
SEGMENT_COLUMNS = (
    *_PARTITION_COLUMNS,
    TableColumn("START", "startOffset"),
    TableColumn("END", "endOffset"),
    size_column("segmentSizeInBytes"),
    TableColumn("EPOCHS", _epochs, importance=0),
    TableColumn("STATE", "state"),
    TableColumn("SEGMENT-ID", "segmentId", importance=2),
    TableColumn("BROKER", _author, wide=True),
    TableColumn("MAX-TIMESTAMP", "maxTimestampMs", wide=True),
    TableColumn("EVENT-TIMESTAMP", "eventTimestampMs", wide=True),
    TableColumn("METADATA", _place, wide=True),
)
SEGMENT_FIELDS = (
    "topic", "topicId", "partition", "segmentId", "startOffset", "endOffset", "maxTimestampMs", "segmentLeaderEpochs",
    "segmentSizeInBytes", "txnIdxEmpty", "brokerId", "leaderEpoch", "eventTimestampMs", "state", "customMetadata",
    "metadataPartition", "metadataOffset",
)  # fmt: skip
EVENT_COLUMNS = (
    TableColumn("METADATA", _place),
    TableColumn("EVENT-TIMESTAMP", "eventTimestampMs", people_read=_instant, importance=2),
    TableColumn("STATE", "state", importance=2),
    TableColumn("BROKER", _author),
    *_PARTITION_COLUMNS,
    TableColumn("START", "startOffset"),
    TableColumn("END", "endOffset"),
    TableColumn("SEGMENT-ID", "segmentId"),
    TableColumn("TYPE", "type", wide=True),
    TableColumn("DIALECT", "dialect", wide=True),
)
EVENT_FIELDS = ("type", "dialect", *SEGMENT_FIELDS)
STUCK_COLUMNS = (
    TableColumn("AGE", lambda item: item["evidence"]["ageMs"], people_read=age_text),
    TableColumn("CODE", "code"),
    TableColumn("TOPIC", lambda item: item["evidence"]["topic"]),
    TableColumn("PARTITION", lambda item: item["evidence"]["partition"]),
    TableColumn("BROKER", lambda item: _author(item["evidence"])),
    TableColumn("TRIES", lambda item: item["evidence"]["tries"], importance=0),
    TableColumn("START", lambda item: item["evidence"]["startOffset"]),
    TableColumn("END", lambda item: item["evidence"]["endOffset"]),
    TableColumn("SEGMENT-ID", lambda item: item["evidence"]["segmentId"], importance=2),
)
_METADATA_PARTITION_COLUMNS = (
    TableColumn("METADATA-PARTITION", "metadataPartition"),
    TableColumn("START", "startOffset"),
    TableColumn("END", "endOffset"),
)
STATISTICS_COLUMNS = (
    *_METADATA_PARTITION_COLUMNS,
    TableColumn("EVENTS", "events"),
    size_column("bytes"),
    TableColumn("DEAD", "deadEvents"),
    TableColumn("DEAD-RATIO", "deadRatio"),
    TableColumn("LIVE-SEGMENTS", "liveSegments"),
    TableColumn("REPLAY-SECONDS", "replaySeconds"),
    TableColumn("UNDECODABLE", "undecodable", wide=True),
    TableColumn("FIRST-EVENT", "firstEventTimestampMs", wide=True),
    TableColumn("LAST-EVENT", "lastEventTimestampMs", wide=True),
)
STATISTICS_FIELDS = (
    *("metadataPartition", "startOffset", "endOffset", "events", "bytes", "undecodable", "eventsByType"),
    *("eventsByState", "deadEvents", "deadRatio", "liveSegments", "unkeyed"),
    *("firstEventTimestampMs", "lastEventTimestampMs", "replaySeconds"),
)
EXPORT_COLUMNS = (*_METADATA_PARTITION_COLUMNS, TableColumn("RECORDS", "records"))
EXPORT_FIELDS = ("metadataPartition", "startOffset", "endOffset", "records")
