"""Do a partition's segments make a log, and does it reach the local one?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.uuid_columns import UuidColumns, uuid_columns
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.model.local_log import LeaderEpochs, LocalLog
from tieredctl.rlmm.cache import DeletedOffsets
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_FIRST_OFFSET, _LAST_OFFSET = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_LAST_EPOCH = np.iinfo(np.int32).max
_WITHOUT_END = _LAST_OFFSET + 1
_Greatest = Callable[[], int | None]
_Deleted = Callable[[], DeletedOffsets]


@dataclass(frozen=True, slots=True)
class EpochRanges:
    """A row for each leader epoch of some segments: its first and last offset in the segment, both inclusive."""

    segment_ids: UuidColumns
    segments: Ints
    """Rows of `segment_ids`."""
    epochs: NDArray[np.int32]
    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, metadata: ReplayedMetadata, rows: Ints) -> EpochRanges:
        """The ranges of some rows."""
        ranges = metadata.events.contents.starts.epoch_ranges(metadata.rows.starts[rows])
        epochs, firsts, lasts = ranges.elements.values()
        segments = np.repeat(np.arange(len(rows)), np.diff(ranges.bounds))
        return cls(metadata.rows.segment_ids.at(rows), segments, epochs, firsts, lasts)

    @classmethod
    def said_by(cls, segments: Sequence[RemoteLogSegmentMetadata]) -> EpochRanges:
        """The ranges of a few segments."""
        ids = np.frombuffer(b"".join(uuid_bytes(one.segment_id) for one in segments), "V16")
        rows = [(number, *one) for number, segment in enumerate(segments) for one in segment.epoch_ranges()]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        return cls(uuid_columns(ids), columns[0], columns[1].astype(np.int32), columns[2], columns[3])

    def joined(self) -> LeaderEpochs:
        """Each leader epoch with the first offset that any segment has of it."""
        epochs, places = np.unique(self.epochs, return_inverse=True)
        starts = np.full(len(epochs), _LAST_OFFSET)
        np.minimum.at(starts, places, self.firsts)
        return list(zip(epochs.tolist(), starts.tolist(), strict=True))

    def on(self, lineage: LeaderEpochs) -> EpochRanges:
        """What of them lies on a lineage."""
        bounds = {
            epoch: (max(start, _FIRST_OFFSET), min(following - 1, _LAST_OFFSET))
            for (epoch, start), (_, following) in pairwise([*lineage, (-1, _WITHOUT_END)])
        }
        possible = sorted(epoch for epoch, (start, end) in bounds.items() if start <= end and epoch <= _LAST_EPOCH)
        lineage_epochs = np.array(possible, np.int64)
        starts, ends = (np.array([bounds[epoch][end] for epoch in possible], np.int64) for end in range(2))
        places = np.minimum(np.searchsorted(lineage_epochs, self.epochs), len(lineage_epochs) - 1)
        within = np.flatnonzero(lineage_epochs[places] == self.epochs) if len(lineage_epochs) else np.zeros(0, np.int64)
        firsts = np.maximum(self.firsts[within], starts[places[within]])
        lasts = np.minimum(self.lasts[within], ends[places[within]])
        some = firsts <= lasts
        rows = within[some]
        return EpochRanges(self.segment_ids, self.segments[rows], self.epochs[rows], firsts[some], lasts[some])

    def in_order(self) -> EpochRanges:
        """The ranges by first offset, last offset, segment id."""
        order = np.lexsort((self.lasts, self.firsts))
        firsts, lasts = self.firsts[order], self.lasts[order]
        if ((firsts[1:] == firsts[:-1]) & (lasts[1:] == lasts[:-1])).any():
            texts = np.array(self.segment_ids.texts())[self.segments]
            order = np.lexsort((texts, self.lasts, self.firsts))
        return EpochRanges(
            self.segment_ids, self.segments[order], self.epochs[order], self.firsts[order], self.lasts[order]
        )

    def piece(self, row: int) -> _Piece:
        """One of them."""
        segment = self.segments[row : row + 1]
        (segment_id,) = self.segment_ids.at(segment).texts()
        return _Piece(int(self.firsts[row]), int(self.lasts[row]), segment_id)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a segment that lies on the lineage."""

    first: int
    last: int
    segment_id: str


def check_lineage(
    partition: TopicIdPartition,
    finished: EpochRanges,
    lineage: LeaderEpochs,
    local: LocalLog | None,
    *,
    copied: _Greatest,
    deleted: _Deleted,
) -> list[Finding]:
    """Gaps and overlaps of the segments in COPY_SEGMENT_FINISHED along a lineage, and the seams to the local log.

    `copied` gives the greatest offset that any segment ever had, including deleted ones; `deleted` the offsets of
    segments deleted since, which explain any hole. They are asked where it matters."""
    pieces = finished.on(lineage).in_order()
    judge = _Judge(partition, local, deleted)
    if not len(pieces.firsts):
        judge.seam(copied() if local else None)
        return judge.findings
    judge.beginning(pieces.piece(0))
    reached, reached_by = _reached(pieces)
    for row in (np.flatnonzero(_are_amiss(pieces, reached, reached_by)) + 1).tolist():
        judge.take(pieces.piece(row), int(reached[row - 1]), pieces.piece(int(reached_by[row - 1])).segment_id)
    judge.seam(int(reached[-1]), pieces.piece(int(reached_by[-1])).segment_id)
    return judge.findings


def _reached(pieces: EpochRanges) -> tuple[Ints, Ints]:
    """The last offset that any piece reaches, up to each; and the row of the first that reaches it."""
    reached = np.maximum.accumulate(pieces.lasts)
    further = np.ones(len(reached), np.bool_)
    further[1:] = reached[1:] > reached[:-1]
    return reached, np.maximum.accumulate(np.where(further, np.arange(len(reached)), 0))


def _are_amiss(pieces: EpochRanges, reached: Ints, reached_by: Ints) -> Flags:
    """Flags the pieces, from the second on, that do not continue what those before them reach."""
    firsts, before = pieces.firsts[1:], reached[:-1]
    others: Flags = pieces.segments[1:] != pieces.segments[reached_by[:-1]]
    return np.where(firsts > before, firsts - 1 != before, others)


class _Judge:
    def __init__(self, partition: TopicIdPartition, local: LocalLog | None, deleted: _Deleted) -> None:
        self.findings: list[Finding] = []
        self._partition = partition
        self._local = local
        self._deleted = deleted
        self._overlapping: set[str] = set()

    def take(self, piece: _Piece, reached: int, reached_by: str) -> None:
        """A piece that does not continue those before it, which reach so far."""
        if piece.first > reached:
            self._gap(piece, reached, reached_by)
        else:
            self._overlap(piece, reached, reached_by)

    def seam(self, reached: int | None, reached_by: str | None = None) -> None:
        """Whether anything lies between the remote end and the local log start."""
        if self._local is None:
            return
        log_start = self._local.log_start_offset
        if reached is None and log_start is None:
            return
        first = max(-1 if reached is None else reached, -1 if log_start is None else log_start - 1) + 1
        last = self._local.local_start_offset - 1
        for lost in self._lost(first, last):
            message = f"offsets {lost[0]} to {lost[1]} are neither in a segment of the metadata nor in the local log"
            self._add(FindingCode.LOCAL_REMOTE_GAP, message, lost, reached_by)

    def beginning(self, piece: _Piece) -> None:
        """The first piece must begin where the log does, unless what was before it was deleted: then the broker's
        checkpoint of log starts may be outdated."""
        if self._local is None or self._local.log_start_offset is None:
            return
        first = max(self._local.log_start_offset, 0)
        last = min(piece.first, self._local.local_start_offset) - 1
        if first <= last and (gone := self._deleted().highest) is not None:
            first = max(first, gone + 1)
        if first <= last:
            message = f"no segment holds offsets {first} to {last}, the first of the log"
            self._add(FindingCode.OFFSET_GAP, message, (first, last), piece.segment_id)

    def _gap(self, piece: _Piece, reached: int, reached_by: str) -> None:
        for lost in self._lost(reached + 1, piece.first - 1):
            self._hole(piece, *lost, reached_by)

    def _lost(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What of some offsets no deletion explains."""
        if first <= last:
            yield from self._deleted().not_among(first, last)

    def _hole(self, piece: _Piece, first: int, last: int, reached_by: str) -> None:
        log_start = self._local.log_start_offset if self._local else None
        message, severity = f"no segment holds offsets {first} to {last}", None
        if log_start is not None and log_start > last:
            message += f", which are below the log start offset {log_start}"
            severity = Severity.INFO
        elif log_start is not None:
            first = max(first, log_start)
        self._add(FindingCode.OFFSET_GAP, message, (first, last), piece.segment_id, reached_by, severity)

    def _overlap(self, piece: _Piece, reached: int, reached_by: str) -> None:
        if piece.segment_id in self._overlapping:
            return
        self._overlapping.add(piece.segment_id)
        offsets = (piece.first, min(piece.last, reached))
        message = f"offsets {offsets[0]} to {offsets[1]} are also in segment {reached_by}"
        self._add(FindingCode.OFFSET_OVERLAP, message, offsets, piece.segment_id, reached_by)

    def _add(
        self,
        code: FindingCode,
        message: str,
        offsets: tuple[int, int],
        segment_id: str | None,
        previous_segment_id: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        partition = self._partition
        about = PartitionSubject(partition, offsets)
        if segment_id is not None:
            about = SegmentSubject(partition, offsets, segment_id, previous_segment_id=previous_segment_id)
        evidence: dict[str, object] = {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "offsets": list(offsets),
            "segmentId": segment_id,
        }
        if previous_segment_id is not None:
            evidence["previousSegmentId"] = previous_segment_id
        subject = f"{partition.topic}-{partition.partition}"
        self.findings.append(Finding(code, subject, message, evidence, severity, about))
