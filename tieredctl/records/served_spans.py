"""Which segment serves which offsets of a partition: what its leader's look-ups would find, offset by offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.local_log import ON_DISK, LeaderEpochs
from tieredctl.ops.verification.lineage_check import EpochRanges
from tieredctl.ops.verification.opened_segment import concerns_all
from tieredctl.ops.verification.small_parts import leader_epoch_contradiction
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.request import GREATEST_OFFSET
from tieredctl.rlmm.cache import RemoteLogMetadataCache

_ALONG_THE_LINE = "without it, which leader's records are those of the log is not certain"


class ServedSpan(NamedTuple):
    """The first and the last offset (inclusive) that are read from a segment."""

    segment: RemoteLogSegmentMetadata
    first: int
    last: int

    @property
    def reaches_end(self) -> bool:
        """Whether the segment serves up to its own end."""
        return self.last == self.segment.end_offset

    @property
    def is_on_disk(self) -> bool:
        """Whether the segment is on a broker's disk, whose indexes are not asked: reading on is as quick there."""
        return self.segment.segment_id == ON_DISK

    @property
    def is_active(self) -> bool:
        """Whether a broker may still append to the segment."""
        return self.is_on_disk and self.segment.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def served_spans(
    remote: RemoteLogMetadataCache, leader_epochs: LeaderEpochs, log_start_offset: int | None
) -> list[ServedSpan]:
    """All offsets in remote storage along a line of leaders, in order, each once."""
    spans: list[ServedSpan] = []
    for segment, first, last in _pieces(remote, leader_epochs, log_start_offset or 0):
        if spans and spans[-1].segment.segment_id == segment.segment_id and spans[-1].last + 1 == first:
            spans[-1] = spans[-1]._replace(last=last)
        else:
            spans.append(ServedSpan(segment, first, last))
    return spans


def _pieces(
    remote: RemoteLogMetadataCache, leader_epochs: LeaderEpochs, log_start: int
) -> Iterator[tuple[RemoteLogSegmentMetadata, int, int]]:
    beyond = (-1, GREATEST_OFFSET + 1)
    for (epoch, start), (_, following) in pairwise([*leader_epochs, beyond]):
        first, last = max(start, log_start), following - 1
        if first <= last:
            for known, begin, end in remote.serving(epoch, first, last):
                yield known.metadata, begin, end


def line_of_leaders(
    remote: RemoteLogMetadataCache, store: ObjectStore, layout: Layout, is_deleted: Callable[[str], bool]
) -> tuple[LeaderEpochs, Loss | None]:
    """The leader epochs by remote storage alone: those that the last segment of the latest leader was copied with.
    Where these cannot be had, each epoch's first offset in any segment, and a finding that says so. Raises
    TieredctlError where nothing can be read from the store.

    Of segments that are deleted by now, which `is_deleted` says of an id, nothing can be read: the epochs are those of
    the last one that is there, and those that only segments say which came later."""
    finished = [
        known.metadata
        for known in remote.list_remote_log_segments()
        if known.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    ]
    joined = EpochRanges.said_by(finished).joined()
    for latest in sorted(finished, key=lambda one: (one.segment_leader_epochs[-1][0], one.end_offset), reverse=True):
        reason, position, entries = None, None, []
        try:
            entries = leader_epoch_entries(layout.open_segment(store, latest).read(Part.LEADER_EPOCH))
            reason = leader_epoch_contradiction(entries, latest) or _later_than_in_segments(entries, dict(joined))
        except DecodeError as error:
            reason, position = error.reason, error.position
        except TieredctlError as error:
            if concerns_all(error):
                raise
            if error.code is ErrorCode.OBJECT_MISSING and is_deleted(latest.segment_id):
                continue
            reason = error.message.removesuffix(".")
        if reason is None:
            line = [(entry.epoch, entry.start_offset) for entry in entries]
            return [*line, *((epoch, start) for epoch, start in joined if epoch > line[-1][0])], None
        losses, code = SegmentLosses(layout, latest), FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED
        return joined, losses.loss(code, Part.LEADER_EPOCH, f"{reason}: {_ALONG_THE_LINE}", position=position)
    return joined, None


def _later_than_in_segments(entries: Sequence[EpochEntry], firsts: Mapping[int, int]) -> str | None:
    """Where a line contradicts what segments have; the first epoch of a line begins where the log began then."""
    for epoch, start in entries[1:]:
        if (first := firsts.get(epoch, start)) < start:
            return f"it has leader epoch {epoch} at offset {start}, but a segment has it at {first}"
    return None


def clipped(spans: Sequence[ServedSpan], first: int, last: int) -> list[ServedSpan]:
    """What of some spans lies between two offsets (inclusive)."""
    within = (span._replace(first=max(span.first, first), last=min(span.last, last)) for span in spans)
    return [span for span in within if span.first <= span.last]
