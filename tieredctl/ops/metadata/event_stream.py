"""Reads events from any metadata source, in order, and collects findings on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from tieredctl.errors import DecodeError
from tieredctl.formats.metadata_records import decode_event
from tieredctl.formats.record_chunks import NO_VALUE, RecordChunk
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadataSnapshot
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.compaction import COMPACTED, CompactionSigns
from tieredctl.ops.metadata.coverage import MetadataCoverage, MetadataPlaces
from tieredctl.ports.metadata_source import (
    CUT_SHORT,
    EVENTS_LOST,
    METADATA_TOPIC,
    MetadataSource,
    WitnessedSource,
    events_lost,
)
from tieredctl.process.progress import note_more

if TYPE_CHECKING:
    from tieredctl.formats.metadata_columns import EventGroup
    from tieredctl.formats.windows import Bytes, Ints
    from tieredctl.ops.metadata.as_of import AsOf
    from tieredctl.ops.metadata.event_filter import EventFilter

_MOST_NAMED = 10_000
"""Records of a metadata partition that cannot be decoded, each with a finding of its own."""

_DAMAGE = (FindingCode.BATCH_CORRUPT, FindingCode.OFFSETS_OUT_OF_ORDER, FindingCode.METADATA_CONFLICT)
_NO_VALUE = DecodeError("no value", 0)


class EventStream:
    """The events of some or all metadata partitions, by partition, then offset."""

    def __init__(
        self,
        source: MetadataSource,
        *,
        metadata_partition: int | None = None,
        as_of: AsOf | None = None,
        only: EventFilter | None = None,
        from_offsets: Mapping[int, int] | None = None,
        places: MetadataPlaces | None = None,
    ) -> None:
        """`only`: the events that are meant, or may be.
        `from_offsets`: where to begin (inclusive) in each metadata partition; at its beginning where not named.
        `places`: what was seen before those offsets; this adds to it."""
        self.source = source
        self.findings: list[Finding] = source.findings()
        """Grows while the stream is read."""
        self._undecodable: dict[int, int] = {}
        self._rest: dict[int, dict[str, object]] = {}
        self._as_of = as_of
        self._only = only
        self._past_ends: dict[int, int] = {}
        self._from_offsets = from_offsets or {}
        self._is_restricted = metadata_partition is not None
        self._metadata_partitions = source.metadata_partitions() if metadata_partition is None else [metadata_partition]
        self._places = MetadataPlaces() if places is None else places
        self._missing: Finding | None = None
        self._without_events: set[TopicIdPartition] = set()
        self.compaction = CompactionSigns()
        """What the middle of the logs that were read so far lacks."""
        if metadata_partition is not None:
            self.findings = [f for f in self.findings if _concerns(f, metadata_partition)]
        self._say_what_is_missing()

    @property
    def coverage(self) -> MetadataCoverage:
        """The metadata partitions that are here, by the source and by all that was read so far."""
        return self._places.coverage(self.source.metadata_partitions(), self.source.partition_count)

    @property
    def partitions(self) -> set[TopicIdPartition]:
        """Every user partition that an event named so far."""
        return {partition for partition, _ in self.places}

    @property
    def places(self) -> Set[tuple[TopicIdPartition, int]]:
        """In which metadata partitions each user partition's events were so far."""
        return self._places.seen

    def chunks(self) -> Iterator[tuple[int, RecordChunk]]:
        """Records that are not decoded yet, each chunk with its metadata partition."""
        for metadata_partition in self._metadata_partitions:
            from_offset = self._from_offsets.get(metadata_partition, 0)
            start = self.start_offset(metadata_partition)
            is_damaged = any(_is_damage(finding, metadata_partition) for finding in self.findings)
            compaction = self.compaction.begin(metadata_partition, start, is_damaged=is_damaged)
            for chunk in self.source.chunks(metadata_partition, from_offset):
                self.findings += chunk.findings
                compaction.take(chunk)
                there = self.cut(metadata_partition, chunk)
                if self._as_of is not None and len(there):
                    self._past_ends[metadata_partition] = int(there.offsets[-1]) + 1
                note_more("metadata records read", len(there))
                yield metadata_partition, there if self._only is None else self._only.of(there)
            compaction.end(self.source.offset_range(metadata_partition).end)
            if (finding := compaction.finding()) is not None and not self._is_said(finding):
                self.findings.append(finding)
        self._say_what_is_missing()
        self._say_whose_events_are_lost()

    def start_offset(self, metadata_partition: int) -> int:
        """From where (inclusive) its events are read: the start of the log, or where they are to begin."""
        return max(self.source.offset_range(metadata_partition).start, self._from_offsets.get(metadata_partition, 0))

    def end_offset(self, metadata_partition: int) -> int:
        """Up to where (exclusive) its events go, once they were read: the end of the log, or of what was there at the
        point in the past."""
        if self._as_of is None:
            return self.source.offset_range(metadata_partition).end
        return self._past_ends.get(metadata_partition, 0)

    def cut(self, metadata_partition: int, chunk: RecordChunk) -> RecordChunk:
        """The records of a chunk that were there at the point in the past."""
        return chunk if self._as_of is None else self._as_of.cut(metadata_partition, chunk)

    def not_explained(self, findings: Iterable[Finding]) -> list[Finding]:
        """Replay's findings, without those that only missing events explain, once all was read."""
        return [finding for finding in findings if not self.compaction.explains(finding)]

    @property
    def has_lost_events(self) -> bool:
        """Whether some events are gone from the logs that were read."""
        return bool(self._partitions_that_lost_events() or self._without_events)

    @property
    def how_events_were_lost(self) -> FindingCode:
        """The code of the finding that says so."""
        if self.compaction.shown:
            return COMPACTED
        return EVENTS_LOST if self._without_events else CUT_SHORT

    def may_have_lost(self, partition: TopicIdPartition) -> bool:
        """Whether an event of a user partition may be gone from the logs that were read."""
        if partition in self._without_events:
            return True
        shown = self._partitions_that_lost_events()
        if not shown:
            return False
        own = {number for number in self.compaction.by_partition if (partition, number) in self._places.seen}
        return not own or not own.isdisjoint(shown)

    def _partitions_that_lost_events(self) -> set[int]:
        """The metadata partitions whose logs lack events in their middle, or at their end."""
        cut = (finding for finding in self.findings if finding.code == CUT_SHORT)
        return self.compaction.shown.union(*map(_metadata_partitions, cut))

    def records(self) -> Iterator[EventRecord]:
        """Every event that can be decoded."""
        for metadata_partition, chunk in self.chunks():
            yield from self.decode(metadata_partition, chunk, range(len(chunk)))

    def decode(self, metadata_partition: int, chunk: RecordChunk, rows: Sequence[int]) -> Iterator[EventRecord]:
        """The events of some rows of a chunk; a row that cannot be decoded becomes a finding."""
        for row in rows:
            offset, start = int(chunk.offsets[row]), chunk.starts[row]
            if start == NO_VALUE:
                self._note_no_value(metadata_partition, offset, chunk.tombstone_keys.get(offset))
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
        """Reported first, as soon as it is known; a caller that asked for one metadata partition misses none."""
        if self._is_restricted:
            return
        if self._missing is not None:
            self.findings.remove(self._missing)
        self._missing = self.coverage.finding()
        if self._missing is not None:
            self.findings.insert(0, self._missing)

    def _say_whose_events_are_lost(self) -> None:
        """Asks the logs of user partitions beside the metadata, which nobody compares with a part of it or its past."""
        is_a_part = self._is_restricted or self._only is not None or self._as_of is not None
        if is_a_part or not isinstance(self.source, WitnessedSource):
            return
        coverage = self.coverage
        lost = self.source.tiered_besides(self.partitions)
        lost = [one for one in lost if not coverage.may_be_elsewhere(one.topic_id, one.partition)]
        self._without_events.update(lost)
        if lost and not self._is_said(finding := events_lost(lost)):
            self.findings.append(finding)

    def _is_said(self, finding: Finding) -> bool:
        return any((one.code, one.subject) == (finding.code, finding.subject) for one in self.findings)

    def _note_no_value(self, metadata_partition: int, offset: int, key: bytes | None) -> None:
        if key is None:
            self._report_undecodable(metadata_partition, offset, _NO_VALUE)
        else:
            self.compaction.begin(metadata_partition, offset).note_tombstone(offset, key)

    def _report_undecodable(self, metadata_partition: int, offset: int, error: DecodeError) -> None:
        """A finding for each, up to a limit, to save memory; the rest is counted in one finding."""
        reported = self._undecodable.get(metadata_partition, 0)
        self._undecodable[metadata_partition] = reported + 1
        if reported < _MOST_NAMED:
            self.findings.append(_undecodable(metadata_partition, offset, error))
            return
        evidence: dict[str, object] = {"metadataPartition": metadata_partition, "metadataOffset": offset, "records": 0}
        if reported == _MOST_NAMED:
            self._rest[metadata_partition] = evidence
            subject = f"{METADATA_TOPIC}-{metadata_partition}@{offset}"
            message = f"this record and others after it cannot be decoded, after {_MOST_NAMED} others that are listed"
            about = MetadataSubject(metadata_partition, offset)
            self.findings.append(Finding(FindingCode.EVENT_UNDECODABLE, subject, message, evidence, about=about))
        self._rest[metadata_partition]["records"] = reported + 1 - _MOST_NAMED


def _concerns(finding: Finding, metadata_partition: int) -> bool:
    return _metadata_partitions(finding) <= {metadata_partition}


def _metadata_partitions(finding: Finding) -> set[int]:
    """The one that the finding is about; none where it is about the source as a whole."""
    return {finding.about.metadata_partition} if isinstance(finding.about, MetadataSubject) else set()


def _is_damage(finding: Finding, metadata_partition: int) -> bool:
    """Whether an export says that its source was damaged, which leaves gaps in it."""
    return finding.code in _DAMAGE and metadata_partition in _metadata_partitions(finding)


def _undecodable(metadata_partition: int, offset: int, error: DecodeError) -> Finding:
    return Finding(
        FindingCode.EVENT_UNDECODABLE,
        f"{METADATA_TOPIC}-{metadata_partition}@{offset}",
        f"{error.message}; a broker's reader of this topic stops here",
        {"metadataPartition": metadata_partition, "metadataOffset": offset, "position": error.position},
        about=MetadataSubject(metadata_partition, offset),
    )
