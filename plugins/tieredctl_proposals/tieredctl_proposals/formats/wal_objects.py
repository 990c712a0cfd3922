"""A combined object: an index, then the batches of each segment, one after the other (KIP-1176).

The proposal stores the batches alone. Here a control batch goes before them whose one record has the object's own
metadata as its value, so that an object can be read without the metadata topic. All of it stays record batches of magic
2, one after another; readers of batches pass over control batches of a type that they do not know.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import (
    HEADER_BYTES,
    Attributes,
    Record,
    crc_matches,
    encode_batch,
    read_batch_header,
    read_control_type,
    read_records,
)
from tieredctl.formats.varints import Buffer
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl_proposals.formats.wal_records import decode_wal_event, encode_wal_event
from tieredctl_proposals.model.wal_events import (
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
)

WAL_INDEX = 1176
"""The type of the control record."""
INDEX_HEADER_BYTES = HEADER_BYTES
"""As many of an object's first bytes tell how long its index is."""
_KEY = struct.pack(">hh", 0, WAL_INDEX)


class CombinedObject(NamedTuple):
    """An object's bytes, and the event that says where each segment is in them."""

    uploaded: RemoteWalCombinedLogSegmentMetadataUpdate
    data: bytes


def combined_object(
    begun: RemoteWalCombinedLogSegmentMetadata, segments: Sequence[bytes], event_timestamp_ms: int
) -> CombinedObject:
    """The object of an upload that was begun; `segments` are the batches of its entries, in their order. Time in ms."""
    uploaded = _uploaded(begun, segments, 0, event_timestamp_ms)
    # Positions have a fixed width, so that the index is as long with others.
    uploaded = _uploaded(begun, segments, len(_index(uploaded)), event_timestamp_ms)
    return CombinedObject(uploaded, b"".join((_index(uploaded), *segments)))


def index_length(start: Buffer) -> int | None:
    """How many bytes of an object its index takes, by its first INDEX_HEADER_BYTES; None where it has no index.

    Raises DecodeError where the bytes do not begin a batch.
    """
    header = read_batch_header(start, 0, len(start))
    return header.size if header.is_control else None


def read_index(data: Buffer) -> RemoteWalCombinedLogSegmentMetadataUpdate:
    """The metadata in an index that lies wholly in the buffer. Raises DecodeError for damage, or another batch."""
    header = read_batch_header(data, 0, len(data))
    if header.size > len(data):
        raise DecodeError(f"the index ends after {len(data)} of {header.size} bytes", 0)
    if not header.is_control or not crc_matches(data, 0, header):
        raise DecodeError("the first batch is not a sound index", 0)
    records = list(read_records(data, 0, header)) if header.records_count == 1 else []
    if not records or read_control_type(records[0]) != WAL_INDEX:
        raise DecodeError("the first batch is not an index", 0)
    event = decode_wal_event(records[0].value or b"")
    if not isinstance(event, RemoteWalCombinedLogSegmentMetadataUpdate):
        raise DecodeError("the index is not about an uploaded object", 0)
    if event.entries[0].start_file_position != header.size:
        raise DecodeError(f"the first segment begins at {event.entries[0].start_file_position}, not after the index", 0)
    return event


def _index(uploaded: RemoteWalCombinedLogSegmentMetadataUpdate) -> bytes:
    record = Record(0, uploaded.event_timestamp_ms, _KEY, encode_wal_event(uploaded))
    return encode_batch([record], attributes=Attributes.CONTROL)


def _uploaded(
    begun: RemoteWalCombinedLogSegmentMetadata, segments: Sequence[bytes], position: int, event_timestamp_ms: int
) -> RemoteWalCombinedLogSegmentMetadataUpdate:
    entries = list[RemoteLogSegmentMetadataEntry]()
    for entry, segment in zip(begun.entries, segments, strict=True):
        end = position + len(segment)
        entries.append(replace(entry, start_file_position=position, end_file_position=end - 1))
        position = end
    return RemoteWalCombinedLogSegmentMetadataUpdate(
        combined_segment_id=begun.combined_segment_id,
        entries=tuple(entries),
        broker_id=begun.broker_id,
        event_timestamp_ms=event_timestamp_ms,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        custom_metadata=begun.custom_metadata,
    )
