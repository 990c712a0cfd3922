"""Events as the formatter that KIP-405 describes would print them (no Kafka release has it)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.ids import TopicIdPartition

_TYPE_NAMES: dict[type[MetadataEvent], str] = {RemotePartitionDeleteMetadata: "DeletePartitionState"}
_VERSION = 0


class Kip405Property(Enum):
    """The formatter's properties, all false by default."""

    PARTITION = "print.partition"
    MESSAGE_OFFSET = "print.message.offset"
    VERSION = "print.version"
    ALL_FIELDS = "print.all.event.value.fields"


@dataclass(frozen=True, slots=True)
class Kip405Style:
    """The properties that are true, and what separates the parts."""

    properties: frozenset[Kip405Property] = frozenset()
    separator: str = ","


def kip_405_line(record: EventRecord, style: Kip405Style) -> str:
    """One line, without its end."""
    event, properties = record.event, style.properties
    parts = []
    if Kip405Property.PARTITION in properties:
        parts.append(f"partition:{record.metadata_partition}")
    if Kip405Property.MESSAGE_OFFSET in properties:
        parts.append(f"message-offset:{record.metadata_offset}")
    parts.append(f"type:{_TYPE_NAMES.get(type(event), type(event).__name__)}")
    if Kip405Property.VERSION in properties:
        parts.append(f"version:{_VERSION}")
    fields = _fields(event, style.separator, Kip405Property.ALL_FIELDS in properties)
    parts.append("event-value:" + _braced(style.separator, *fields))
    return style.separator.join(parts)


def _fields(event: MetadataEvent, separator: str, all_fields: bool) -> list[str]:
    author = "leader-epoch" if event.form is RecordForm.KIP_405 else "broker-id"
    if isinstance(event, RemotePartitionDeleteMetadata):
        author = "epoch" if event.form is RecordForm.KIP_405 else author
        identity = "topic-id-partition:" + _braced(separator, *_topic_fields(event.topic_id_partition))
        fields = [identity, f"{author}:{event.author}", f"remote-partition-delete-state:{event.state.name}"]
        return fields + ([f"event-timestamp:{event.event_timestamp_ms}"] if all_fields else [])
    topic = () if isinstance(event, RemoteLogSegmentMetadataSnapshot) else _topic_fields(event.topic_id_partition)
    fields = ["remote-log-segment-id:" + _braced(separator, f"id:{event.segment_id}", *topic)]
    if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot):
        fields += [f"start-offset:{event.start_offset}", f"end-offset:{event.end_offset}"]
    fields += [f"{author}:{event.author}", f"remote-log-segment-state:{event.state.name}"]
    if all_fields:
        fields.append(f"event-timestamp:{event.event_timestamp_ms}")
        if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot):
            epochs = (f"{epoch}:{offset}" for epoch, offset in event.segment_leader_epochs)
            fields += [
                f"max-timestamp:{event.max_timestamp_ms}",
                "segment-leader-epochs:" + _braced(separator, *epochs),
                f"segment-size-in-bytes:{event.segment_size_in_bytes}",
            ]
    return fields


def _topic_fields(partition: TopicIdPartition) -> tuple[str, str, str]:
    return f"topicId:{partition.topic_id}", f"topicName:{partition.topic}", f"partition:{partition.partition}"


def _braced(separator: str, *parts: str) -> str:
    return "{" + separator.join(parts) + "}"
