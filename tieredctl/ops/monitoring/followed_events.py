"""The metadata of a cluster, read once and then followed, with figures about each metadata partition.

Unlike those who delete by it, whoever watches goes on when history is damaged, lost or replaced: that is what is to be
shown. Events are kept in columns, those of deleted segments only as long as others may depend on them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.compaction import CompactionSigns
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.metadata.coverage import MetadataCoverage
from tieredctl.ops.metadata.event_reading import event_chunk
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.stats import EventStatistics, EventTally
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource
from tieredctl.rlmm.forgotten_segments import ForgottenSegments
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

FindingCounts = Counter[tuple[str, str]]
"""How many findings there are, by code and severity."""

_REPLACED = (ErrorCode.ANOTHER_CLUSTER, ErrorCode.WORLD_CHANGED, ErrorCode.METADATA_INCOMPLETE)
"""What following is refused with where the topic is another one, or has lost something."""
_MOST_FAILURES = 10
"""In a row, after which the source is opened again: the brokers may have other addresses by now."""
_LEAST_EVENTS = 1 << 17
"""So many are kept whatever they are about."""


@dataclass(frozen=True, slots=True)
class FollowedFigures:
    """The metadata as of the last reading."""

    cluster_id: str | None
    metadata: ReplayedMetadata
    partitions: Mapping[int, EventStatistics]
    """By metadata partition."""
    findings: FindingCounts
    """What is wrong with the metadata; nothing about its age."""
    is_broken: bool
    """Whether some of it is surely missing or damaged: sums would be too low."""
    may_be_more: bool
    """Whether more metadata than was read may exist."""
    starts: Mapping[int, int]
    """The first offset that each metadata partition still has."""


class FollowedEvents:
    """Reads the metadata from its beginning, then only what was added. To be closed."""

    def __init__(
        self,
        open_source: Callable[[], MetadataSource],
        *,
        least_events: int = _LEAST_EVENTS,
        tell_loss: Callable[[TieredctlError], None] = lambda _why: None,
    ) -> None:
        """`least_events`: deleted segments are forgotten when there are so many, and twice those that were left.
        `tell_loss` is told why all that was known is dropped."""
        self._open_source = open_source
        self._least_events = least_events
        self._tell_loss = tell_loss
        self.losses = 0
        """How often the topic was recreated, or lost something of what had been read."""
        self.readings = 0
        """How often it was read from its beginning."""
        self._failures = 0
        """In a row."""
        self._followed: FollowedMetadata | None = None
        self._begin()

    def read(self) -> FollowedFigures:
        """All of it, up to now. Where the topic was recreated, truncated or lost something, it is read again from its
        beginning. Raises TieredctlError where it cannot be read now; the next call goes on from there."""
        try:
            figures = self._read()
        except TieredctlError:
            self._failures += 1
            if self._failures >= _MOST_FAILURES and self._followed is not None:
                self._followed.reopen()
                self._failures = 0
            raise
        self._failures = 0
        return figures

    def close(self) -> None:
        """Closes the source."""
        if self._followed is not None:
            self._followed.close()

    def _begin(self) -> None:
        self.close()
        self._followed = None
        self._events = SegmentEvents(is_described=True)
        self._forgotten = ForgottenSegments()
        self._most_events = self._least_events
        """When there are more, deleted segments are forgotten."""
        self._tallies: dict[int, EventTally] = {}
        self._findings: dict[tuple[str, str], Finding] = {}
        self._known: ReplayedMetadata | None = None
        self._starts: Mapping[int, int] | None = None
        self._coverage = MetadataCoverage((), None)
        self._compactions: list[CompactionSigns] = []
        self._next: dict[int, int] = {}
        self._is_new = True
        self._failures = 0

    def _read(self) -> FollowedFigures:
        if self._followed is None:
            self._followed = FollowedMetadata(self._open_source)
        try:
            source = self._followed.read(self._take).source
        except TieredctlError as error:
            if self._is_new or error.code not in _REPLACED:
                raise
            return self._read_again(error)
        starts = {number: source.offset_range(number).start for number in source.metadata_partitions()}
        if self._starts is not None and starts != self._starts:
            return self._read_again(_other_starts(self._starts, starts))
        self._starts = starts
        if self._known is None and self._forgotten.are_met(self._events):
            self._least_events = sys.maxsize
            return self._read_again()
        if self._is_new:
            self.readings += 1
            self._is_new = False
        return self._figures(source, starts)

    def _read_again(self, loss: TieredctlError | None = None) -> FollowedFigures:
        if loss is not None:
            self.losses += 1
            self._tell_loss(loss)
        self._begin()
        return self._read()

    def _take(self, stream: EventStream) -> Iterable[Finding]:
        self._known = None
        for number in stream.source.metadata_partitions():
            self._tallies.setdefault(number, EventTally())
        for number, chunk in stream.chunks():
            self._take_chunk(stream, number, chunk.starting_at(self._next.get(number, 0)))
        for finding in stream.findings:
            self._findings[finding.code, finding.subject] = finding
        if stream.compaction.shown:
            self._compactions.append(stream.compaction)
        self._coverage = stream.coverage
        return ()

    def _take_chunk(self, stream: EventStream, number: int, chunk: RecordChunk) -> None:
        """Takes records that were not taken yet: a reading that failed is repeated from where it began."""
        if not len(chunk):
            return
        tally, before = self._tallies[number], _tombstones(stream, number)
        tally.count(chunk)
        events = event_chunk(stream, number, chunk)
        tally.take(events)
        tally.tombstones += _tombstones(stream, number) - before
        self._events.take(events)
        self._next[number] = int(chunk.offsets[-1]) + 1
        self._forget()

    def _forget(self) -> None:
        """The deleted segments, as soon as they may be the larger part: there may be many times more of them. Where
        events meet forgotten ones, all are read again once this reading is through."""
        if len(self._events.buckets) <= self._most_events:
            return
        if self._forgotten.are_met(self._events):
            self._most_events = sys.maxsize
            return
        self._events = self._forgotten.forget(self._events)
        self._most_events = max(self._least_events, 2 * len(self._events.buckets))

    def _figures(self, source: MetadataSource, starts: Mapping[int, int]) -> FollowedFigures:
        if self._known is None:
            self._known = ReplayedMetadata(self._events)
        metadata, findings = self._known, list(self._findings.values())
        odd = [one for one in metadata.findings if not any(signs.explains(one) for signs in self._compactions)]
        return FollowedFigures(
            source.cluster_id,
            metadata,
            self._statistics(metadata),
            Counter((one.code.value, one.severity.label) for one in [*findings, *odd]),
            self._coverage.is_broken or not is_whole([*findings, *odd]),
            not self._coverage.is_certain,
            starts,
        )

    def _statistics(self, metadata: ReplayedMetadata) -> dict[int, EventStatistics]:
        rows = metadata.rows
        size = max(self._tallies, default=-1) + 1
        segments = np.bincount(rows.metadata_partitions, minlength=size).tolist()
        events = np.bincount(rows.metadata_partitions, weights=rows.events, minlength=size).astype(np.int64).tolist()
        return {
            number: self._tallies[number].statistics(segments[number], events[number])
            for number in sorted(self._tallies)
        }


def _other_starts(before: Mapping[int, int], now: Mapping[int, int]) -> TieredctlError:
    number = next(one for one in sorted(before) if before[one] != now.get(one))
    message = f"{METADATA_TOPIC}-{number} began at offset {before[number]}, and begins at {now[number]} now."
    hint = "Did its retention delete events? It must not: see `tieredctl doctor`."
    return TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint=hint)


def _tombstones(stream: EventStream, metadata_partition: int) -> int:
    signs = stream.compaction.by_partition.get(metadata_partition)
    return 0 if signs is None else signs.tombstones
