"""The value of one `__remote_log_metadata` record: which form it has, and the event in it.

Sources: RemoteLogMetadataSerde, RemoteLogSegmentMetadataTransform and their siblings; KIP-405, "Message Format".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.event_frame import demand_end, frame, read_frame
from tieredctl.formats.metadata_schemas import (
    KAFKA_SCHEMAS,
    KAFKA_SCHEMAS_BEFORE_3_6,
    KIP_405_SCHEMAS,
    PARTITION_DELETE,
    SEGMENT_METADATA,
    SEGMENT_METADATA_SNAPSHOT,
    SEGMENT_METADATA_UPDATE,
)
from tieredctl.formats.schema import UNKNOWN_TAGS
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values, reader, writer
from tieredctl.model.events import (
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    TaggedField,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text

_KIP_UPDATE_LENGTH_BESIDE_NAME = 53
_KIP_HEADER_LENGTH = 2
_LOWEST_TOPIC_CHARACTER = 0x2D
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

_KAFKA_READERS = {key: reader(schema) for key, schema in KAFKA_SCHEMAS.items()}
_KAFKA_READERS_BEFORE_3_6 = {key: reader(schema) for key, schema in KAFKA_SCHEMAS_BEFORE_3_6.items()}
_KIP_405_READERS = {key: reader(schema) for key, schema in KIP_405_SCHEMAS.items()}

_API_KEYS: dict[type[MetadataEvent], int] = {
    RemoteLogSegmentMetadata: SEGMENT_METADATA,
    RemoteLogSegmentMetadataUpdate: SEGMENT_METADATA_UPDATE,
    RemotePartitionDeleteMetadata: PARTITION_DELETE,
    RemoteLogSegmentMetadataSnapshot: SEGMENT_METADATA_SNAPSHOT,
}


def is_kip_405(value: Buffer) -> bool:
    """Whether a value has the KIP's form; else it has Kafka's, or neither. Decides by prefix and length alone."""
    if len(value) < 4:
        return False
    kind, version, high, low = value[0], value[1], value[2], value[3]
    if kind != SEGMENT_METADATA_UPDATE:
        return kind in (SEGMENT_METADATA, PARTITION_DELETE) and version == 0
    if version != 0 or high != 0:
        return False
    # `01 00 00 xx`: the KIP's update with a name of xx characters, or Kafka's apiKey 0 with one of xx - 1.
    if low >= 0x80:
        return len(value) > 4 and value[4] >= _LOWEST_TOPIC_CHARACTER
    return low == 1 or len(value) == _KIP_UPDATE_LENGTH_BESIDE_NAME + low


def decode_event(value: Buffer) -> MetadataEvent:
    """The event in a record's value. Raises DecodeError where Kafka's own deserializer would refuse it too,
    except that records of 3.0 to 3.5, which later releases cannot read, are read."""
    if is_kip_405(value):
        return _event(value[0], *_read_kip_405(value))
    api_key, position = read_frame(value, KAFKA_SCHEMAS)
    return _event(api_key, *_read_kafka(api_key, value, position))


def encode_event(event: MetadataEvent) -> bytes:
    """An event's value in the form that it names."""
    api_key = _API_KEYS[type(event)]
    values = _values(event)
    if event.form is RecordForm.KIP_405:
        return bytes((api_key, 0)) + writer(KIP_405_SCHEMAS[api_key])(values)
    schemas = KAFKA_SCHEMAS if event.form is RecordForm.KAFKA else KAFKA_SCHEMAS_BEFORE_3_6
    return frame(api_key) + writer(schemas[api_key])(values)


def _read_kip_405(value: Buffer) -> tuple[Values, RecordForm]:
    values, position = _KIP_405_READERS[value[0]](value, _KIP_HEADER_LENGTH, len(value))
    demand_end(value, position)
    if not _TOPIC_NAME.fullmatch(values["Name"]):
        raise DecodeError("impossible topic name", _KIP_HEADER_LENGTH)  # such as truncated values in Kafka's form
    return values, RecordForm.KIP_405


def _read_kafka(api_key: int, value: Buffer, start: int) -> tuple[Values, RecordForm]:
    try:
        values, position = _KAFKA_READERS[api_key](value, start, len(value))
        demand_end(value, position)
        return values, RecordForm.KAFKA
    except DecodeError as refused:
        # No value fits both: the later form is longer by the byte that the earlier one lacks.
        try:
            values, position = _KAFKA_READERS_BEFORE_3_6[api_key](value, start, len(value))
            demand_end(value, position)
        except DecodeError:
            raise refused from None
        return values, RecordForm.KAFKA_BEFORE_3_6


def _event(api_key: int, values: Values, form: RecordForm) -> MetadataEvent:
    topic_values = _topic_values(values)
    topic_id_partition = topic_values and TopicIdPartition(
        uuid_text(topic_values["TopicId" if form is RecordForm.KIP_405 else "Id"]),
        topic_values["Name"],
        topic_values["Partition"],
    )
    common: dict[str, Any] = {
        "author": _first(values, "BrokerId", "LeaderEpoch", "Epoch"),
        "event_timestamp_ms": _first(values, "EventTimestampMs", "EventTimestamp"),
        "form": form,
        "tagged_fields": tuple(tagged_fields(values)),
    }
    if api_key == PARTITION_DELETE:
        state = _state(RemotePartitionDeleteState, values["RemotePartitionDeleteState"])
        return RemotePartitionDeleteMetadata(topic_id_partition=topic_id_partition, state=state, **common)
    common["state"] = _state(RemoteLogSegmentState, values["RemoteLogSegmentState"])
    common["custom_metadata"] = values.get("CustomMetadata")
    common["segment_id"] = uuid_text(_segment_id(values))
    if api_key == SEGMENT_METADATA_UPDATE:
        return RemoteLogSegmentMetadataUpdate(topic_id_partition=topic_id_partition, **common)
    common |= _segment_fields(values)
    if api_key == SEGMENT_METADATA:
        return RemoteLogSegmentMetadata(topic_id_partition=topic_id_partition, **common)
    return RemoteLogSegmentMetadataSnapshot(**common)


def _topic_values(values: Values) -> Any:
    if "RemoteLogSegmentId" in values:
        return values["RemoteLogSegmentId"]["TopicIdPartition"]
    return values.get("TopicIdPartition", values if "TopicId" in values else None)


def _segment_id(values: Values) -> bytes:
    data: bytes = values["SegmentId"] if "SegmentId" in values else values["RemoteLogSegmentId"]["Id"]
    return data


def _segment_fields(values: Values) -> dict[str, Any]:
    start, end = values["StartOffset"], values["EndOffset"]
    epochs = {element["LeaderEpoch"]: element["Offset"] for element in values["SegmentLeaderEpochs"]}
    # RemoteLogSegmentMetadata's constructor refuses these, so no broker can read such a record.
    if start < 0 or end < start:
        raise DecodeError(f"impossible offsets {start} to {end}", 0)
    if not epochs:
        raise DecodeError("no segment leader epochs", 0)
    return {
        "start_offset": start,
        "end_offset": end,
        "max_timestamp_ms": _first(values, "MaxTimestampMs", "MaxTimestamp"),
        "segment_leader_epochs": tuple(sorted(epochs.items())),
        "segment_size_in_bytes": values["SegmentSizeInBytes"],
        "txn_idx_empty": values.get("TxnIndexEmpty", False),
    }


def _state(kind: Any, number: int) -> Any:
    try:
        return kind(number)
    except ValueError:
        raise DecodeError(f"unknown {kind.__name__} {number}", 0) from None


def _first(values: Mapping[str, Any], *names: str) -> Any:
    return next(values[name] for name in names if name in values)


def _values(event: MetadataEvent) -> Values:
    """An event as the fields of every form; a schema's writer takes those that it has."""
    values: Values = {"EventTimestampMs": event.event_timestamp_ms, "EventTimestamp": event.event_timestamp_ms}
    values |= dict.fromkeys(("BrokerId", "LeaderEpoch", "Epoch"), event.author)
    if isinstance(event, RemotePartitionDeleteMetadata):
        values["RemotePartitionDeleteState"] = event.state
    else:
        values |= {
            "SegmentId": uuid_bytes(event.segment_id),
            "RemoteLogSegmentState": event.state,
            "CustomMetadata": event.custom_metadata,
        }
    if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataSnapshot):
        values |= {
            "StartOffset": event.start_offset,
            "EndOffset": event.end_offset,
            "MaxTimestampMs": event.max_timestamp_ms,
            "MaxTimestamp": event.max_timestamp_ms,
            "SegmentLeaderEpochs": _epoch_values(event.segment_leader_epochs),
            "SegmentSizeInBytes": event.segment_size_in_bytes,
            "TxnIndexEmpty": event.txn_idx_empty,
        }
    if not isinstance(event, RemoteLogSegmentMetadataSnapshot):
        _add_topic(values, event.topic_id_partition)
    put_tagged_fields(values, event.tagged_fields)
    return values


def _epoch_values(epochs: Sequence[tuple[int, int]]) -> list[Values]:
    return [{"LeaderEpoch": epoch, "Offset": offset} for epoch, offset in epochs]


def _add_topic(values: Values, topic_id_partition: TopicIdPartition) -> None:
    topic_id = uuid_bytes(topic_id_partition.topic_id)
    topic: Values = {"Name": topic_id_partition.topic, "Partition": topic_id_partition.partition}
    values |= topic
    values["TopicId"] = topic_id
    values["TopicIdPartition"] = topic | {"Id": topic_id}
    if "SegmentId" in values:
        values["RemoteLogSegmentId"] = {"TopicIdPartition": values["TopicIdPartition"], "Id": values["SegmentId"]}


def tagged_fields(values: Values) -> list[TaggedField]:
    """The unknown tagged fields of a decoded struct and of the structs in it."""
    return _named(values, "") if _carries_any(values) else []


def _carries_any(values: Values) -> bool:
    """Nearly always none: no path is made for nothing."""
    if UNKNOWN_TAGS in values:
        return True
    for value in values.values():
        if type(value) is dict:
            if _carries_any(value):
                return True
        elif type(value) is list and value and type(value[0]) is dict and any(map(_carries_any, value)):
            return True
    return False


def _named(values: Values, path: str) -> list[TaggedField]:
    unknown_fields = [TaggedField(path, tag, data) for tag, data in values.get(UNKNOWN_TAGS, ())]
    for name, value in values.items():
        inner = f"{path}.{name}" if path else name
        if isinstance(value, dict):
            unknown_fields += _named(value, inner)
        elif isinstance(value, list) and name != UNKNOWN_TAGS:
            for index, element in enumerate(value):
                if isinstance(element, dict):
                    unknown_fields += _named(element, f"{inner}[{index}]")
    return unknown_fields


def put_tagged_fields(values: Values, fields: Iterable[TaggedField]) -> None:
    """Puts them back where they were."""
    for tagged in fields:
        _descend(values, tagged.path).setdefault(UNKNOWN_TAGS, []).append((tagged.tag, tagged.data))


def _descend(values: Values, path: str) -> Values:
    """The struct that a tagged field's path names."""
    for step in path.split(".") if path else ():
        name, _, index = step.partition("[")
        values = values[name][int(index[:-1])] if index else values[name]
    return values
