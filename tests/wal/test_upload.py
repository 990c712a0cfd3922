"""KIP-1176, "RLMWalCombineTask": the order of events at an upload, and what each interruption leaves."""

from __future__ import annotations

from itertools import product

import pytest
from tieredctl_proposals.model.wal_events import (
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    RemoteWalLogSegmentMetadata,
    RemoteWalLogSegmentMetadataUpdate,
)
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.places import object_key, partition_of_event
from tieredctl_proposals.wal.recovery import recovered_events
from tieredctl_proposals.wal.steps import DeleteObject, Publish, PutObject

from tests.metadata_logs import COPIED, DELETED, DELETING, PARTITION, segment_id
from tests.wal.model_wal import METADATA_PARTITIONS, ModelWal, item, uploading
from tests.wal_histories import OTHER
from tieredctl.model.events import RemoteLogSegmentState

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
ITEMS = [item(1, PARTITION, 0, 9), item(2, OTHER, 50, 52)]
COMBINED = segment_id(100)
KEY = object_key(COMBINED)
NOTHING = None


def state_of(wal: ModelWal) -> tuple[list[RemoteLogSegmentState | None], RemoteLogSegmentState | None, bool]:
    """The states of both segments and of their object by the events, and whether the object is in the store."""
    known = wal.replayed()
    segments = {one.segment_id: one.metadata.state for one in known.segments_in(COMBINED)}
    combined = known.combined_named(COMBINED)
    states = [segments.get(one.metadata.segment_id) for one in ITEMS]
    return states, combined.metadata.state if combined else None, KEY in wal.stored_keys()


def test_the_order_is_that_of_the_proposals_code_not_of_its_prose() -> None:
    wal = ModelWal()

    steps = list(uploading(wal, ITEMS, 100))

    kinds = [type(step.event) if isinstance(step, Publish) else type(step) for step in steps]
    assert kinds == [
        RemoteWalLogSegmentMetadata,
        RemoteWalLogSegmentMetadata,
        RemoteWalCombinedLogSegmentMetadata,
        PutObject,
        RemoteWalCombinedLogSegmentMetadataUpdate,
        RemoteWalLogSegmentMetadataUpdate,
        RemoteWalLogSegmentMetadataUpdate,
    ]
    for step in steps:
        if isinstance(step, Publish):
            assert step.metadata_partition == partition_of_event(step.event, METADATA_PARTITIONS)


def test_positions_are_minus_one_until_the_upload_tells_them() -> None:
    steps = [one.event for one in uploading(ModelWal(), ITEMS, 100) if isinstance(one, Publish)]

    begun, finished = steps[2], steps[3]
    assert isinstance(begun, RemoteWalCombinedLogSegmentMetadata)
    assert isinstance(finished, RemoteWalCombinedLogSegmentMetadataUpdate)
    assert {(one.start_file_position, one.end_file_position) for one in begun.entries} == {(-1, -1)}
    told = [(one.start_file_position, one.end_file_position) for one in finished.entries]
    assert told == [
        (one.start_file_position, one.end_file_position)
        for one in steps[4:]
        if isinstance(one, RemoteWalLogSegmentMetadataUpdate)
    ]


@pytest.mark.parametrize(
    ("steps", "segments", "combined", "is_stored"),
    [
        (0, [NOTHING, NOTHING], NOTHING, False),
        (1, [STARTED, NOTHING], NOTHING, False),
        (2, [STARTED, STARTED], NOTHING, False),
        (3, [STARTED, STARTED], STARTED, False),
        (4, [STARTED, STARTED], STARTED, True),
        (5, [STARTED, STARTED], COPIED, True),
        (6, [COPIED, STARTED], COPIED, True),
        (7, [COPIED, COPIED], COPIED, True),
    ],
)
def test_what_each_interruption_leaves_and_that_a_deletion_takes_all_of_it_away(
    steps: int, segments: list[RemoteLogSegmentState | None], combined: RemoteLogSegmentState | None, is_stored: bool
) -> None:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100), steps)
    assert state_of(wal) == (segments, combined, is_stored)

    wal.do(deletion_steps(wal.replayed(), COMBINED, broker_id=2, clock_ms=wal.clock_ms))

    assert state_of(wal) == (
        [None if state is None else DELETED for state in segments],
        None if combined is None else DELETED,
        False,
    )
    assert not wal.replayed().refused


def test_a_deletion_interrupted_anywhere_is_resumed() -> None:
    for uploaded, interrupted in product(range(8), range(8)):
        wal = ModelWal()
        wal.do(uploading(wal, ITEMS, 100), uploaded)
        wal.do(deletion_steps(wal.replayed(), COMBINED, broker_id=2, clock_ms=wal.clock_ms), interrupted)

        wal.do(deletion_steps(wal.replayed(), COMBINED, broker_id=3, clock_ms=wal.clock_ms))

        case = uploaded, interrupted
        segments, combined, is_stored = state_of(wal)
        assert {*segments, combined} <= {None, DELETED}, case
        assert not is_stored, case
        assert not wal.replayed().refused, case


def test_a_deletion_goes_through_the_states_of_kip_405_before_and_after_the_object() -> None:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100))

    steps = list(deletion_steps(wal.replayed(), COMBINED, broker_id=2, clock_ms=wal.clock_ms))

    told = [step.event.state if isinstance(step, Publish) else type(step) for step in steps]
    assert told == [*[DELETING] * 3, DeleteObject, *[DELETED] * 3]


def test_a_resumed_deletion_announces_nothing_twice() -> None:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100))
    wal.do(deletion_steps(wal.replayed(), COMBINED, broker_id=2, clock_ms=wal.clock_ms), 3)

    steps = list(deletion_steps(wal.replayed(), COMBINED, broker_id=3, clock_ms=wal.clock_ms))

    told = [step.event.state if isinstance(step, Publish) else type(step) for step in steps]
    assert told == [DeleteObject, *[DELETED] * 3]


def test_an_upload_that_hung_during_its_deletion_leads_no_reader_to_an_object_that_is_gone() -> None:
    for hung_after in range(1, 7):
        wal = ModelWal()
        upload = list(uploading(wal, ITEMS, 100))
        wal.do(upload[:hung_after])
        wal.do(deletion_steps(wal.replayed(), COMBINED, broker_id=2, clock_ms=wal.clock_ms))

        wal.do(upload[hung_after:])

        known = wal.replayed()
        for one in known.segments_in(COMBINED):
            assert not one.is_readable or KEY in wal.stored_keys(), hung_after
        wal.do(deletion_steps(known, COMBINED, broker_id=2, clock_ms=wal.clock_ms))
        assert not wal.stored_keys(), hung_after
        assert {one.metadata.state for one in wal.replayed().segments_in(COMBINED)} <= {DELETED}, hung_after


def test_an_upload_can_be_repeated_copy_log_segment_data_is_idempotent() -> None:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100), 6)
    wal.do(uploading(wal, ITEMS, 101))

    known = wal.replayed()
    assert len(wal.stored_keys()) == 2
    assert {one.combined_segment_id for one in known.segments_in(segment_id(101))} == {segment_id(101)}
    put = next(step for step in uploading(wal, ITEMS, 101) if isinstance(step, PutObject))
    wal.do([put])
    assert wal.store.read(put.key) == put.data


def test_without_its_metadata_an_object_tells_all_but_who_was_leader_and_what_came_later() -> None:
    wal = ModelWal()
    wal.do(uploading(wal, ITEMS, 100))
    stored = wal.store.head(KEY)
    assert stored is not None

    rebuilt = ModelWal(wal.store)
    rebuilt.do(recovered_events(wal.store, stored, METADATA_PARTITIONS))

    assert state_of(rebuilt) == state_of(wal)
    for ours, theirs in zip(
        rebuilt.replayed().segments_in(COMBINED), wal.replayed().segments_in(COMBINED), strict=True
    ):
        assert ours.metadata == theirs.metadata
        assert (ours.start_file_position, ours.end_file_position) == (
            theirs.start_file_position,
            theirs.end_file_position,
        )
