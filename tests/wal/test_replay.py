"""Replay of `__remote_wal_log_metadata` by columns tells what replay event by event tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_proposals.formats.wal_records import encode_wal_event
from tieredctl_proposals.model.wal_events import WalEvent
from tieredctl_proposals.wal.events import WalChunk, WalEvents
from tieredctl_proposals.wal.places import partition_of_event
from tieredctl_proposals.wal.replayed import ReplayedWal

from tests.conftest import examples
from tests.metadata_logs import COPIED, DELETED, DELETING, PARTITION, segment_id
from tests.wal.model_wal import chunk_of
from tests.wal.wal_by_events import Place, WalByEvents
from tests.wal_histories import OTHER, combined_started, combined_updated, entry, wal_started, wal_updated
from tieredctl.model.events import RemoteLogSegmentState, TaggedField
from tieredctl.rlmm.states import Refusal

METADATA_PARTITIONS = 2
STATES = list(RemoteLogSegmentState)


@st.composite
def segment_events(draw: st.DrawFn) -> WalEvent:
    number, partition = draw(st.integers(0, 4)), draw(st.sampled_from([PARTITION, OTHER]))
    leader_epoch = draw(st.sampled_from([0, 0, 0, 1, 2, -1]))
    fields: dict[str, Any] = {
        "partition": partition,
        "leader_epoch": leader_epoch,
        "combined_segment_id": segment_id(100 + draw(st.integers(0, 2))),
        "combined_coordinator_partition": draw(st.integers(0, 1)),
        "broker_id": draw(st.integers(0, 3)),
        "custom_metadata": draw(st.sampled_from([None, b"", b"abc"])),
        "tagged_fields": draw(st.sampled_from([(), (), (), (TaggedField("", 3, b"x"),)])),
    }
    if draw(st.booleans()):
        start = draw(st.integers(0, 30))
        end = start + draw(st.integers(0, 10))
        epochs = sorted(draw(st.sets(st.integers(0, 2), min_size=1, max_size=end - start + 1)))
        state = draw(st.sampled_from([STATES[0]] * 5 + STATES))
        positions = (0, 99) if state is COPIED else (-1, -1)
        return wal_started(
            number,
            start,
            end,
            state=state,
            segment_leader_epochs=tuple((epoch, start + row) for row, epoch in enumerate(epochs)),
            start_file_position=positions[0],
            end_file_position=positions[1],
            **fields,
        )
    first = draw(st.integers(0, 1000))
    state = draw(st.sampled_from(STATES))
    return wal_updated(number, state, start_file_position=first, end_file_position=first + 99, **fields)


@st.composite
def combined_events(draw: st.DrawFn) -> WalEvent:
    one, entries = segment_id(100 + draw(st.integers(0, 2))), []
    for number in range(draw(st.integers(1, 4))):
        partition = draw(st.sampled_from([PARTITION, OTHER]))
        entries.append(entry(draw(st.integers(0, 4)), number * 10, number * 10 + 9, partition))
    if draw(st.booleans()):
        begun = [replace(each, start_file_position=-1, end_file_position=-1) for each in entries]
        return combined_started(begun, one, broker_id=draw(st.integers(0, 3)))
    return combined_updated(
        entries, draw(st.sampled_from(STATES)), one, custom_metadata=draw(st.none() | st.just(b"c"))
    )


EVENTS = st.lists(st.one_of(segment_events(), segment_events(), combined_events()), max_size=40)


def placed(events: Sequence[WalEvent]) -> list[tuple[Place, WalEvent]]:
    """Events where they would be written."""
    ends = [0] * METADATA_PARTITIONS
    records = []
    for event in events:
        partition = partition_of_event(event, METADATA_PARTITIONS)
        records.append(((partition, ends[partition]), event))
        ends[partition] += 1
    return records


def chunks(records: Sequence[tuple[Place, WalEvent]], size: int) -> Iterator[WalChunk]:
    for partition in range(METADATA_PARTITIONS):
        own = [(offset, encode_wal_event(event)) for (here, offset), event in records if here == partition]
        for first in range(0, len(own), size):
            yield chunk_of(partition, own[first : first + size])


def replayed(events: Sequence[WalEvent], size: int = 1000) -> ReplayedWal:
    found = WalEvents()
    for chunk in chunks(placed(events), size):
        found.take(chunk)
    return ReplayedWal(found)


@settings(max_examples=examples(100))
@given(EVENTS, st.integers(1, 30), st.integers(1, 12))
def test_columns_tell_what_one_event_after_another_tells(events: list[WalEvent], size: int, repeats: int) -> None:
    events = events * repeats
    expected = WalByEvents()
    expected.replay(placed(events))

    wal = replayed(events, size)

    assert sorted(one[:2] for one in wal.refused) == sorted(expected.refused)
    assert sorted(one[:2] for one in wal.events.stale) == sorted(expected.stale)
    segments = {(one.metadata.topic_id_partition, one.segment_id): one for one in wal.segments_at(every(wal.segments))}
    assert segments.keys() == expected.segments.keys()
    for key, (event, place) in expected.segments.items():
        found = segments[key]
        assert (found.known.metadata_partition, found.known.metadata_offset) == place
        assert found.metadata.state is event.state
        assert found.combined_segment_id == event.combined_segment_id
        assert found.combined_coordinator_partition == event.combined_coordinator_partition
        assert (found.start_file_position, found.end_file_position) == (
            event.start_file_position,
            event.end_file_position,
        )
        assert (found.metadata.author, found.leader_epoch) == (event.broker_id, event.leader_epoch)
    combined = {one.metadata.combined_segment_id: one for one in wal.combined_at(every(wal.combined))}
    assert combined.keys() == expected.combined.keys()
    for one, (event_of_combined, place) in expected.combined.items():
        assert (combined[one].metadata_partition, combined[one].metadata_offset) == place
        assert combined[one].metadata.entries == event_of_combined.entries
        assert combined[one].metadata.state is event_of_combined.state
        assert combined[one].metadata.custom_metadata == event_of_combined.custom_metadata
        assert wal.combined_named(one) == combined[one]


@settings(max_examples=examples(60))
@given(EVENTS)
def test_each_offset_is_served_by_the_uploaded_segment_that_reaches_furthest(events: list[WalEvent]) -> None:
    expected = WalByEvents()
    expected.replay(placed(events))

    wal = replayed(events)

    for partition in (PARTITION, OTHER):
        known = wal.partition(partition)
        for epoch in range(3):
            for offset in range(0, 42, 3):
                ends = [last for first, last in expected.ranges(partition, epoch) if first <= offset <= last]
                found = known.segment_for(epoch, offset)
                assert (found is None) == (not ends)
                if found is not None:
                    assert (epoch, max(ends)) in {(number, last) for number, _, last in found.metadata.epoch_ranges()}


def test_a_repeated_upload_that_is_reported_late_hides_no_longer_one() -> None:
    wal = replayed([wal_started(1, 0, 0), wal_started(2, 0, 9), wal_updated(2, COPIED), wal_updated(1, COPIED)])

    found = wal.partition(PARTITION).segment_for(0, 5)

    assert found is not None
    assert found.segment_id == segment_id(2)


def test_a_shorter_segment_inside_a_longer_one_does_not_end_it() -> None:
    wal = replayed([wal_started(1, 0, 9), wal_updated(1, COPIED), wal_started(2, 2, 3), wal_updated(2, COPIED)])

    assert [wal.partition(PARTITION).segment_for(0, offset) is not None for offset in (0, 3, 5, 9, 10)] == [
        *[True] * 4,
        False,
    ]


def every(rows: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(len(rows))  # type: ignore[arg-type]


def test_overall_architecture_only_metadata_from_the_latest_leader_is_processed() -> None:
    wal = replayed(
        [
            wal_started(1, 0, 9, leader_epoch=3),
            wal_started(2, 5, 12, leader_epoch=4),
            wal_updated(1, COPIED, leader_epoch=3),
            wal_updated(2, COPIED, leader_epoch=4),
        ]
    )

    states = {one.segment_id: one.metadata.state for one in wal.segments_at(every(wal.segments))}
    assert states == {segment_id(1): STATES[0], segment_id(2): COPIED}
    assert [(one.partition, one.leader_epoch) for one in wal.events.stale] == [(PARTITION, 3)]


def test_a_leader_of_the_past_deletes_nothing_of_the_present_one() -> None:
    wal = replayed(
        [
            wal_started(1, 0, 9, leader_epoch=4),
            wal_updated(1, COPIED, leader_epoch=4),
            wal_updated(1, DELETING, leader_epoch=3),
        ]
    )

    assert wal.partition(PARTITION).segment_for(4, 5) is not None


def test_a_cleaner_is_not_a_leader_and_is_believed() -> None:
    wal = replayed(
        [
            wal_started(1, 0, 9, leader_epoch=4),
            wal_updated(1, COPIED, leader_epoch=4),
            wal_updated(1, DELETING, leader_epoch=-1),
        ]
    )

    assert wal.partition(PARTITION).segment_for(4, 5) is None
    assert not wal.events.stale


def test_what_is_reported_as_uploaded_after_its_deletion_began_is_refused() -> None:
    wal = replayed([wal_started(1, 0, 9), wal_updated(1, DELETING), wal_updated(1, COPIED)])

    assert [(one.before, one.after, one.refusal) for one in wal.refused] == [
        (DELETING, COPIED, Refusal.ILLEGAL_TRANSITION)
    ]
    assert wal.partition(PARTITION).segment_for(0, 5) is None


def test_what_no_event_can_be_read_of_is_told_with_its_place() -> None:
    events = WalEvents()
    events.take(chunk_of(1, [(7, b"\x01\x64\x00"), (8, b""), (9, encode_wal_event(wal_started(1, 0, 9)))]))

    assert [(one.metadata_partition, one.metadata_offset) for one in events.undecodable] == [(1, 7), (1, 8)]
    assert len(ReplayedWal(events).segments) == 1


def test_events_of_a_log_whose_beginning_was_deleted_by_retention_are_refused_not_misread() -> None:
    wal = replayed([wal_updated(1, COPIED), combined_updated([entry(1, 0, 9)], DELETED)])

    assert {one.refusal for one in wal.refused} == {Refusal.UNKNOWN_SEGMENT}
    assert (len(wal.segments), len(wal.combined)) == (0, 0)
