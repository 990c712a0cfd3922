"""Which offsets of a partition one task reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from tieredctl.model.findings import Finding
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.lost_records import LostRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import GREATEST_OFFSET, Isolation, Moment, OnDamage, RecordPlace, RecordRequest
from tieredctl.records.served_spans import ServedSpan, clipped
from tieredctl.records.time_lookup import offset_of_time

TASK_BYTES = 256 << 20
"""The bytes of logs, as brokers wrote them; a task reads about as many."""
_BYTES_IN_FLIGHT = 8 << 20
"""The bytes that a task asks for ahead: executors have little memory for Python, and other tasks ask meanwhile."""
_MOST_SPANS_SENT = 200_000
"""How many spans all tasks of a partition are told together."""


@dataclass(frozen=True, slots=True)
class RecordShare:
    """What one task reads: what a request asks for of a partition, of which it is told what it needs."""

    remote: RemotePartition
    request: RecordRequest
    findings: Sequence[Finding] = ()
    """What makes all that is read doubtful; of a partition's first share alone."""
    continues: bool = False
    """Whether others read the records before its own."""
    passes_over_deleted: bool = False
    """Whether what is deleted before it is read fails no task."""


class _Stretch(NamedTuple):
    first: int
    size: int


def record_shares(
    remote: RemotePartition,
    store: ObjectStore,
    layout: SegmentObjects,
    request: RecordRequest,
    findings: Sequence[Finding] = (),
    *,
    task_bytes: int = TASK_BYTES,
    continues: bool = False,
) -> list[RecordShare]:
    """Shares that together read what the request asks for, each offset once, in order. `findings` are what makes the
    metadata doubtful; `continues` says that what comes before was read already. Raises LostRecords for findings where
    the request says so, and as a look-up of times does."""
    findings = [*findings, *remote.findings]
    if findings and request.on_damage is OnDamage.FAIL:
        raise LostRecords(findings[0])
    first = place_offset(request.start, remote, store, layout, request)
    end = place_offset(request.end, remote, store, layout, request, is_end=True)
    last = min(GREATEST_OFFSET + 1 if end is None else end, remote.end_offset or 0) - 1
    bounds = [*_bounds(remote, first or 0, last, request.isolation, task_bytes), last + 1]
    return [
        RecordShare(
            _told(remote, begin, until - 1, request.isolation),
            replace(request, start=begin, end=until, bytes_in_flight=_BYTES_IN_FLIGHT),
            () if number else findings,
            continues or number > 0,
        )
        for number, (begin, until) in enumerate(pairwise(bounds))
    ]


def place_offset(
    place: RecordPlace,
    remote: RemotePartition,
    store: ObjectStore,
    layout: SegmentObjects,
    request: RecordRequest,
    *,
    is_end: bool = False,
) -> int | None:
    """The offset of a place that a request names. Of a time at which reading begins, it is that of what cannot be read
    before it is found, and one at which it ends comes after that: so a share meets it."""
    if not isinstance(place, Moment):
        return place
    looked_up = offset_of_time(store, layout, remote.spans, place.timestamp_ms, most_unfolded=request.most_unfolded)
    while True:
        try:
            loss = next(looked_up)
        except StopIteration as found:
            return GREATEST_OFFSET + 1 if found.value is None else int(found.value)
        if loss.offsets is None or is_end:
            continue
        if request.on_damage is OnDamage.FAIL:
            raise LostRecords(loss.finding)
        return loss.offsets[0]


def _bounds(remote: RemotePartition, first: int, last: int, isolation: Isolation, task_bytes: int) -> list[int]:
    """The first offset of each share, in order."""
    spans = clipped(remote.spans, first, last)
    if not spans:
        return [first] if any(remote.holes(first, last)) else []
    if isolation is Isolation.READ_COMMITTED:
        if not remote.spans[-1].reaches_end:
            return [first]  # where a transaction stays open, only one reading of all that follows tells
        sizes = sum(stretch.size for span in spans for stretch in _stretches(span, task_bytes))
        task_bytes = max(task_bytes, sizes * len(remote.spans) // _MOST_SPANS_SENT)
    bounds, room = [first], task_bytes
    for stretch in (stretch for span in spans for stretch in _stretches(span, task_bytes)):
        if stretch.size > room and stretch.first > first:
            bounds.append(stretch.first)
            room = task_bytes
        room -= stretch.size
    return bounds


def _stretches(span: ServedSpan, task_bytes: int) -> Iterator[_Stretch]:
    """A span in pieces of about equal size, none of which is larger than a task."""
    segment = span.segment
    offsets = span.last - span.first + 1
    whole = segment.end_offset - segment.start_offset + 1
    size = task_bytes if segment.known_size is None else segment.known_size * offsets // whole
    pieces = min(max(-(-size // task_bytes), 1), offsets)
    for piece in range(pieces):
        yield _Stretch(span.first + offsets * piece // pieces, size // pieces)


def _told(remote: RemotePartition, first: int, last: int, isolation: Isolation) -> RemotePartition:
    """What a share must know of the partition: how a transaction ended may be told by any later segment; otherwise its
    own spans are enough, and the ones around them, up to which offsets may be missing."""
    if isolation is Isolation.READ_COMMITTED:
        return remote
    own = [span for span in remote.spans if span.last >= first and span.first <= last]
    before = [span for span in remote.spans if span.last < first][-1:]
    following = [span for span in remote.spans if span.first > last][:1]
    return replace(remote, spans=[*before, *own, *following], findings=())
