"""A partition's part in remote storage, as consumers may read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.records.lost_records import Loss
from tieredctl.records.request import KnownLine
from tieredctl.records.served_spans import ServedSpan, clipped, line_of_leaders, served_spans
from tieredctl.rlmm.cache import NOTHING_DELETED, DeletedOffsets, RemoteLogMetadataCache


def never_deleted(_partition: TopicIdPartition, _segment_id: str) -> bool:
    """What is said where no metadata can be asked again."""
    return False


@dataclass(frozen=True, slots=True)
class RemotePartition:
    """Which segments serve which offsets of a partition. It can be pickled."""

    partition: TopicIdPartition
    spans: Sequence[ServedSpan]
    """In order, each offset in one at most."""
    log_start_offset: int | None
    """The first offset that consumers may read; None where nobody says."""
    deleted: DeletedOffsets
    findings: Sequence[Finding] = ()
    """What makes the line of leaders doubtful."""
    read_up_to: int | None = None
    """The offset before which an earlier reading has all: from there on, what retention deleted is lost to it, too."""

    @classmethod
    def of(
        cls,
        partition: TopicIdPartition,
        remote: RemoteLogMetadataCache,
        store: ObjectStore,
        layout: Layout,
        line: KnownLine | None = None,
        is_deleted: Callable[[TopicIdPartition, str], bool] = never_deleted,
    ) -> RemotePartition:
        """By the line of leaders that a leader or a replica's disk says, or without one by what the store has of it.
        `is_deleted` says by the metadata of now whether a segment was deleted. Raises TieredctlError where that cannot
        be read from the store at all."""
        findings = []
        if line is None or not line.leader_epochs:
            is_gone = partial(is_deleted, partition)
            leader_epochs, loss = line_of_leaders(remote, store, layout, is_gone)
            if loss is not None:  # bytes may be altered on the way
                leader_epochs, loss = line_of_leaders(remote, store.reconnected(), layout, is_gone)
            line = KnownLine(leader_epochs, None if line is None else line.log_start_offset)
            findings = [] if loss is None else [loss.finding]
        spans = served_spans(remote, line.leader_epochs, line.log_start_offset)
        return cls(partition, spans, line.log_start_offset, remote.deleted, findings)

    def with_disk(self, segments: Sequence[RemoteLogSegmentMetadata], end_offset: int) -> RemotePartition:
        """The same, continued by the segments on a broker's disk where remote storage ends, before an offset."""
        first = max(self.end_offset or 0, self.log_start_offset or 0)
        whole = [ServedSpan(segment, segment.start_offset, segment.end_offset) for segment in segments]
        return replace(self, spans=[*self.spans, *clipped(whole, first, end_offset - 1)])

    @property
    def first_offset(self) -> int | None:
        """The first offset that is in remote storage; None where none is."""
        return self.spans[0].first if self.spans else None

    @property
    def end_offset(self) -> int | None:
        """The offset after the last one that is in remote storage; None where none is."""
        return self.spans[-1].last + 1 if self.spans else None

    def holes(self, first: int, last: int) -> Iterator[Loss]:
        """What of the offsets from `first` to `last` (inclusive) no segment serves although nothing deleted it, or
        although it should have been read before, up to the end of remote storage."""
        excused = self.deleted if self.read_up_to is None else NOTHING_DELETED
        for start, end in self._unserved():
            for hole in excused.not_among(max(start, first), min(end, last)):
                yield self._hole(*hole)

    def _unserved(self) -> Iterator[tuple[int, int]]:
        highest = self.deleted.highest
        after_deleted = 0 if highest is None else highest + 1
        first = after_deleted if self.first_offset is None else self.first_offset
        if self.read_up_to is not None:
            yield self.read_up_to, first - 1
        elif self.log_start_offset is not None:
            # A broker's checkpoint of log starts may be older than what retention deleted since.
            yield max(self.log_start_offset, after_deleted), first - 1
        for span, following in pairwise(self.spans):
            yield span.last + 1, following.first - 1

    def _hole(self, first: int, last: int) -> Loss:
        partition, offsets = self.partition, (first, last)
        evidence: dict[str, object] = {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "offsets": [first, last],
            "segmentId": None,
        }
        message = f"no segment holds offsets {first} to {last}: they are not returned"
        subject, about = f"{partition.topic}-{partition.partition}", PartitionSubject(partition, offsets)
        return Loss(Finding(FindingCode.OFFSET_GAP, subject, message, evidence, about=about), offsets)
