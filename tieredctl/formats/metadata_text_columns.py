"""Kafka's text of many events at once: the bulk counterpart of `metadata_text.py`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import flag_array, number_array, text_array, text_scalar
from tieredctl.formats.columns import NULL, Columns, Lists, Spans
from tieredctl.formats.document_columns import (
    Text,
    bytes_of_texts,
    chosen_texts,
    joined_texts,
    list_texts,
    number_texts,
)
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.metadata_text import KafkaText, custom_metadata_text
from tieredctl.formats.uuid_columns import uuid_columns
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState

_SEGMENT_ID = "RemoteLogSegmentId.Id"
_SEGMENT_STATES = text_array([state.name for state in RemoteLogSegmentState])
_DELETE_STATES = text_array([state.name for state in RemotePartitionDeleteState])
_FLAGS = text_array(["false", "true"])
_NONE_SAID = np.zeros(1, np.bool_)


def kafka_lines(metadata_partition: int, offsets: Ints, group: EventGroup, text: KafkaText) -> pa.StringArray:
    """A line with its end for each event of a group; `offsets` are those of all values, which the rows number."""
    heading = f"partition: {metadata_partition}, offset: "
    return joined_texts([heading, number_texts(offsets[group.rows]), ", value: ", *_event(group, text), "}\n"])


def _event(group: EventGroup, text: KafkaText) -> list[Text]:
    """The text between `value: ` and the closing brace."""
    columns = group.columns
    if group.api_key == PARTITION_DELETE:
        states = chosen_texts(columns["RemotePartitionDeleteState"], _DELETE_STATES)
        opening = _partitions(group, "RemotePartitionDeleteMetadata{topicPartition=", ", state=")
        return [opening, states, *_closing(columns)]
    states = chosen_texts(columns["RemoteLogSegmentState"], _SEGMENT_STATES)
    kind = "RemoteLogSegmentMetadata" + ("" if group.api_key == SEGMENT_METADATA else "Update")
    identity = [
        _partitions(group, kind + "{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=", ", id="),
        uuid_columns(columns[_SEGMENT_ID]).text_array(),
    ]
    custom = ["customMetadata=", _custom_metadata(columns), ", "] if text.custom_metadata else []
    if group.api_key != SEGMENT_METADATA:
        return [*identity, "}, ", *custom, "state=", states, *_closing(columns)]
    numbers: list[Text] = []
    for label, name in (
        ("}, startOffset=", "StartOffset"),
        (", endOffset=", "EndOffset"),
        (", brokerId=", "BrokerId"),
        (", maxTimestampMs=", "MaxTimestampMs"),
        (", eventTimestampMs=", "EventTimestampMs"),
    ):
        numbers += [label, number_texts(columns[name])]
    size = ["}, segmentSizeInBytes=", number_texts(columns["SegmentSizeInBytes"]), ", "]
    empty = [", txnIdxEmpty=", _txn_idx_empty(columns)] if text.txn_idx_empty else []
    epochs = [", segmentLeaderEpochs={", _epochs(columns["SegmentLeaderEpochs"])]
    return [*identity, *numbers, *epochs, *size, *custom, "state=", states, *empty]


def _closing(columns: Columns) -> list[Text]:
    times, brokers = columns["EventTimestampMs"], columns["BrokerId"]
    return [", eventTimestampMs=", number_texts(times), ", brokerId=", number_texts(brokers)]


def _partitions(group: EventGroup, before: str, after: str) -> pa.StringArray:
    texts = text_array([f"{before}{partition}{after}" for partition in group.partitions])
    return texts.take(number_array(group.partition_index))


def _custom_metadata(columns: Columns) -> Text:
    spans: Spans | None = columns.get("CustomMetadata")
    if spans is None or (spans.starts == NULL).all():
        return custom_metadata_text(None)
    some, none = custom_metadata_text(b"").split("0"), custom_metadata_text(None)
    lengths = joined_texts([some[0], number_texts(spans.ends - spans.starts), some[1]])
    if isinstance(lengths, str):
        lengths = text_scalar(lengths)
    return pc.if_else(flag_array(spans.starts == NULL), text_scalar(none), lengths)


def _txn_idx_empty(columns: Columns) -> Text:
    return chosen_texts(columns.get("TxnIndexEmpty", _NONE_SAID), _FLAGS)


def _epochs(epochs: Lists) -> Text:
    pairs = [number_texts(epochs.elements["LeaderEpoch"]), "=", number_texts(epochs.elements["Offset"])]
    return list_texts(pairs, epochs.bounds, ", ")


def in_order(lines: list[pa.StringArray], rows: list[Ints]) -> memoryview:
    """The lines of several groups by rising row, as one run of bytes."""
    order = np.argsort(np.concatenate(rows), kind="stable")
    together = pa.concat_arrays(lines)
    if (order[1:] < order[:-1]).any():
        together = together.take(number_array(order))
    return bytes_of_texts(together)
