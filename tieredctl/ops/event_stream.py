"""Reads events out of any metadata source, in order, and keeps what was odd on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_records import decode_event
from tieredctl.kafka.source import METADATA_TOPIC, NO_VALUE, MetadataRecord, MetadataSource, RecordChunk, chunk_of
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadataSnapshot
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata_coverage import MetadataCoverage, MetadataPlaces

if TYPE_CHECKING:
    from tieredctl.formats.metadata_columns import EventGroup
    from tieredctl.formats.windows import Bytes, Ints


@dataclass(frozen=True, slots=True)
class AsOf:
    """A point in the past: the last metadata offset to believe in each metadata partition (inclusive; a partition
    that is not named has none), or the last record timestamp in ms (inclusive)."""

    offsets: Mapping[int, int] | None = None
    timestamp_ms: int | None = None

    def covers(self, metadata_partition: int, record: MetadataRecord) -> bool:
        if self.offsets is not None and record.offset > self.offsets.get(metadata_partition, -1):
            return False
        return self.timestamp_ms is None or record.timestamp_ms <= self.timestamp_ms


_MOST_NAMED = 10_000
"""Records of a metadata partition that cannot be decoded, each with a finding of its own."""


_NO_VALUE = DecodeError("no value", 0)


class EventStream:
    """The events of some or all metadata partitions, by partition, then offset."""

    def __init__(
        self,
        source: MetadataSource,
        *,
        metadata_partition: int | None = None,
        as_of: AsOf | None = None,
        from_offsets: Mapping[int, int] | None = None,
        places: MetadataPlaces | None = None,
    ) -> None:
        """`from_offsets`: where to begin (inclusive) in each metadata partition; at its beginning where not named.
        `places`: what was seen below them, which this adds to."""
        self.source = source
        self.findings: list[Finding] = source.findings()
        """Grows while the stream is read."""
        self._undecodable: dict[int, int] = {}
        self._rest: dict[int, dict[str, object]] = {}
        self._as_of = as_of
        self._from_offsets = from_offsets or {}
        self._is_restricted = metadata_partition is not None
        self._metadata_partitions = source.metadata_partitions() if metadata_partition is None else [metadata_partition]
        self._places = MetadataPlaces() if places is None else places
        self._missing: Finding | None = None
        if metadata_partition is not None:
            self.findings = [f for f in self.findings if _concerns(f, metadata_partition)]
        self._say_what_is_missing()

    @property
    def coverage(self) -> MetadataCoverage:
        """Which metadata partitions are here, by the source and by all that was read so far."""
        return self._places.coverage(self.source.metadata_partitions(), self.source.partition_count)

    @property
    def partitions(self) -> set[TopicIdPartition]:
        """Every user partition that an event named so far."""
        return {partition for partition, _ in self._places.seen}

    def chunks(self) -> Iterator[tuple[int, RecordChunk]]:
        """Records that are not decoded yet, each chunk with its metadata partition."""
        for metadata_partition in self._metadata_partitions:
            for chunk in self.source.chunks(metadata_partition, self._from_offsets.get(metadata_partition, 0)):
                self.findings += chunk.findings
                yield metadata_partition, self._cut(metadata_partition, chunk)
        self._say_what_is_missing()

    def records(self) -> Iterator[EventRecord]:
        """Every event that can be decoded."""
        for metadata_partition, chunk in self.chunks():
            yield from self.decode(metadata_partition, chunk, range(len(chunk)))

    def decode(self, metadata_partition: int, chunk: RecordChunk, rows: Sequence[int]) -> Iterator[EventRecord]:
        """The events of some rows of a chunk; a row that cannot be decoded becomes a finding."""
        for row in rows:
            offset, start = int(chunk.offsets[row]), chunk.starts[row]
            if start == NO_VALUE:
                self._report_undecodable(metadata_partition, offset, _NO_VALUE)
                continue
            try:
                event = decode_event(chunk.buffer[start : chunk.ends[row]])
            except DecodeError as error:
                self._report_undecodable(metadata_partition, offset, error)
            else:
                if not isinstance(event, RemoteLogSegmentMetadataSnapshot):
                    self._places.note(metadata_partition, (event.topic_id_partition,))
                yield EventRecord(metadata_partition, offset, int(chunk.timestamps[row]), event)

    def decode_columns(
        self, metadata_partition: int, data: Bytes, starts: Ints, ends: Ints
    ) -> tuple[list[EventGroup], Ints]:
        """The events of a chunk's values as columns, and which rows are left to `decode`."""
        from tieredctl.formats.metadata_columns import decode_columns

        groups, left = decode_columns(data, starts, ends)
        for group in groups:
            self._places.note(metadata_partition, group.partitions)
        return groups, left

    def _say_what_is_missing(self) -> None:
        """Before all else, as early as it is known; who asked for one metadata partition misses none."""
        if self._is_restricted:
            return
        if self._missing is not None:
            self.findings.remove(self._missing)
        self._missing = self.coverage.finding()
        if self._missing is not None:
            self.findings.insert(0, self._missing)

    def _report_undecodable(self, metadata_partition: int, offset: int, error: DecodeError) -> None:
        """A finding for each, until there are so many that they would fill the memory: the rest is counted in one."""
        reported = self._undecodable.get(metadata_partition, 0)
        self._undecodable[metadata_partition] = reported + 1
        if reported < _MOST_NAMED:
            self.findings.append(_undecodable(metadata_partition, offset, error))
            return
        evidence: dict[str, object] = {"metadataPartition": metadata_partition, "metadataOffset": offset, "records": 0}
        if reported == _MOST_NAMED:
            self._rest[metadata_partition] = evidence
            subject = f"{METADATA_TOPIC}-{metadata_partition}@{offset}"
            message = f"this record and others behind it that cannot be decoded, after {_MOST_NAMED} that are named"
            self.findings.append(Finding("event-undecodable", subject, message, evidence))
        self._rest[metadata_partition]["records"] = reported + 1 - _MOST_NAMED

    def _cut(self, metadata_partition: int, chunk: RecordChunk) -> RecordChunk:
        if self._as_of is None:
            return chunk
        as_of = self._as_of
        return chunk_of(record for record in chunk.records() if as_of.covers(metadata_partition, record))


def _concerns(finding: Finding, metadata_partition: int) -> bool:
    return finding.evidence.get("metadataPartition", metadata_partition) == metadata_partition


def _undecodable(metadata_partition: int, offset: int, error: DecodeError) -> Finding:
    return Finding(
        "event-undecodable",
        f"{METADATA_TOPIC}-{metadata_partition}@{offset}",
        f"{error.message}; a broker's reader of this topic stops here",
        {"metadataPartition": metadata_partition, "metadataOffset": offset, "position": error.position},
    )
