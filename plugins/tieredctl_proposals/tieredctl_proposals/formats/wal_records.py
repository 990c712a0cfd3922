"""The value of one `__remote_wal_log_metadata` record, and the event in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.event_frame import demand_end, frame, read_frame
from tieredctl.formats.metadata_records import put_tagged_fields, tagged_fields
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values, reader, writer
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text
from tieredctl_proposals.formats.wal_schemas import (
    WAL_COMBINED,
    WAL_COMBINED_UPDATE,
    WAL_SCHEMAS,
    WAL_SEGMENT,
    WAL_SEGMENT_UPDATE,
)
from tieredctl_proposals.model.wal_events import (
    CombinedEvent,
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    RemoteWalLogSegmentMetadata,
    RemoteWalLogSegmentMetadataUpdate,
    WalEvent,
    WalSegmentEvent,
)

_READERS = {key: reader(schema) for key, schema in WAL_SCHEMAS.items()}
_API_KEYS: dict[type[WalEvent], int] = {
    RemoteWalLogSegmentMetadata: WAL_SEGMENT,
    RemoteWalLogSegmentMetadataUpdate: WAL_SEGMENT_UPDATE,
    RemoteWalCombinedLogSegmentMetadata: WAL_COMBINED,
    RemoteWalCombinedLogSegmentMetadataUpdate: WAL_COMBINED_UPDATE,
}


def decode_wal_event(value: Buffer) -> WalEvent:
    """The event in a record's value. Raises DecodeError for bytes of another form, and for what no log or object can
    have."""
    api_key, position = read_frame(value, WAL_SCHEMAS)
    values, position = _READERS[api_key](value, position, len(value))
    demand_end(value, position)
    try:
        return _event(api_key, values)
    except ValueError as impossible:
        raise DecodeError(str(impossible), 0) from None


def encode_wal_event(event: WalEvent) -> bytes:
    """An event's value."""
    api_key = _API_KEYS[type(event)]
    if isinstance(event, RemoteWalLogSegmentMetadata | RemoteWalLogSegmentMetadataUpdate):
        values = _segment_values(event)
    else:
        values = _combined_values(event)
    put_tagged_fields(values, event.tagged_fields)
    return frame(api_key) + writer(WAL_SCHEMAS[api_key])(values)


def _event(api_key: int, values: Values) -> WalEvent:
    common: dict[str, Any] = {
        "broker_id": values["BrokerId"],
        "event_timestamp_ms": values["EventTimestampMs"],
        "combined_segment_id": uuid_text(values["CombinedSegmentId"]),
        "custom_metadata": values["CustomMetadata"],
        "state": RemoteLogSegmentState(values["RemoteLogSegmentState"]),
        "tagged_fields": tuple(tagged_fields(values)),
    }
    if api_key in (WAL_COMBINED, WAL_COMBINED_UPDATE):
        common["entries"] = tuple(map(_entry, values["RemoteLogSegmentMetadataEntries"]))
        if api_key == WAL_COMBINED:
            return RemoteWalCombinedLogSegmentMetadata(**common)
        return RemoteWalCombinedLogSegmentMetadataUpdate(**common)
    common |= {
        **_identity(values),
        "leader_epoch": values["LeaderEpoch"],
        "combined_coordinator_partition": values["CombinedCoordinatorPartition"],
    }
    if api_key == WAL_SEGMENT_UPDATE:
        return RemoteWalLogSegmentMetadataUpdate(**common)
    return RemoteWalLogSegmentMetadata(
        start_offset=values["StartOffset"],
        end_offset=values["EndOffset"],
        max_timestamp_ms=values["MaxTimestampMs"],
        segment_leader_epochs=tuple((one["LeaderEpoch"], one["Offset"]) for one in values["SegmentLeaderEpochs"]),
        segment_size_in_bytes=values["SegmentSizeInBytes"],
        **common,
    )


def _entry(values: Values) -> RemoteLogSegmentMetadataEntry:
    return RemoteLogSegmentMetadataEntry(**_identity(values))


def _identity(values: Values) -> dict[str, Any]:
    """A segment's id, and its range."""
    topic = values["RemoteLogSegmentId"]["TopicIdPartition"]
    return {
        "topic_id_partition": TopicIdPartition(uuid_text(topic["Id"]), topic["Name"], topic["Partition"]),
        "segment_id": uuid_text(values["RemoteLogSegmentId"]["Id"]),
        "start_file_position": values["StartFilePosition"],
        "end_file_position": values["EndFilePosition"],
    }


def _combined_values(event: CombinedEvent) -> Values:
    return _common_values(event) | {"RemoteLogSegmentMetadataEntries": [_identity_values(one) for one in event.entries]}


def _segment_values(event: WalSegmentEvent) -> Values:
    values = _common_values(event) | {
        **_identity_values(event),
        "LeaderEpoch": event.leader_epoch,
        "CombinedCoordinatorPartition": event.combined_coordinator_partition,
    }
    if isinstance(event, RemoteWalLogSegmentMetadata):
        epochs = [{"LeaderEpoch": epoch, "Offset": offset} for epoch, offset in event.segment_leader_epochs]
        values |= {
            "StartOffset": event.start_offset,
            "EndOffset": event.end_offset,
            "MaxTimestampMs": event.max_timestamp_ms,
            "SegmentLeaderEpochs": epochs,
            "SegmentSizeInBytes": event.segment_size_in_bytes,
        }
    return values


def _common_values(event: WalEvent) -> Values:
    return {
        "BrokerId": event.broker_id,
        "EventTimestampMs": event.event_timestamp_ms,
        "CombinedSegmentId": uuid_bytes(event.combined_segment_id),
        "CustomMetadata": event.custom_metadata,
        "RemoteLogSegmentState": event.state,
    }


def _identity_values(one: RemoteLogSegmentMetadataEntry | WalSegmentEvent) -> Mapping[str, Any]:
    partition = one.topic_id_partition
    topic = {"Name": partition.topic, "Id": uuid_bytes(partition.topic_id), "Partition": partition.partition}
    return {
        "RemoteLogSegmentId": {"TopicIdPartition": topic, "Id": uuid_bytes(one.segment_id)},
        "StartFilePosition": one.start_file_position,
        "EndFilePosition": one.end_file_position,
    }
