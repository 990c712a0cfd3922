"""A copy that never ended is given up once another of its offsets began, however many began in between, if all of its
offsets were copied."""

from __future__ import annotations

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import copied, segment_id, started
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import segment_states
from tieredctl.rlmm.segment_events import SegmentEvents

COPIED = copied(1000, 0, 9)


def is_superseded(number: int, events: list[MetadataEvent]) -> bool:
    found = SegmentEvents()
    read_events(EventStream(EventsInMemory(events)), found)
    states = segment_states(found)
    return bool(states.superseded[states.ids.to_pylist().index(segment_id(number))])


def elsewhere(count: int) -> list[MetadataEvent]:
    return [started(number, 10 * number, 10 * number + 9) for number in range(1, count + 1)]


def test_only_a_later_copy_that_overlaps_it_supersedes_it() -> None:
    for between in (0, 1, 63, 64, 200):
        hanging = [*COPIED, started(0, 0, 9), *elsewhere(between)]
        before = [*COPIED, started(between + 1, 0, 9), *elsewhere(between), started(0, 0, 9)]

        assert is_superseded(0, [*hanging, started(between + 1, 5, 9)]), between
        assert not is_superseded(0, hanging), between
        assert not is_superseded(0, before), between
