"""Finds the part of a metadata partition's history that is gone from the middle of its log, by the log itself.

A broker gives every offset to a record. Where the records that are there leave offsets out, between them, before the
first or after the last, others were removed: by compaction (KIP-1266, which no release has), or with a lost file. What
they said is unknown: an event's predecessor may be gone, and so may all that was ever said of a segment.

A tombstone, a record with a key and without a value, says that the events with its key are to be forgotten. Until
compaction comes they are still there, so that a tombstone of a known key changes nothing; keys that are not known may
have stood for anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from tieredctl.formats.event_keys import is_event_key
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.ports.metadata_source import METADATA_TOPIC

COMPACTED = FindingCode.METADATA_COMPACTED
"""The code of the finding that says so."""


@dataclass(slots=True)
class MetadataCompaction:
    """What one metadata partition's log shows about it. Offsets are inclusive."""

    metadata_partition: int
    next_offset: int | None
    """Which one the next record should have; None where damage hides that."""
    is_damaged: bool = False
    """Whether damage somewhere in the log, in an unknown place, has left gaps too."""
    first_gap: tuple[int, int] | None = None
    missing: int = 0
    """How many offsets no record has."""
    tombstones: int = 0
    unknown_tombstones: int = 0
    first_unknown_tombstone: int | None = None

    @property
    def is_shown(self) -> bool:
        """Whether any of its events are unknown."""
        return bool(self.missing or self.unknown_tombstones)

    def take(self, chunk: RecordChunk) -> None:
        """The next records. Where damage was found with them, it caused the gaps."""
        is_damaged = self.is_damaged or bool(chunk.findings)
        if is_damaged:
            self.next_offset = None
        if not len(chunk):
            return
        first, last = int(chunk.offsets[0]), int(chunk.offsets[-1])
        if self.next_offset is not None:
            self._note_gap(self.next_offset, first - 1)
            if last - first + 1 > len(chunk):
                self.first_gap = self.first_gap or _first_gap(chunk)
                self.missing += last - first + 1 - len(chunk)
        self.next_offset = None if is_damaged else last + 1

    def end(self, end: int) -> None:
        """The log was read up to, not including, this offset."""
        if self.next_offset is not None:
            self._note_gap(self.next_offset, end - 1)

    def note_tombstone(self, offset: int, key: bytes) -> None:
        self.tombstones += 1
        if not is_event_key(key):
            self.unknown_tombstones += 1
            if self.first_unknown_tombstone is None:
                self.first_unknown_tombstone = offset

    def may_lack_predecessor(self, offset: int) -> bool:
        """Whether what is gone may have come before the record at an offset."""
        return self.first_gap is not None and self.first_gap[0] < offset

    def finding(self) -> Finding | None:
        """The finding about it; None where nothing is known to be gone."""
        if not self.is_shown:
            return None
        sentences, evidence = [], dict[str, object](metadataPartition=self.metadata_partition)
        if self.first_gap is not None:
            records = "1 record is" if self.missing == 1 else f"{self.missing} records are"
            sentences.append(f"{records} gone from the log, the first at offset {self.first_gap[0]}")
            evidence |= {"missingRecords": self.missing, "offsets": list(self.first_gap)}
        if self.first_unknown_tombstone is not None:
            have = "1 tombstone has" if self.unknown_tombstones == 1 else f"{self.unknown_tombstones} tombstones have"
            sentences.append(f"{have} a key of an unknown form, the first at offset {self.first_unknown_tombstone}")
            evidence |= {"unknownTombstones": self.unknown_tombstones, "metadataOffset": self.first_unknown_tombstone}
        about = MetadataSubject(self.metadata_partition, self.first_unknown_tombstone, self.first_gap)
        message = f"{'; '.join(sentences)}: what they reported is unknown"
        return Finding(COMPACTED, f"{METADATA_TOPIC}-{self.metadata_partition}", message, evidence, about=about)

    def _note_gap(self, first: int, last: int) -> None:
        if last >= first:
            self.first_gap = self.first_gap or (first, last)
            self.missing += last - first + 1


def _first_gap(chunk: RecordChunk) -> tuple[int, int] | None:
    pairs = pairwise(map(int, chunk.offsets))
    return next(((before + 1, after - 1) for before, after in pairs if after > before + 1), None)


@dataclass(slots=True)
class CompactionSigns:
    """The signs of compaction in every metadata partition that was read."""

    by_partition: dict[int, MetadataCompaction] = field(default_factory=dict)

    def begin(self, metadata_partition: int, offset: int, *, is_damaged: bool = False) -> MetadataCompaction:
        """A partition that is read from an offset on."""
        compaction = MetadataCompaction(metadata_partition, None if is_damaged else offset, is_damaged)
        return self.by_partition.setdefault(metadata_partition, compaction)

    @property
    def shown(self) -> set[int]:
        """The metadata partitions with events that are unknown."""
        return {number for number, one in self.by_partition.items() if one.is_shown}

    def findings(self) -> list[Finding]:
        return [finding for one in self.by_partition.values() if (finding := one.finding()) is not None]

    def explains(self, finding: Finding) -> bool:
        """Whether an event may look illegal only because one before it is gone."""
        about = finding.about
        if finding.code is not FindingCode.EVENT_ILLEGAL or not isinstance(about, MetadataSubject):
            return False
        one = self.by_partition.get(about.metadata_partition)
        return one is not None and about.metadata_offset is not None and one.may_lack_predecessor(about.metadata_offset)
