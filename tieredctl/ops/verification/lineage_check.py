"""Do a partition's segments make a log, and does it reach the local one?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
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
    local: LocalLog | None,
    *,
    copied: int | None,
    deleted: int | None,
) -> list[Finding]:
    """Gaps and overlaps of the segments in COPY_SEGMENT_FINISHED along a lineage, and the seams to the local log.

    `copied` is the greatest offset that any segment ever had, including deleted ones; `deleted` the greatest that was
    in a segment deleted since."""
    judge = _Judge(partition, local)
    for piece in sorted(_pieces(finished, lineage)):
        judge.take(piece, deleted)
    judge.seam(copied)
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

    def take(self, piece: _Piece, deleted: int | None) -> None:
        """The next piece, by rising offset."""
        if self._reached is None:
            self._beginning(piece, -1 if deleted is None else deleted)
        elif piece.first > self._reached + 1:
            self._gap(piece)
        elif piece.first <= self._reached and piece.segment_id != self._reached_by:
            self._overlap(piece)
        if self._reached is None or piece.last > self._reached:
            self._reached, self._reached_by = piece.last, piece.segment_id

    def seam(self, copied: int | None) -> None:
        """Whether anything lies between the remote end and the local log start."""
        if self._local is None:
            return
        reached = self._reached if self._reached is not None else copied
        log_start = self._local.log_start_offset
        if reached is None and log_start is None:
            return
        first = max(-1 if reached is None else reached, -1 if log_start is None else log_start - 1) + 1
        last = self._local.local_start_offset - 1
        if first <= last:
            message = f"offsets {first} to {last} are neither in remote storage nor in the local log"
            self._add(FindingCode.LOCAL_REMOTE_GAP, message, (first, last), self._reached_by or None)

    def _beginning(self, piece: _Piece, deleted: int) -> None:
        """The first piece must begin where the log does, unless what was before it was deleted: then the broker's
        checkpoint of log starts may be outdated."""
        if self._local is None or self._local.log_start_offset is None:
            return
        first = max(self._local.log_start_offset, deleted + 1)
        last = min(piece.first, self._local.local_start_offset) - 1
        if first <= last:
            message = f"no segment holds offsets {first} to {last}, the first of the log"
            self._add(FindingCode.OFFSET_GAP, message, (first, last), piece.segment_id)

    def _gap(self, piece: _Piece) -> None:
        assert self._reached is not None
        first, last = self._reached + 1, piece.first - 1
        log_start = self._local.log_start_offset if self._local else None
        message, severity = f"no segment holds offsets {first} to {last}", None
        if log_start is not None and log_start > last:
            message += f", which are below the log start offset {log_start}"
            severity = Severity.INFO
        elif log_start is not None:
            first = max(first, log_start)
        self._add(FindingCode.OFFSET_GAP, message, (first, last), piece.segment_id, self._reached_by, severity)

    def _overlap(self, piece: _Piece) -> None:
        assert self._reached is not None
        if piece.segment_id in self._overlapping:
            return
        self._overlapping.add(piece.segment_id)
        offsets = (piece.first, min(piece.last, self._reached))
        message = f"offsets {offsets[0]} to {offsets[1]} are also in segment {self._reached_by}"
        self._add(FindingCode.OFFSET_OVERLAP, message, offsets, piece.segment_id, self._reached_by)

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
