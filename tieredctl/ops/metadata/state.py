"""What the metadata says after replay: segments, look-ups, leader epochs, copies and deletions that are stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Ints
from tieredctl.model.clock import Clock, is_after
from tieredctl.model.events import EventRecord, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.quantities import age_text
from tieredctl.ops.documents import partition_document, segment_document
from tieredctl.ops.metadata.event_reading import read_events, selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection, one_partition
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.failed_copies import FailingCopy
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

_STUCK = {
    RemoteLogSegmentState.COPY_SEGMENT_STARTED: (FindingCode.COPY_STUCK, "copy started"),
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED: (FindingCode.DELETE_STUCK, "deletion started"),
}


def replayed(
    stream: EventStream, selection: Selection = Selection(), *, keep_deleted: bool = False
) -> ReplayedMetadata:
    """The state of the selected partitions after all events of a stream; its findings are added to the stream's."""
    events = SegmentEvents(is_described=True, selects=None if selection == Selection() else selection.has)
    read_events(stream, events)
    metadata = ReplayedMetadata(events, keep_deleted=keep_deleted)
    stream.findings += stream.not_explained(metadata.findings)
    return metadata


def segments(metadata: ReplayedMetadata, selection: Selection, state: RemoteLogSegmentState | None = None) -> Ints:
    """The rows of segments by topic, partition, start offset."""
    rows = metadata.order if state is None else metadata.in_states([state])
    return metadata.selected(rows, selection.has, selection.segment_ids)


def partition_of_today(
    present: Iterable[TopicIdPartition],
    selection: Selection,
    stream: EventStream,
    topic_id_of: Callable[[str], str | None],
) -> TopicIdPartition:
    """The one partition that is selected; where its topic was recreated, the one that has the topic id of today,
    which `topic_id_of` gives by name, None where that is unknown. Raises TieredctlError as `one_partition` does."""
    partitions = list(present)
    try:
        return one_partition(partitions, selection, stream)
    except TieredctlError as error:
        if error.code is not ErrorCode.AMBIGUOUS_TOPIC or not selection.topics:
            raise
        today = topic_id_of(selection.topics[0])
        if today is None:
            raise
    return one_partition(partitions, replace(selection, topic_ids=(today,)), stream)


def history(stream: EventStream, segment_id: str) -> Iterator[EventRecord]:
    """All events of one segment, in the order of the topic."""
    return selected_records(stream, Selection.of(segment_id=segment_id))


class Lookup(NamedTuple):
    """The answer to a fetch: the segment that serves it, or why none does."""

    segment: KnownSegment | None
    reason: str | None


def lookup(cache: RemoteLogMetadataCache, epoch: int, offset: int) -> Lookup:
    """What a broker's remoteLogSegmentMetadata(epoch, offset) gives for a partition."""
    segment = cache.remote_log_segment_metadata(epoch, offset)
    return Lookup(segment, None if segment else _why_not(cache, epoch, offset))


def _why_not(cache: RemoteLogMetadataCache, epoch: int, offset: int) -> str:
    epochs = cache.epochs()
    if epoch not in epochs:
        return f"no segment has leader epoch {epoch}; known are {', '.join(map(str, epochs))}"
    highest = cache.highest_offset_for_epoch(epoch)
    if highest is None:
        return f"no segment with leader epoch {epoch} has finished copying"
    if offset > highest:
        return f"offset {offset} is above {highest}, the highest copied for leader epoch {epoch}"
    held = [
        (start, end)
        for segment in cache.list_remote_log_segments(epoch)
        if segment.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        for e, start, end in segment.metadata.epoch_ranges()
        if e == epoch
    ]
    if not held:
        return f"every segment with leader epoch {epoch} was deleted or is being deleted"
    if offset < min(held)[0]:
        return f"offset {offset} is below {min(held)[0]}, the first that leader epoch {epoch} still holds"
    return f"offset {offset} lies in a gap of leader epoch {epoch}"


class Stuck(NamedTuple):
    """What is stuck, and a finding about what may be, as its age is unknown."""

    found: list[Finding]
    unknown: list[Finding]


def stuck(store: ReplayedMetadata, selection: Selection, clock: Clock) -> Stuck:
    """Copies and deletions that began longer ago than the clock's limit and never ended, oldest first. That a broker
    tries again does not make them younger."""
    rows = store.selected(store.in_states(_STUCK), selection.has, selection.segment_ids)
    times = store.entered_ms(rows)
    old = np.flatnonzero(clock.now_ms - times > clock.older_than_ms)
    oldest_first = rows[old[np.argsort(times[old], kind="stable")]]
    findings = [stuck_finding(segment, clock.now_ms) for _, segment in store.known(oldest_first)]
    return Stuck(findings, undated(times.tolist(), clock.now_ms))


def ages_unknown(store: ReplayedMetadata, now_ms: int) -> list[Finding]:
    """The finding about copies and deletions that never ended and began after now by their events; none where none
    did."""
    return undated(store.entered_ms(store.in_states(_STUCK)).tolist(), now_ms)


def unfinished(store: ReplayedMetadata) -> list[KnownSegment]:
    """The segments that are neither in COPY_SEGMENT_FINISHED nor gone, those first that have been so for longest."""
    rows = store.in_states(_STUCK)
    oldest_first = rows[np.argsort(store.entered_ms(rows), kind="stable")]
    return [segment for _, segment in store.known(oldest_first)]


def stuck_among(unfinished: Sequence[KnownSegment], clock: Clock) -> Stuck:
    """Stuck copies and deletions among segments that neither are in COPY_SEGMENT_FINISHED nor gone, in their order."""
    old = [segment for segment in unfinished if clock.now_ms - segment.entered_ms > clock.older_than_ms]
    findings = [stuck_finding(segment, clock.now_ms) for segment in old]
    return Stuck(findings, undated([segment.entered_ms for segment in unfinished], clock.now_ms))


def undated(times: Iterable[int], now_ms: int) -> list[Finding]:
    """The finding about copies and deletions that began at these times and never ended, where some are after now."""
    later = [moment for moment in times if is_after(moment, now_ms)]
    if not later:
        return []
    began = "copy or deletion that never ended is" if len(later) == 1 else "copies and deletions that never ended are"
    message = f"{len(later)} {began} dated after now: one of the clocks is wrong, and whether they are stuck is unknown"
    return [Finding(FindingCode.CHECK_NOT_MADE, "ages", message, {"segments": len(later), "nowMs": now_ms})]


def stuck_finding(segment: KnownSegment, now_ms: int) -> Finding:
    """A segment that is neither in COPY_SEGMENT_FINISHED nor gone, as a finding with its age."""
    metadata = segment.metadata
    code, what = _STUCK[metadata.state]
    age_ms, last_ms = now_ms - segment.entered_ms, max(0, now_ms - metadata.event_timestamp_ms)
    began = f"{what} {age_text(age_ms)} ago"
    tried = f"by broker {metadata.author} and never ended"
    if segment.tries > 1:
        tried = (
            f"and never ended in {segment.tries} tries, the last {age_text(last_ms)} ago by broker {metadata.author}"
        )
    return Finding(
        code,
        f"{metadata.topic_id_partition} {metadata.segment_id}",
        f"{began} {tried}",
        segment_document(segment) | {"ageMs": age_ms, "tries": segment.tries},
        about=SegmentSubject(metadata.topic_id_partition, None, metadata.segment_id),
    )


_TRIES = 3
_NOT_SINCE_MS = 3_600_000
"""Leaders try every remote.log.manager.task.interval.ms, 30 s by default. Who has not tried for so long has stopped:
the topic was deleted, or its leader is gone."""


def failing_copies(metadata: ReplayedMetadata, now_ms: int) -> list[FailingCopy]:
    """The partitions that now fail, by topic, topic id, partition: one failure or two may pass."""
    tried = metadata.failing_copies(at_least=_TRIES)
    return sorted((one for one in tried if now_ms - one.last_ms <= _NOT_SINCE_MS), key=lambda one: one.partition)


def failing_finding(copy: FailingCopy, now_ms: int) -> Finding:
    """Such a partition as a finding."""
    age_ms, last_ms = max(0, now_ms - copy.since_ms), max(0, now_ms - copy.last_ms)  # one may come while this is read
    return Finding(
        FindingCode.COPY_FAILING,
        f"{copy.partition.topic}-{copy.partition.partition}",
        f"the copy at offset {copy.start_offset} has failed {copy.tries} times in {age_text(age_ms)}, the last "
        f"{age_text(last_ms)} ago by broker {copy.author}, and none has finished since",
        {
            **partition_document(copy.partition),
            "segmentId": copy.segment_id,
            "startOffset": copy.start_offset,
            "endOffset": copy.end_offset,
            "brokerId": copy.author,
            "ageMs": age_ms,
            "tries": copy.tries,
            "sinceMs": copy.since_ms,
            "lastMs": copy.last_ms,
        },
        about=PartitionSubject(copy.partition, (copy.start_offset, copy.end_offset)),
    )
