"""Do a partition's segments make a log, and does it reach the local one?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderEpochs, LocalLog

_WITHOUT_END = 1 << 63


@dataclass(frozen=True, slots=True, order=True)
class _Piece:
    """A part of a segment that lies on the lineage."""

    first: int
    last: int
    segment_id: str


def check_lineage(
    partition: TopicIdPartition,
    finished: Iterable[RemoteLogSegmentMetadata],
    lineage: LeaderEpochs,
    highest_copied: int | None,
    local: LocalLog | None,
) -> list[Finding]:
    """Gaps and overlaps of the segments in COPY_SEGMENT_FINISHED along a lineage, and the seam to the local log.

    `highest_copied` is the greatest offset that any segment ever brought, those deleted since included.
    """
    judge = _Judge(partition, local)
    for piece in sorted(_pieces(finished, lineage)):
        judge.take(piece)
    judge.seam(highest_copied)
    return judge.findings


def _pieces(finished: Iterable[RemoteLogSegmentMetadata], lineage: LeaderEpochs) -> Iterable[_Piece]:
    bounds = {
        epoch: (start, following - 1) for (epoch, start), (_, following) in pairwise([*lineage, (-1, _WITHOUT_END)])
    }
    for metadata in finished:
        for epoch, first, last in metadata.epoch_ranges():
            if epoch in bounds:
                start, end = bounds[epoch]
                if max(first, start) <= min(last, end):
                    yield _Piece(max(first, start), min(last, end), metadata.segment_id)


class _Judge:
    def __init__(self, partition: TopicIdPartition, local: LocalLog | None) -> None:
        self.findings: list[Finding] = []
        self._partition = partition
        self._local = local
        self._reached: int | None = None
        self._reached_by = ""
        self._overlapping: set[str] = set()

    def take(self, piece: _Piece) -> None:
        if self._reached is not None and piece.first > self._reached + 1:
            self._gap(piece)
        elif self._reached is not None and piece.first <= self._reached and piece.segment_id != self._reached_by:
            self._overlap(piece)
        if self._reached is None or piece.last > self._reached:
            self._reached, self._reached_by = piece.last, piece.segment_id

    def seam(self, highest_copied: int | None) -> None:
        """Whether anything lies between the remote end and the local log start."""
        if self._local is None:
            return
        reached = self._reached if self._reached is not None else highest_copied
        log_start = self._local.log_start_offset
        if reached is None and log_start is None:
            return
        first = max(-1 if reached is None else reached, -1 if log_start is None else log_start - 1) + 1
        last = self._local.local_start_offset - 1
        if first <= last:
            message = f"offsets {first} to {last} are neither in remote storage nor in the local log"
            self._add("local-remote-gap", message, (first, last), segmentId=self._reached_by or None)

    def _gap(self, piece: _Piece) -> None:
        assert self._reached is not None
        first, last = self._reached + 1, piece.first - 1
        log_start = self._local.log_start_offset if self._local else None
        deleted = log_start is not None and log_start > last
        message = f"no segment holds offsets {first} to {last}"
        if deleted:
            message += f", which lie below the log start offset {log_start}"
        self._add(
            "offset-gap",
            message,
            (first, last),
            severity=Severity.INFO if deleted else None,
            segmentId=piece.segment_id,
            previousSegmentId=self._reached_by,
        )

    def _overlap(self, piece: _Piece) -> None:
        assert self._reached is not None
        if piece.segment_id in self._overlapping:
            return
        self._overlapping.add(piece.segment_id)
        offsets = (piece.first, min(piece.last, self._reached))
        message = f"offsets {offsets[0]} to {offsets[1]} are in segment {self._reached_by} too"
        self._add("offset-overlap", message, offsets, segmentId=piece.segment_id, previousSegmentId=self._reached_by)

    def _add(
        self, code: str, message: str, offsets: tuple[int, int], severity: Severity | None = None, **evidence: object
    ) -> None:
        partition = self._partition
        facts: dict[str, object] = {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "offsets": list(offsets),
        }
        subject = f"{partition.topic}-{partition.partition}"
        self.findings.append(Finding(code, subject, message, facts | evidence, severity))
