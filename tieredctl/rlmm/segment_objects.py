"""Segments as objects, made of some rows of what replay leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import SegmentRows

_STATES = tuple(RemoteLogSegmentState)
_STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
_AT_ONCE = 1 << 12


def known_segments(events: SegmentEvents, segments: SegmentRows) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
    """Each of some segments, which `events` describe, with its partition."""
    partitions = list(events.partitions)
    for first in range(0, len(segments), _AT_ONCE):
        yield from _known(events, partitions, segments.at(np.arange(first, min(first + _AT_ONCE, len(segments)))))


def event_timestamps(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """Of the last events of some segments, in milliseconds since the epoch."""
    return events.contents.event_timestamps(_are_started(segments), segments.lasts)


def entered_ms(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """When some segments entered their states, in milliseconds since the epoch: events that say a state again do not
    count."""
    return events.contents.event_timestamps(_are_started(segments), segments.entries)


def authors(events: SegmentEvents, segments: SegmentRows) -> Ints:
    """Who wrote the last events of some segments."""
    return events.contents.authors(_are_started(segments), segments.lasts)


def custom_metadata(events: SegmentEvents, segments: SegmentRows) -> list[bytes | None]:
    """As the last events of some segments say it."""
    started, contents = _are_started(segments), events.contents
    found: list[bytes | None] = [None] * len(segments)
    for which, said in ((started, contents.starts.said), (~started, contents.updates.said)):
        places = np.flatnonzero(which)
        for place, custom in zip(places.tolist(), said.customs.of(segments.lasts[places]), strict=True):
            found[place] = custom
    return found


def have_custom_metadata(events: SegmentEvents, segments: SegmentRows) -> Flags:
    """Whether the last events of some segments have any."""
    started, contents = _are_started(segments), events.contents
    found = np.empty(len(segments), np.bool_)
    for which, said in ((started, contents.starts.said), (~started, contents.updates.said)):
        found[which] = said.customs.are_of(segments.lasts[which])
    return found


def _are_started(segments: SegmentRows) -> Flags:
    """Whose last event is the one that their copy began with."""
    started: Flags = segments.states == _STARTED
    return started


def _known(
    events: SegmentEvents, partitions: list[TopicIdPartition], segments: SegmentRows
) -> Iterator[tuple[TopicIdPartition, KnownSegment]]:
    columns = zip(
        (partitions[number] for number in segments.partitions.tolist()),
        segments.segment_ids.texts(),
        events.contents.starts.objects(segments.starts),
        authors(events, segments).tolist(),
        event_timestamps(events, segments).tolist(),
        custom_metadata(events, segments),
        segments.states.tolist(),
        segments.metadata_partitions.tolist(),
        segments.metadata_offsets.tolist(),
        entered_ms(events, segments).tolist(),
        segments.tries.tolist(),
        strict=True,
    )
    for partition, segment_id, said, author, timestamp_ms, custom, state, *history in columns:
        metadata = RemoteLogSegmentMetadata(
            topic_id_partition=partition,
            segment_id=segment_id,
            author=author,
            event_timestamp_ms=timestamp_ms,
            custom_metadata=custom,
            state=_STATES[state],
            **said,
        )
        yield partition, KnownSegment(metadata, *history)
