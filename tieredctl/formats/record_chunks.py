"""Records of a metadata partition as parallel columns over one buffer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tieredctl.model.findings import Finding

NO_VALUE = -1


class MetadataRecord(NamedTuple):
    """A record of the metadata topic, not decoded. `value` is None for a tombstone, which no released Kafka writes;
    `tombstone_key` is the key whose events it deletes."""

    offset: int
    timestamp_ms: int
    value: bytes | None
    tombstone_key: bytes | None = None


Column = Any
"""A sequence of int: a list, or a numpy array, which the type checker does not accept as a Sequence."""


@dataclass(slots=True)
class RecordChunk:
    """Consecutive records of one metadata partition, as parallel sequences (lists, or numpy arrays on bulk paths).

    The value of record i is `buffer[starts[i]:ends[i]]`; `starts[i]` is NO_VALUE for a tombstone. `findings` is what
    was wrong with the log between the previous records and these.
    """

    buffer: bytes
    offsets: Column
    timestamps: Column
    starts: Column
    ends: Column
    findings: list[Finding] = field(default_factory=list)
    unkeyed: int | None = None
    """How many of the records have no key; None if the source does not report it."""
    last_unkeyed: int | None = None
    """The offset of the last of these; None without one, and if the source does not report it."""
    tombstone_keys: Mapping[int, bytes] = field(default_factory=dict)
    """By offset, the keys of those tombstones that have one."""

    def __len__(self) -> int:
        return len(self.offsets)

    def starting_at(self, offset: int) -> RecordChunk:
        """The chunk's records with this offset or a higher one."""
        first = bisect_left(self.offsets, offset)
        offsets, timestamps, starts, ends = (
            column[first:] for column in (self.offsets, self.timestamps, self.starts, self.ends)
        )
        return RecordChunk(
            self.buffer, offsets, timestamps, starts, ends, self.findings, tombstone_keys=self.tombstone_keys
        )

    def at(self, rows: Any) -> RecordChunk:
        """Some of its records, by an array of their row numbers, as columns of numpy."""
        import numpy as np

        columns = (self.offsets, self.timestamps, self.starts, self.ends)
        offsets, timestamps, starts, ends = (np.asarray(column, np.int64)[rows] for column in columns)
        return RecordChunk(
            self.buffer, offsets, timestamps, starts, ends, self.findings, tombstone_keys=self.tombstone_keys
        )

    def records(self) -> Iterator[MetadataRecord]:
        for offset, timestamp, start, end in zip(self.offsets, self.timestamps, self.starts, self.ends, strict=True):
            if start == NO_VALUE:
                yield MetadataRecord(int(offset), int(timestamp), None, self.tombstone_keys.get(int(offset)))
            else:
                yield MetadataRecord(int(offset), int(timestamp), self.buffer[start:end])


def chunk_of(records: Iterable[MetadataRecord], findings: Iterable[Finding] = ()) -> RecordChunk:
    """A chunk of records that did not come out of one buffer."""
    chunk = RecordChunk(b"", [], [], [], [], list(findings))
    starts: list[int] = []
    ends: list[int] = []
    rows = list(records)
    position = 0
    for record in rows:
        starts.append(NO_VALUE if record.value is None else position)
        position += len(record.value or b"")
        ends.append(position)
    chunk.buffer = b"".join(record.value or b"" for record in rows)
    chunk.offsets = [record.offset for record in rows]
    chunk.timestamps = [record.timestamp_ms for record in rows]
    chunk.starts, chunk.ends = starts, ends
    chunk.tombstone_keys = {record.offset: record.tombstone_key for record in rows if record.tombstone_key is not None}
    return chunk
