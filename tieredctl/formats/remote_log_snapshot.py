"""A user partition's segments as a broker of Kafka 3.1 to 3.5 knew them: `remote_log_snapshot`.

Source: RemoteLogMetadataSnapshotFile. A segment is written once for each of its epochs; topic and partition are those
of the folder.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.schema import Field, Primitive, Struct
from tieredctl.formats.varints import Buffer
from tieredctl.model.events import RemoteLogSegmentMetadataSnapshot

REMOTE_LOG_SNAPSHOT_HEADER = Struct(
    "RemoteLogMetadataSnapshotHeader",
    (
        Field("version", Primitive.INT16),
        Field("metadataPartition", Primitive.INT32),
        Field("metadataPartitionOffset", Primitive.INT64),
        Field("entryCount", Primitive.INT32),
    ),
)
REMOTE_LOG_SNAPSHOT_VERSION = 0

_HEADER = struct.Struct(REMOTE_LOG_SNAPSHOT_HEADER.fixed_format)
_LENGTH = struct.Struct(">i")


class RemoteLogSnapshot(NamedTuple):
    """Segments as of an offset, inclusive, of a metadata partition."""

    metadata_partition: int
    metadata_partition_offset: int
    segments: Sequence[RemoteLogSegmentMetadataSnapshot]


def read_remote_log_snapshot(data: Buffer) -> RemoteLogSnapshot | None:
    """What the file holds; None where it is empty, as Kafka 3.6 and 3.7 leave it. Raises DecodeError."""
    if len(data) == 0:
        return None
    if len(data) < _HEADER.size:
        raise DecodeError(f"{len(data)} bytes are too few for a remote log snapshot", 0)
    version, metadata_partition, offset, count = _HEADER.unpack_from(data)
    if version != REMOTE_LOG_SNAPSHOT_VERSION:
        raise DecodeError(f"remote log snapshot has version {version}, not {REMOTE_LOG_SNAPSHOT_VERSION}", 0)
    segments = []
    position = _HEADER.size
    while position < len(data):
        segment, position = _read_entry(memoryview(data), position)
        segments.append(segment)
    if len(segments) != count:
        raise DecodeError(f"remote log snapshot claims {count} entries where {len(segments)} are", _HEADER.size - 4)
    return RemoteLogSnapshot(metadata_partition, offset, segments)


def encode_remote_log_snapshot(snapshot: RemoteLogSnapshot) -> bytes:
    """The file's bytes, each segment in the form that it names."""
    parts = [
        _HEADER.pack(
            REMOTE_LOG_SNAPSHOT_VERSION,
            snapshot.metadata_partition,
            snapshot.metadata_partition_offset,
            len(snapshot.segments),
        )
    ]
    for segment in snapshot.segments:
        entry = encode_event(segment)
        parts += (_LENGTH.pack(len(entry)), entry)
    return b"".join(parts)


def _read_entry(data: memoryview, position: int) -> tuple[RemoteLogSegmentMetadataSnapshot, int]:
    if position + _LENGTH.size > len(data):
        raise DecodeError("remote log snapshot ends inside an entry's length", position)
    length = _LENGTH.unpack_from(data, position)[0]
    start, end = position + _LENGTH.size, position + _LENGTH.size + length
    if length < 0 or end > len(data):
        raise DecodeError(f"entry claims {length} bytes where {len(data) - start} are left", position)
    try:
        event = decode_event(data[start:end])
    except DecodeError as error:
        raise DecodeError(error.reason, start + error.position) from None
    if not isinstance(event, RemoteLogSegmentMetadataSnapshot):
        raise DecodeError(f"entry is a {type(event).__name__}", start)
    return event, end
