"""Reads batches back out of combined objects, in ranges (KIP-1176, `RemoteWalStorageManager.fetchLogSegment`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.record_batches import HEADER_BYTES, BatchHeader, crc_matches, read_batch_header
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.formats.wal_objects import INDEX_HEADER_BYTES, index_length, read_index
from tieredctl_proposals.model.wal_events import RemoteWalCombinedLogSegmentMetadataUpdate
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.replayed import KnownWalSegment

_AT_ONCE = 1 << 16
"""How much is read to find a batch; most indexes are shorter."""


class FoundBatches(NamedTuple):
    """Whole batches, one after another. `position` is that of the first in the combined object, `data` all of them."""

    key: str
    position: int
    data: bytes


def fetch_log_segment(
    store: ObjectStore, segment: KnownWalSegment, start_position: int = 0, end_position: int | None = None
) -> bytes:
    """Bytes of a segment; positions are counted in the segment, both inclusive. Ends with the segment at the latest.

    Raises TieredctlError: `object-missing`, `undecodable` where the events do not say where the segment is, or the
    object is shorter than they say.
    """
    first, last = _bounds(segment)
    stop = last if end_position is None else min(last, first + end_position)
    start = first + start_position
    if start > stop:
        return b""
    key = object_key(segment.combined_segment_id)
    data = store.read(key, start, stop + 1)
    if len(data) != stop + 1 - start:
        raise _damaged(f"{key} ends at {start + len(data)}, inside segment {segment.segment_id}")
    return data


def fetch_from_offset(store: ObjectStore, segment: KnownWalSegment, offset: int, most_bytes: int) -> FoundBatches:
    """The batches from the one with an offset on: at least that one, and further ones up to `most_bytes`, in few reads.

    Where compaction left no record of that offset, from the next one on. Raises TieredctlError as `fetch_log_segment`
    does, and `undecodable` where a batch is not sound, or none reaches the offset.
    """
    first, last = _bounds(segment)
    window = _Window(store, segment)
    position = 0
    try:
        while True:
            if first + position > last:
                raise _damaged(f"segment {segment.segment_id} has no record from offset {offset} on")
            header = window.header(position)
            if header.last_offset >= offset:
                break
            position += header.size
        data = b"".join(window.batches(position, max(most_bytes, header.size)))
    except DecodeError as error:
        raise _damaged(f"segment {segment.segment_id} at {error.position}: {error}") from None
    return FoundBatches(object_key(segment.combined_segment_id), first + position, data)


def read_object_index(store: ObjectStore, stored: StoredObject) -> RemoteWalCombinedLogSegmentMetadataUpdate | None:
    """What an object says is in it; None for one of the proposal's own form, which has data alone.

    Raises DecodeError where the object does not begin with a batch, its index is damaged, or the object does not end
    with its last segment.
    """
    start = store.read(stored.key, 0, _AT_ONCE)
    length = index_length(start[:INDEX_HEADER_BYTES])
    if length is None:
        return None
    if length > stored.size:
        raise DecodeError(f"the index claims {length} of {stored.size} bytes", 0)
    index = start[:length] if length <= len(start) else start + store.read(stored.key, len(start), length)
    index_read = read_index(index)
    end = index_read.entries[-1].end_file_position + 1
    if end != stored.size:
        raise DecodeError(f"the object has {stored.size} bytes, and its segments end at {end}", 0)
    if object_key(index_read.combined_segment_id) != stored.key.rpartition("/")[2]:
        raise DecodeError(f"the index is that of object {index_read.combined_segment_id}", 0)
    return index_read


class _Window:
    """The part of a segment that was read last."""

    def __init__(self, store: ObjectStore, segment: KnownWalSegment) -> None:
        self._store = store
        self._segment = segment
        self._size = segment.metadata.segment_size_in_bytes
        self._start = 0
        self._data = b""

    def header(self, position: int) -> BatchHeader:
        self._demand(position, HEADER_BYTES)
        inside = position - self._start
        header = read_batch_header(self._data, inside, len(self._data))
        if position + header.size > self._size:
            raise DecodeError("a batch that reaches beyond its segment", position)
        # Offsets and leader epoch lie outside the CRC.
        metadata = self._segment.metadata
        if not metadata.start_offset <= header.base_offset <= header.last_offset <= metadata.end_offset:
            raise DecodeError(f"a batch of offsets {header.base_offset} to {header.last_offset}", position)
        if header.partition_leader_epoch not in dict(metadata.segment_leader_epochs):
            raise DecodeError(f"a batch of leader epoch {header.partition_leader_epoch}", position)
        return header

    def batches(self, position: int, most_bytes: int) -> Iterator[bytes]:
        """Sound batches from a position on, of so many bytes together."""
        end = min(self._size, position + most_bytes)
        self._demand(position, end - position)
        while position < self._size:
            header = self.header(position)
            inside = position - self._start
            if position + header.size > end:
                return
            if not crc_matches(self._data, inside, header):
                raise DecodeError("a batch whose CRC does not match", position)
            yield self._data[inside : inside + header.size]
            position += header.size

    def _demand(self, position: int, count: int) -> None:
        count = min(count, self._size - position)
        if self._start <= position and position + count <= self._start + len(self._data):
            return
        self._start = position
        self._data = fetch_log_segment(self._store, self._segment, position, position + max(count, _AT_ONCE) - 1)


def _bounds(segment: KnownWalSegment) -> tuple[int, int]:
    if not segment.is_readable:
        raise _damaged(f"the events of segment {segment.segment_id} do not say where it is")
    return segment.start_file_position, segment.end_file_position


def _damaged(message: str) -> TieredctlError:
    return TieredctlError(ErrorCode.UNDECODABLE, message)
