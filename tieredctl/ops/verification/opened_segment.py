"""A segment in the remote store while it is checked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.remote.log_bytes import LogBytes
from tieredctl.ops.verification.log_check import CorruptBatch, LogFacts
from tieredctl.ops.verification.report import SegmentFindings, SegmentReport, SegmentTask, report_unread
from tieredctl.ports.layout import DamagedRange, Part, SegmentReader
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT

STREAM_BYTES = 1 << 22
_UNDECODABLE = {
    Part.LOG: FindingCode.BATCH_CORRUPT,
    Part.PRODUCER_SNAPSHOT: FindingCode.PRODUCER_SNAPSHOT_DAMAGED,
    Part.LEADER_EPOCH: FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED,
}
_CONCERN_ALL = CONCERN_EVERY_OBJECT | {ErrorCode.PRIVATE_KEY}
"""Errors that would meet any other part, too."""
_Decoded = TypeVar("_Decoded")


class OpenedSegment:
    """Reads a segment's parts, counts what was read, and collects what is found."""

    def __init__(self, task: SegmentTask, segment: SegmentReader, findings: SegmentFindings) -> None:
        self.task = task
        self.metadata: RemoteLogSegmentMetadata = task.metadata
        self.findings = findings
        self.is_open = False
        """Whether what describes the others could be read."""
        self._segment = segment
        self._parts: Mapping[Part, int] = {}
        self._at_first_sight: tuple[Finding, ...] = ()
        self._contradicted: set[Part] = set()
        self._log = LogBytes(segment)
        self._bytes_read = 0
        self._batches = 0
        self._records = 0

    def look(self) -> None:
        """Finds out which parts are there, and whether their objects fit together. Raises TieredctlError."""
        try:
            self._parts = self._segment.parts()
        except DecodeError as error:
            offsets = (self.metadata.start_offset, self.metadata.end_offset)
            message = f"{error.reason}: no part of the segment can be read"
            self.findings.add(
                FindingCode.MANIFEST_DAMAGED, Part.MANIFEST, message, position=error.position, offsets=offsets
            )
        self.is_open = True
        self._report_contradictions()
        self._at_first_sight = tuple(self.findings.found)

    def _report_contradictions(self) -> None:
        if not self._parts:
            return
        for part, message, position in self._segment.contradictions():
            code = FindingCode.SIZE_MISMATCH if part is Part.LOG else FindingCode.INDEX_DAMAGED
            self.findings.add(code, part, message, position=position)
            self._contradicted.add(part)

    def size(self, part: Part) -> int | None:
        """In bytes; None where there is no such part."""
        return self._parts.get(part)

    def is_known_to_lack(self, part: Part) -> bool:
        """Whether there is no such part although the object that would hold it exists and is complete."""
        if part in self._parts:
            return False
        if Part.INDEXES not in self.findings.keys:
            return True
        return Part.INDEXES in self.task.keys and Part.INDEXES not in self._contradicted

    @property
    def log_size(self) -> int:
        """How much of the log is read: bytes beyond its size, where the metadata has that, are not the segment's."""
        size, claimed = self._parts[Part.LOG], self.metadata.known_size
        return size if claimed is None else min(size, claimed)

    def decode(self, part: Part, decode: Callable[[bytes], _Decoded]) -> _Decoded | None:
        """A small part's content; None where it is missing, or, with a finding, cannot be read or decoded.

        Raises TieredctlError where the store does not answer.
        """
        if part not in self._parts:
            return None
        try:
            data = self._segment.read(part)
            self._bytes_read += len(data)
            return decode(data)
        except DecodeError as error:
            code = _UNDECODABLE.get(part, FindingCode.INDEX_DAMAGED)
            self.findings.add(code, part, error.reason, position=error.position)
        except TieredctlError as error:
            if concerns_all(error):
                raise
            report_unread(error, part, self.findings)
        return None

    def log(self) -> Iterator[bytes]:
        """The log from its first byte, in pieces, as far as it is read: zeros for what cannot be decoded."""
        return self._log.whole(self.log_size, STREAM_BYTES)

    def log_range(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes of the log from `start` up to, not including, `end`, in pieces: zeros, which make no batch, for
        what cannot be decoded."""
        return self._log.pieces(start, end, STREAM_BYTES)

    def forget(self) -> None:
        """Discards what was counted and found since the parts were located, except the bytes read: the segment is about
        to be read again."""
        self.findings = SegmentFindings(self.metadata, self.findings.keys, list(self._at_first_sight))
        self._batches = self._records = 0

    def count(self, facts: LogFacts) -> None:
        """Adds the result of reading the log, or a part of it."""
        blame(self._log.damages, facts, self.metadata)
        self._batches += facts.batches
        self._records += facts.records

    def report(self) -> SegmentReport:
        """Everything that was counted and found."""
        return SegmentReport(
            self.metadata.segment_id,
            self._bytes_read + self._log.bytes_read,
            self._batches,
            self._records,
            tuple(self.findings.found),
            tuple(self.findings.unread),
        )


def concerns_all(error: TieredctlError) -> bool:
    """Whether the segment's next part would meet the same error."""
    return error.code in _CONCERN_ALL


def blame(damages: Sequence[DamagedRange], facts: LogFacts, metadata: RemoteLogSegmentMetadata) -> None:
    """Adds the first damage of each stretch to its finding. Damages are ordered by position; each lies in one stretch,
    since no sound batch can be in it."""
    if not damages:
        return
    if facts.torn_at is not None:
        first = min(max(facts.last_offset + 1, metadata.start_offset), metadata.end_offset)
        facts.corrupt.append(CorruptBatch(facts.torn_at, "the last batch is incomplete", first, metadata.end_offset))
        facts.torn_at = None
    facts.corrupt.sort(key=lambda batch: batch.position)
    begins = [batch.position for batch in facts.corrupt]
    for damage in reversed(damages):
        row = bisect_right(begins, damage.position) - 1
        if row >= 0:
            facts.corrupt[row] = replace(facts.corrupt[row], reason=damage.reason, stored=damage.stored)
