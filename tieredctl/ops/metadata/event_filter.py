"""Filters records of the metadata topic, by what they are about and when they were appended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.metadata_columns import decode_columns
from tieredctl.formats.metadata_records import decode_event
from tieredctl.formats.record_chunks import NO_VALUE, RecordChunk
from tieredctl.formats.windows import Ints
from tieredctl.model.events import EventRecord, MetadataEvent, RemoteLogSegmentMetadataSnapshot
from tieredctl.model.quantities import time_ms
from tieredctl.ops.metadata.selection import Selection


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filters that must all hold. `since_ms` and `until_ms` are timestamps of records, inclusive; None is no limit.

    A record that cannot be decoded may be of any topic: only its timestamp leaves it out.
    """

    selection: Selection = Selection()
    since_ms: int | None = None
    until_ms: int | None = None

    @classmethod
    def given(cls, selection: Selection, since: str | None, until: str | None) -> EventFilter:
        """A filter with times as people write them. Raises TieredctlError `usage` for anything else, and for an empty
        span."""
        times = EventFilter(selection, *(None if text is None else time_ms(text) for text in (since, until)))
        if times.since_ms is not None and times.until_ms is not None and times.since_ms > times.until_ms:
            raise TieredctlError(ErrorCode.USAGE, "--since is later than --until.")
        return times

    def has(self, record: EventRecord) -> bool:
        """Whether an event is meant."""
        return (
            self._is_of_selection(record.event)
            and (self.since_ms is None or record.timestamp_ms >= self.since_ms)
            and (self.until_ms is None or record.timestamp_ms <= self.until_ms)
        )

    def of(self, chunk: RecordChunk) -> RecordChunk:
        """The records of a chunk that are meant, or may be."""
        if self.since_ms is not None or self.until_ms is not None:
            timestamps = np.asarray(chunk.timestamps, np.int64)
            least, greatest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
            since = least if self.since_ms is None else self.since_ms
            until = greatest if self.until_ms is None else self.until_ms
            chunk = chunk.at(np.flatnonzero((timestamps >= since) & (timestamps <= until)))
        return chunk if self.selection == Selection() else chunk.at(self._rows_of_selection(chunk))

    def _rows_of_selection(self, chunk: RecordChunk) -> Ints:
        starts, ends = (np.asarray(column, np.int64) for column in (chunk.starts, chunk.ends))
        groups, left = decode_columns(np.frombuffer(chunk.buffer, np.uint8), starts, ends)
        keep = np.zeros(len(starts), np.bool_)
        for group in groups:
            keep[group.rows] = np.array([self.selection.has(one) for one in group.partitions])[group.partition_index]
        keep[left] = [self._may_be_of_selection(chunk, row) for row in left.tolist()]
        return np.flatnonzero(keep)

    def _may_be_of_selection(self, chunk: RecordChunk, row: int) -> bool:
        start = int(chunk.starts[row])
        if start == NO_VALUE:
            return True
        try:
            return self._is_of_selection(decode_event(chunk.buffer[start : int(chunk.ends[row])]))
        except DecodeError:
            return True

    def _is_of_selection(self, event: MetadataEvent) -> bool:
        return isinstance(event, RemoteLogSegmentMetadataSnapshot) or self.selection.has(event.topic_id_partition)
