"""Requests to a diskless coordinator and its answers, by the definitions of KIP-1164: bytes and values.

The bytes are what follows Kafka's request or response header. Entries of one topic are sent together, as the schemas
want it, and keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from tieredctl.errors import DecodeError
from tieredctl.formats.event_frame import MESSAGE_VERSION
from tieredctl.formats.message_json import message
from tieredctl.formats.metadata_records import tagged_fields
from tieredctl.formats.varints import Buffer
from tieredctl.formats.wire import Values, whole_reader, writer
from tieredctl.model.ids import uuid_bytes, uuid_text
from tieredctl_proposals.formats.diskless_records import MESSAGES
from tieredctl_proposals.model.diskless_requests import (
    BatchesResult,
    BatchQuery,
    BatchResult,
    CommitBatch,
    CommitFile,
    CommittedFile,
    CreatablePartitions,
    CreatedPartitions,
    CreatePartitions,
    DeletableRecords,
    DeletedRecords,
    DeletedTopics,
    DeleteRecords,
    DeleteTopics,
    DescribedFiles,
    DescribeFiles,
    DisklessRequest,
    DisklessResponse,
    FileResult,
    FindBatches,
    FoundBatch,
    FoundBatches,
    KafkaError,
    ListedOffsets,
    ListOffsets,
    OffsetQuery,
    OffsetResult,
    RecordsResult,
    TopicResult,
)

_TOPIC_ID, _ERROR, _PARTITIONS, _BATCHES, _OWNERS = "TopicId", "ErrorCode", "Partitions", "Batches", "OwnerIds"
_PARTITION = (_TOPIC_ID, "PartitionIndex")
_RESULT = (_ERROR, "ErrorMessage")
_PRODUCER = ("ProducerId", "ProducerEpoch", "BaseSequence", "LastSequence")
_TIMES = ("BatchMaxTimestamp", "TimestampType")

_ENTRIES: dict[type, tuple[str, ...]] = {
    CreatablePartitions: (_TOPIC_ID, "Name", "NumPartitions"),
    TopicResult: (_TOPIC_ID, *_RESULT),
    CommitBatch: (
        *_PARTITION,
        *("ByteOffset", "Size", "BaseOffset", "LastOffset"),
        *_TIMES,
        *_PRODUCER,
        *("Magic", "RequestId"),
    ),
    BatchResult: (*_RESULT, "AssignedBaseOffset", "LogAppendTime", "LogStartOffset", "IsDuplicate"),
    DeletableRecords: (*_PARTITION, "Offset"),
    RecordsResult: (*_PARTITION, "LowWatermark", *_RESULT),
    OffsetQuery: (*_PARTITION, "Timestamp"),
    OffsetResult: (*_PARTITION, *_RESULT, "Timestamp", "Offset"),
    BatchQuery: (*_PARTITION, "Offset", "MaxPartitionFetchBytes"),
    BatchesResult: (*_PARTITION, _ERROR, "LogStartOffset", "HighWatermark", _BATCHES),
    FoundBatch: (
        *("BatchId", "ObjectKey", "Magic", "ByteOffset", "ByteSize", "BaseOffset", "LastOffset"),
        *("LogAppendTimestamp", *_TIMES),
    ),
    FileResult: ("ObjectKey", *_RESULT, "HasLiveBatches"),
}
"""What the schemas call the fields of each value, in its order."""


class _Form(NamedTuple):
    """How a message is sent."""

    name: str
    fields: tuple[str, ...]
    """What its schema calls the fields of the value, in its order."""
    entries: str
    """The field that is a list."""
    entry: type | str
    """What is in the list; of texts alone, what the schema calls them."""
    by_topic: bool = False
    """Whether the schema has entries below their topic, and not beside it."""


_TIMEOUT, _THROTTLE = "TimeoutMs", "ThrottleTimeMs"
_FORMS: dict[type, _Form] = {
    CreatePartitions: _Form("CreatePartitionsRequest", ("Topics", _TIMEOUT), "Topics", CreatablePartitions),
    CreatedPartitions: _Form("CreatePartitionsResponse", ("Topics", _THROTTLE), "Topics", TopicResult),
    DeleteTopics: _Form("DeleteTopicsRequest", ("Topics", _TIMEOUT), "Topics", _TOPIC_ID),
    DeletedTopics: _Form("DeleteTopicsResponse", ("Responses", _THROTTLE), "Responses", TopicResult),
    CommitFile: _Form(
        "CommitFileRequest",
        ("ObjectKey", "FileSize", _OWNERS, _BATCHES, "ObjectFormat", _TIMEOUT),
        _BATCHES,
        CommitBatch,
    ),
    CommittedFile: _Form("CommitFileResponse", (_BATCHES, _THROTTLE), _BATCHES, BatchResult),
    DeleteRecords: _Form("DeleteRecordsRequest", ("Topics", _TIMEOUT), "Topics", DeletableRecords, by_topic=True),
    DeletedRecords: _Form("DeleteRecordsResponse", ("Topics", _THROTTLE), "Topics", RecordsResult, by_topic=True),
    ListOffsets: _Form("ListOffsetsRequest", ("Topics", _TIMEOUT), "Topics", OffsetQuery, by_topic=True),
    ListedOffsets: _Form("ListOffsetsResponse", ("Topics", _THROTTLE), "Topics", OffsetResult, by_topic=True),
    FindBatches: _Form(
        "FindBatchesRequest",
        ("FetchMaxBytes", "MaxBatchesPerPartition", "Topics", _TIMEOUT),
        "Topics",
        BatchQuery,
        by_topic=True,
    ),
    FoundBatches: _Form("FindBatchesResponse", ("Topics", _THROTTLE), "Topics", BatchesResult, by_topic=True),
    DescribeFiles: _Form("DescribeFilesRequest", ("Files", _TIMEOUT), "Files", "ObjectKey"),
    DescribedFiles: _Form("DescribeFilesResponse", ("Files", _THROTTLE), "Files", FileResult),
}
REQUESTS: dict[int, type[DisklessRequest]] = {
    93: CreatePartitions,
    94: DeleteTopics,
    95: CommitFile,
    96: DeleteRecords,
    97: ListOffsets,
    98: FindBatches,
    100: DescribeFiles,
}
"""The requests by apiKey."""
_Message = TypeVar("_Message", bound=DisklessRequest | DisklessResponse)


def encode_diskless_message(value: DisklessRequest | DisklessResponse) -> bytes:
    """A request's or an answer's bytes. Raises struct.error for a number that its field cannot hold, ValueError for a
    topic id that is none."""
    form = _FORMS[type(value)]
    fields: Values = dict(zip(form.fields, value, strict=True))
    fields[form.entries] = list(_encoded(form, fields[form.entries]))
    return writer(message(f"Diskless{form.name}", MESSAGES, __package__).schema(MESSAGE_VERSION))(fields)


def decode_diskless_message(kind: type[_Message], data: Buffer) -> _Message:
    """The request or the answer of that kind. Raises DecodeError, for tagged fields too: version 0 has none."""
    form = _FORMS[kind]
    values = whole_reader(message(f"Diskless{form.name}", MESSAGES, __package__).schema(MESSAGE_VERSION))(data)
    if tagged_fields(values):
        raise DecodeError(f"Diskless{form.name} has fields that are not known", 0)
    try:
        values[form.entries] = tuple(_decoded(form, values[form.entries]))
    except ValueError as impossible:
        raise DecodeError(str(impossible), 0) from None
    if _OWNERS in values:
        values[_OWNERS] = tuple(values[_OWNERS])
    fields: list[Any] = [values[name] for name in form.fields]
    return kind(*fields)


def _encoded(form: _Form, entries: Iterable[Any]) -> Iterator[Values]:
    if isinstance(form.entry, str):
        yield from ({form.entry: _sent(form.entry, text)} for text in entries)
        return
    written = [_entry_values(one) for one in entries]
    if not form.by_topic:
        yield from written
        return
    topics: dict[bytes, list[Values]] = {}
    for values in written:
        topics.setdefault(values[_TOPIC_ID], []).append(values)
    yield from ({_TOPIC_ID: topic_id, _PARTITIONS: partitions} for topic_id, partitions in topics.items())


def _entry_values(entry: Any) -> Values:
    return {name: _sent(name, each) for name, each in zip(_ENTRIES[type(entry)], entry, strict=True)}


def _sent(name: str, value: Any) -> Any:
    if name == _TOPIC_ID:
        return uuid_bytes(value)
    return [_entry_values(batch) for batch in value] if name == _BATCHES else value


def _decoded(form: _Form, entries: Iterable[Values]) -> Iterator[Any]:
    for values in entries:
        if isinstance(form.entry, str):
            yield _received(form.entry, values[form.entry])
        elif form.by_topic:
            topic = {_TOPIC_ID: values[_TOPIC_ID]}
            yield from (_entry(form.entry, partition | topic) for partition in values[_PARTITIONS])
        else:
            yield _entry(form.entry, values)


def _entry(kind: type, values: Values) -> Any:
    return kind(*(_received(name, values[name]) for name in _ENTRIES[kind]))


def _received(name: str, value: Any) -> Any:
    if name == _TOPIC_ID:
        return uuid_text(value)
    if name == _ERROR:
        return KafkaError(value)
    return tuple(_entry(FoundBatch, batch) for batch in value) if name == _BATCHES else value
