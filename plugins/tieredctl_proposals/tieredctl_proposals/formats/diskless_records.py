"""The value of one `__diskless_metadata` record (KIP-1164), and what it says.

Their schemas are the proposal's own, in `diskless_messages`. It does not say how a record is framed: tieredctl takes
the frame of Kafka's other metadata topics (docs/diskless.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from tieredctl.errors import DecodeError
from tieredctl.formats.event_frame import MESSAGE_VERSION, demand_end, frame, read_frame
from tieredctl.formats.message_json import message
from tieredctl.formats.metadata_records import put_tagged_fields, tagged_fields
from tieredctl.formats.schema import Struct
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values, reader, writer
from tieredctl.model.events import TaggedField
from tieredctl.model.ids import uuid_bytes, uuid_text
from tieredctl_proposals.model.diskless_records import (
    CommittedBatch,
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)

MESSAGES = "diskless_messages"
"""The folder of the proposal's definitions, beside this module."""

PARTITION_CREATED, TOPIC_DELETED, FILE_COMMITTED, RECORDS_DELETED = range(100, 104)
"""The apiKeys of the records. Of requests, 100 is another."""

_DEFINITIONS = [
    message(f"Diskless{name}Record", MESSAGES, __package__)
    for name in ("PartitionCreated", "TopicDeleted", "FileCommitted", "RecordsDeleted")
]
DISKLESS_SCHEMAS = {one.api_key: one.schema(MESSAGE_VERSION) for one in _DEFINITIONS if one.api_key is not None}
"""The schemas by apiKey."""
_READERS = {api_key: reader(schema) for api_key, schema in DISKLESS_SCHEMAS.items()}
_API_KEYS: dict[type[DisklessRecord], int] = {
    PartitionCreated: PARTITION_CREATED,
    TopicDeleted: TOPIC_DELETED,
    FileCommitted: FILE_COMMITTED,
    RecordsDeleted: RECORDS_DELETED,
}


def decode_diskless_record(value: Buffer) -> DisklessRecord:
    """What a record's value says. Raises DecodeError for bytes of another form, and for what no coordinator can have
    accepted."""
    api_key, position = read_frame(value, DISKLESS_SCHEMAS)
    values, position = _READERS[api_key](value, position, len(value))
    demand_end(value, position)
    try:
        return _record(api_key, values)
    except ValueError as impossible:
        raise DecodeError(str(impossible), 0) from None


def encode_diskless_record(record: DisklessRecord) -> bytes:
    """A record's value."""
    schema, values = schema_values(record)
    return frame(_API_KEYS[type(record)]) + writer(schema)(values)


def schema_values(record: DisklessRecord) -> tuple[Struct, Values]:
    """A record's schema, and its values by the names there."""
    values = _values(record)
    put_tagged_fields(values, record.tagged_fields)
    return DISKLESS_SCHEMAS[_API_KEYS[type(record)]], values


def _record(api_key: int, values: Values) -> DisklessRecord:
    tagged = tuple(tagged_fields(values))
    if api_key == FILE_COMMITTED:
        return _file_committed(values, tagged)
    topic_id = uuid_text(values["TopicId"])
    if api_key == TOPIC_DELETED:
        return TopicDeleted(topic_id=topic_id, tagged_fields=tagged)
    partition = values["PartitionIndex"]
    if api_key == PARTITION_CREATED:
        return PartitionCreated(topic_id=topic_id, topic=values["Name"], partition=partition, tagged_fields=tagged)
    start = values["NewLogStartOffset"]
    return RecordsDeleted(topic_id=topic_id, partition=partition, log_start_offset=start, tagged_fields=tagged)


def _file_committed(values: Values, tagged: tuple[TaggedField, ...]) -> FileCommitted:
    return FileCommitted(
        object_key=values["ObjectKey"],
        object_format=values["ObjectFormat"],
        file_size=values["FileSize"],
        uploader_broker_id=values["UploaderBrokerId"],
        owner_ids=tuple(values["OwnerIds"]),
        batches=tuple(_batches(values)),
        tagged_fields=tagged,
    )


def _batches(values: Values) -> Iterator[CommittedBatch]:
    topics = [topic["TopicId"] for topic in values["Topics"]]
    if len(set(topics)) < len(topics):
        raise ValueError("a topic that is listed twice")
    for topic in values["Topics"]:
        topic_id = uuid_text(topic["TopicId"])
        partitions = [partition["PartitionIndex"] for partition in topic["Partitions"]]
        if not partitions or len(set(partitions)) < len(partitions):
            raise ValueError(f"impossible partitions {partitions} of topic {topic_id}")
        for partition in topic["Partitions"]:
            if not partition["Batches"]:
                raise ValueError(f"partition {partition['PartitionIndex']} of topic {topic_id} without batches")
            for batch in partition["Batches"]:
                yield _batch(topic_id, partition["PartitionIndex"], batch)


def _batch(topic_id: str, partition: int, values: Values) -> CommittedBatch:
    return CommittedBatch(
        topic_id,
        partition,
        values["Magic"],
        values["ByteOffset"],
        values["ByteSize"],
        values["AssignedBaseOffset"],
        values["AssignedLastOffset"],
        values["LogAppendTimestamp"],
        values["BatchMaxTimestamp"],
        values["TimestampType"],
        values["ProducerId"],
        values["ProducerEpoch"],
        values["BaseSequence"],
        values["LastSequence"],
    )


def _values(record: DisklessRecord) -> Values:
    if isinstance(record, FileCommitted):
        return {
            "ObjectKey": record.object_key,
            "ObjectFormat": record.object_format,
            "FileSize": record.file_size,
            "UploaderBrokerId": record.uploader_broker_id,
            "OwnerIds": list(record.owner_ids),
            "Topics": [_topic_values(*each) for each in groupby(record.batches, attrgetter("topic_id"))],
        }
    values: Values = {"TopicId": uuid_bytes(record.topic_id)}
    if isinstance(record, PartitionCreated):
        values |= {"Name": record.topic, "PartitionIndex": record.partition}
    elif isinstance(record, RecordsDeleted):
        values |= {"PartitionIndex": record.partition, "NewLogStartOffset": record.log_start_offset}
    return values


def _topic_values(topic_id: str, batches: Iterator[CommittedBatch]) -> Values:
    partitions = [
        {"PartitionIndex": partition, "Batches": list(map(_batch_values, of_partition))}
        for partition, of_partition in groupby(batches, attrgetter("partition"))
    ]
    return {"TopicId": uuid_bytes(topic_id), "Partitions": partitions}


def _batch_values(batch: CommittedBatch) -> Values:
    return {
        "Magic": batch.magic,
        "ByteOffset": batch.byte_offset,
        "ByteSize": batch.byte_size,
        "AssignedBaseOffset": batch.base_offset,
        "AssignedLastOffset": batch.last_offset,
        "LogAppendTimestamp": batch.log_append_timestamp_ms,
        "BatchMaxTimestamp": batch.batch_max_timestamp_ms,
        "TimestampType": batch.timestamp_type,
        "ProducerId": batch.producer_id,
        "ProducerEpoch": batch.producer_epoch,
        "BaseSequence": batch.base_sequence,
        "LastSequence": batch.last_sequence,
    }
