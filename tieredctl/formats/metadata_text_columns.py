"""Kafka's text of many events at once: the bulk counterpart of `metadata_text.py`.

Arrow's kernels join lines from columns of text, so that Python touches no single event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import flag_array, number_array, text_array, text_scalar
from tieredctl.formats.columns import NULL, Columns, Lists, Spans
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import PARTITION_DELETE, SEGMENT_METADATA
from tieredctl.formats.metadata_text import KafkaText, custom_metadata_text
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import UUID_CHARACTERS

Text: TypeAlias = Any
"""A column of text, or one text for all rows (str): Arrow comes without types."""

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_PAIRS = np.stack([np.repeat(_ALPHABET, 64), np.tile(_ALPHABET, 64)], axis=1).copy().view(np.uint16)[:, 0]
_SEGMENT_ID = "RemoteLogSegmentId.Id"


def kafka_lines(metadata_partition: int, offsets: Ints, group: EventGroup, text: KafkaText) -> pa.StringArray:
    """A line with its end for each event of a group; `offsets` are those of all values, which the rows number."""
    heading = f"partition: {metadata_partition}, offset: "
    return _joined([heading, _numbers(offsets[group.rows]), ", value: ", *_event(group, text), "}\n"])


def uuid_texts(ids: NDArray[np.void]) -> pa.StringArray:
    """16-byte ids as Kafka prints them, by twelve bits at a time."""
    count = len(ids)
    padded = np.zeros((count, 18), np.uint8)
    padded[:, :16] = np.ascontiguousarray(ids).view(np.uint8).reshape(count, 16)
    triples = padded.reshape(count, 6, 3).astype(np.uint16)
    pairs = np.empty((count, 6, 2), np.uint16)
    pairs[:, :, 0] = _PAIRS[triples[:, :, 0] << 4 | triples[:, :, 1] >> 4]
    pairs[:, :, 1] = _PAIRS[(triples[:, :, 1] & 15) << 8 | triples[:, :, 2]]
    characters = np.ascontiguousarray(pairs.reshape(count, 12).view(np.uint8)[:, :UUID_CHARACTERS])
    bounds = np.arange(0, (count + 1) * UUID_CHARACTERS, UUID_CHARACTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), pa.py_buffer(characters))


def _event(group: EventGroup, text: KafkaText) -> list[Text]:
    """The text between `value: ` and the closing brace."""
    columns = group.columns
    if group.api_key == PARTITION_DELETE:
        states = _choice(columns["RemotePartitionDeleteState"], [state.name for state in RemotePartitionDeleteState])
        opening = _partitions(group, "RemotePartitionDeleteMetadata{topicPartition=", ", state=")
        return [opening, states, *_closing(columns)]
    states = _choice(columns["RemoteLogSegmentState"], [state.name for state in RemoteLogSegmentState])
    kind = "RemoteLogSegmentMetadata" + ("" if group.api_key == SEGMENT_METADATA else "Update")
    identity = [
        _partitions(group, kind + "{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition=", ", id="),
        uuid_texts(columns[_SEGMENT_ID]),
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
        numbers += [label, _numbers(columns[name])]
    size = ["}, segmentSizeInBytes=", _numbers(columns["SegmentSizeInBytes"]), ", "]
    empty = [", txnIdxEmpty=", _txn_idx_empty(columns)] if text.txn_idx_empty else []
    epochs = [", segmentLeaderEpochs={", _epochs(columns["SegmentLeaderEpochs"])]
    return [*identity, *numbers, *epochs, *size, *custom, "state=", states, *empty]


def _closing(columns: Columns) -> list[Text]:
    times, brokers = columns["EventTimestampMs"], columns["BrokerId"]
    return [", eventTimestampMs=", _numbers(times), ", brokerId=", _numbers(brokers)]


def _partitions(group: EventGroup, before: str, after: str) -> pa.StringArray:
    texts = text_array([f"{before}{partition}{after}" for partition in group.partitions])
    return texts.take(number_array(group.partition_index))


def _custom_metadata(columns: Columns) -> Text:
    spans: Spans | None = columns.get("CustomMetadata")
    if spans is None or (spans.starts == NULL).all():
        return custom_metadata_text(None)
    some, none = custom_metadata_text(b"").split("0"), custom_metadata_text(None)
    lengths = _joined([some[0], _numbers(spans.ends - spans.starts), some[1]])
    return pc.if_else(flag_array(spans.starts == NULL), text_scalar(none), lengths)


def _txn_idx_empty(columns: Columns) -> Text:
    names = ["false", "true"]
    return _choice(columns["TxnIndexEmpty"], names) if "TxnIndexEmpty" in columns else names[False]


def _epochs(epochs: Lists) -> pa.StringArray:
    pairs = _joined([_numbers(epochs.elements["LeaderEpoch"]), "=", _numbers(epochs.elements["Offset"])])
    if isinstance(pairs, pa.StringScalar):
        pairs = pa.repeat(pairs, int(epochs.bounds[-1]))  # one text for all
    if len(pairs) == len(epochs.bounds) - 1:
        return pairs  # one epoch in each segment
    lists = pa.ListArray.from_arrays(number_array(epochs.bounds.astype(np.int32)), pairs)
    return pc.binary_join(lists, text_scalar(", "))


def _numbers(values: NDArray[Any]) -> Text:
    if len(values) and values[0] == values[-1] and (values == values[0]).all():
        return str(values[0])
    return pc.cast(number_array(values), pa.string())


def _choice(values: NDArray[Any], names: list[str]) -> pa.StringArray:
    return text_array(names).take(number_array(values.astype(np.int8)))


def _joined(parts: Iterable[Text]) -> pa.StringArray:
    """The parts joined row by row; those that are one text for all rows are joined first."""
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    columns = (text_scalar(part) if isinstance(part, str) else part for part in merged)
    return pc.binary_join_element_wise(*columns, text_scalar(""))


def in_order(lines: list[pa.StringArray], rows: list[Ints]) -> memoryview:
    """The lines of several groups by rising row, as one run of bytes."""
    order = np.argsort(np.concatenate(rows), kind="stable")
    together = pa.concat_arrays(lines)
    if (order[1:] < order[:-1]).any():
        together = together.take(number_array(order))
    bounds = np.frombuffer(together.buffers()[1], np.int32)
    first, last = bounds[together.offset], bounds[together.offset + len(together)]
    return memoryview(together.buffers()[2])[first:last]
