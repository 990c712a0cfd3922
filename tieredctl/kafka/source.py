"""The seam between where metadata records come from and what is done with them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding

METADATA_TOPIC = "__remote_log_metadata"
NO_VALUE = -1
CUT_SHORT = FindingCode.METADATA_CUT_SHORT
"""The code of the finding that a log lacks its end."""


class MetadataRecord(NamedTuple):
    """A record of the metadata topic, not decoded. `value` is None for a tombstone, which no released Kafka writes;
    `tombstone_key` is which key's events it deletes."""

    offset: int
    timestamp_ms: int
    value: bytes | None
    tombstone_key: bytes | None = None


class OffsetRange(NamedTuple):
    """The offsets that a metadata partition holds: from `start`, up to, not including, `end`."""

    start: int
    end: int


Column = Any
"""A sequence of int: a list, or a numpy array, which is none to the type checker."""


@dataclass(slots=True)
class RecordChunk:
    """Consecutive records of one metadata partition, as parallel sequences (lists, or numpy arrays on bulk paths).

    The value of record i is `buffer[starts[i]:ends[i]]`; `starts[i]` is NO_VALUE for a tombstone. `findings` is what
    was wrong with the log between the records before and these.
    """

    buffer: bytes
    offsets: Column
    timestamps: Column
    starts: Column
    ends: Column
    findings: list[Finding] = field(default_factory=list)
    unkeyed: int | None = None
    """How many of the records have no key; None where the source does not tell."""
    tombstone_keys: Mapping[int, bytes] = field(default_factory=dict)
    """By offset, the keys of those tombstones that have one."""

    def __len__(self) -> int:
        return len(self.offsets)

    def behind(self, offset: int) -> RecordChunk:
        """What of it has this offset or a higher one."""
        first = bisect_left(self.offsets, offset)
        offsets, timestamps, starts, ends = (
            column[first:] for column in (self.offsets, self.timestamps, self.starts, self.ends)
        )
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


def truncated(metadata_partition: int, start: int) -> Finding:
    """What is said of a metadata partition whose log begins above offset 0."""
    return Finding(
        FindingCode.METADATA_TRUNCATED,
        f"{METADATA_TOPIC}-{metadata_partition}",
        f"the log begins at offset {start}: events below it are lost, and what they said is unknown",
        {"metadataPartition": metadata_partition, "logStartOffset": start},
    )


def cut_short(metadata_partition: int, end: int, least_end: int) -> Finding:
    """What is said of a metadata partition whose log ends before the offset up to which it is known to have gone."""
    return Finding(
        CUT_SHORT,
        f"{METADATA_TOPIC}-{metadata_partition}",
        f"the log ends at offset {end}, and its broker's checkpoints know it up to {least_end}: events are lost",
        {"metadataPartition": metadata_partition, "logEndOffset": end, "leastLogEndOffset": least_end},
    )


class MetadataSource(Protocol):
    """Somewhere that holds `__remote_log_metadata`: a live topic, brokers' log directories, an export.

    All sources give the same records for the same events, up to where each partition ended when the source was made,
    or advanced last. To be closed.
    """

    @property
    def cluster_id(self) -> str | None:
        """Whose metadata it is, where that is known here."""
        ...

    @property
    def metadata_topic_id(self) -> str | None:
        """The id of the topic itself, where that is known here: another one is another topic of the same name."""
        ...

    @property
    def partition_count(self) -> int | None:
        """How many partitions the topic has, those that are not here included; None where nothing here tells."""
        ...

    def describe(self) -> dict[str, object]:
        """What this is and how far it was read, for the `source` of a JSON document."""
        ...

    def metadata_partitions(self) -> list[int]:
        """The metadata partitions that can be read here, ascending."""
        ...

    def findings(self) -> list[Finding]:
        """What was found odd before any record was read."""
        ...

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        """A partition's records of `from_offset` (inclusive) and above, by rising offset. Streams."""
        ...

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        """From where to where a partition was read; of one that was not read yet, the end may be its start."""
        ...

    def advance(self) -> bool:
        """Looks again, over the connections that are there: all answers are of now from here on.

        Returns whether anything may differ from before. Raises TieredctlError as making the source does, and leaves
        it as it was then.
        """
        ...

    def close(self) -> None:
        """Ends connections and closes files."""
        ...
