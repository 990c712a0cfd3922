"""A segment in the remote store while it is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.layouts.protocol import Part, SegmentReader
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.verification.log_check import LogFacts
from tieredctl.ops.verification.report import SegmentFindings, SegmentReport, SegmentTask

STREAM_BYTES = 1 << 22
_UNDECODABLE = {
    Part.LOG: "batch-corrupt",
    Part.PRODUCER_SNAPSHOT: "producer-snapshot-damaged",
    Part.LEADER_EPOCH: "leader-epoch-checkpoint-damaged",
}
_Decoded = TypeVar("_Decoded")


class OpenedSegment:
    """Reads a segment's parts, counts what was read, and collects what is found."""

    def __init__(self, task: SegmentTask, segment: SegmentReader, findings: SegmentFindings) -> None:
        self.task = task
        self.metadata: RemoteLogSegmentMetadata = task.metadata
        self.findings = findings
        self._segment = segment
        self._parts: Mapping[Part, int] = {}
        self._bytes_read = 0
        self._batches = 0
        self._records = 0

    def look(self) -> None:
        """Finds out which parts are there. Raises TieredctlError."""
        self._parts = self._segment.parts()

    def size(self, part: Part) -> int | None:
        """In bytes; None where there is no such part."""
        return self._parts.get(part)

    @property
    def log_size(self) -> int:
        """How much of the log is looked at: what is behind the size that the metadata says is not the segment's."""
        return min(self._parts[Part.LOG], self.metadata.segment_size_in_bytes)

    def decode(self, part: Part, decode: Callable[[bytes], _Decoded]) -> _Decoded | None:
        """What a small part holds; None where it is not there, or, with a finding, cannot be read or decoded.

        Raises TieredctlError where it is the store that does not answer.
        """
        if part not in self._parts:
            return None
        try:
            data = self._segment.read(part)
            self._bytes_read += len(data)
            return decode(data)
        except DecodeError as error:
            code = _UNDECODABLE.get(part, "index-damaged")
            self.findings.add(code, part, error.reason, position=error.position)
        except TieredctlError as error:
            if error.kind.code == "store-unreachable":
                raise
            self.findings.add("unreadable", part, error.message)
        return None

    def log(self) -> Iterator[bytes]:
        """The log from its first byte, in pieces, as far as it is looked at."""
        left = self.log_size
        for chunk in self._segment.stream(Part.LOG, STREAM_BYTES):
            piece = chunk[:left]
            left -= len(piece)
            self._bytes_read += len(piece)
            if piece:
                yield piece
            if not left:
                return
            del chunk, piece  # before the next is read: its memory can serve again

    def log_range(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes of the log from `start` up to, not including, `end`, in pieces."""
        for position in range(start, end, STREAM_BYTES):
            piece = self._segment.read(Part.LOG, position, min(position + STREAM_BYTES, end))
            self._bytes_read += len(piece)
            yield piece

    def forget(self) -> None:
        """What was counted and found, but for the bytes that were read: it is about to be read again."""
        self.findings = SegmentFindings(self.metadata, self.findings.keys)
        self._batches = self._records = 0

    def count(self, facts: LogFacts) -> None:
        """What reading the log, or a part of it, gave."""
        self._batches += facts.batches
        self._records += facts.records

    def report(self) -> SegmentReport:
        """Everything that was counted and found."""
        return SegmentReport(
            self.metadata.segment_id, self._bytes_read, self._batches, self._records, tuple(self.findings.found)
        )
