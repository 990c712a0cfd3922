"""Final states by columns are those of an event-by-event replay, whatever the order of the events."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import PARTITION, segment_id, started, updated
from tests.replay_by_events import RemotePartitionMetadataStore, finished_copies
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl.rlmm.segment_rows import NO_STATE

PARTITIONS = [TopicIdPartition(PARTITION.topic_id, PARTITION.topic, number) for number in range(3)]
SEGMENTS = 6


def event(number: int, start: int, length: int, state: RemoteLogSegmentState, starts: bool) -> MetadataEvent:
    partition = PARTITIONS[number % len(PARTITIONS)]
    if starts:
        return started(number, start, start + length, partition=partition)
    return updated(number, state, partition=partition)


EVENTS = st.lists(
    st.builds(
        event,
        st.integers(0, SEGMENTS - 1),
        st.integers(0, 30),
        st.integers(0, 10),
        st.sampled_from(RemoteLogSegmentState),
        st.booleans(),
    ),
    max_size=40,
)


def by_columns(events: list[MetadataEvent]) -> SegmentStates:
    found = SegmentEvents()
    read_events(EventStream(EventsInMemory(events)), found)
    return segment_states(found)


def by_replay(events: list[MetadataEvent]) -> RemotePartitionMetadataStore:
    store = RemotePartitionMetadataStore(keep_deleted=True)
    store.replay(EventStream(EventsInMemory(events)).records())
    return store


def allowed_starts(events: list[MetadataEvent]) -> list[tuple[int, RemoteLogSegmentMetadata]]:
    """The events that began a copy, with their offsets."""
    store = RemotePartitionMetadataStore()
    starts = []
    for record in EventStream(EventsInMemory(events)).records():
        refused = len(store.findings)
        store.apply(record)
        if isinstance(record.event, RemoteLogSegmentMetadata) and len(store.findings) == refused:
            starts.append((record.metadata_offset, record.event))
    return starts


@settings(max_examples=examples(1_000))
@given(EVENTS)
def test_states_offsets_and_last_events(events: list[MetadataEvent]) -> None:
    found = by_columns(events)
    replayed = {known.metadata.segment_id: known for _, known in by_replay(events).segments()}
    ids = found.ids.to_pylist()

    assert {name for name, state in zip(ids, found.states, strict=True) if state != NO_STATE} == set(replayed)
    for row, name in enumerate(ids):
        if name in replayed:
            known = replayed[name]
            assert found.states[row] == known.metadata.state
            assert found.metadata_offsets[row] == known.metadata_offset
            assert found.start_offsets[row] == known.metadata.start_offset
            assert found.partitions[found.owners[row]] == known.metadata.topic_id_partition


@settings(max_examples=examples(1_000))
@given(EVENTS)
def test_a_copy_is_superseded_by_a_later_one_that_overlaps_it_once_all_its_offsets_are_copied(
    events: list[MetadataEvent],
) -> None:
    found = by_columns(events)
    starts, finished = allowed_starts(events), finished_copies(EventStream(EventsInMemory(events)).records())

    for row, name in enumerate(found.ids.to_pylist()):
        expected = False
        if found.states[row] == RemoteLogSegmentState.COPY_SEGMENT_STARTED:
            began, own = [(at, one) for at, one in starts if one.segment_id == name][-1]
            expected = any(
                at > began
                and one.segment_id != name
                and one.topic_id_partition == own.topic_id_partition
                and one.start_offset <= own.end_offset
                and one.end_offset >= own.start_offset
                for at, one in starts
            ) and {*range(own.start_offset, own.end_offset + 1)} <= {
                offset
                for one in finished
                if one.topic_id_partition == own.topic_id_partition
                for offset in range(one.start_offset, one.end_offset + 1)
            }
        assert found.superseded[row] == expected


def test_metadata_without_events() -> None:
    found = by_columns([])
    assert len(found.ids) == len(found.states) == 0
    assert segment_id(0) not in found.ids.to_pylist()
