"""What `recover indexes` finds out about a segment of a real cluster, what it plans and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured, key_of, made_of, update
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.faults.segments_made import transactions
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.indexes import AbortedTransaction, encode_transaction_index
from tieredctl.formats.record_batches import ControlType
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.guards.lease import Unguarded
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.healing.index_applying import IndexRecovery, IndexRecoveryOutcome
from tieredctl.ops.healing.index_plan import Action, IndexRecoveryPlan, plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import demand_conditional_writes
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import RESERVED_FOLDER, Capability, StoredObject
from tieredctl.storage.memory import MemoryStore

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment of orders7-0 with aborted transactions, so one with all six objects; not the first of its partition."""
INTERVAL = 4_096
REBUILT = (Part.OFFSET_INDEX, Part.TIME_INDEX, Part.TRANSACTION_INDEX, Part.PRODUCER_SNAPSHOT)
GARBAGE = b"seven b"
PRODUCER = 71


@pytest.fixture(scope="module")
def cluster(captures: Path) -> Cluster:
    """The partition of the segment alone."""
    whole = captured(captures / "kafka-4.3.1")
    return whole.only(metadata_in(whole).topic_id_partition)


def metadata_in(cluster: Cluster, segment_id: str = SEGMENT_ID) -> RemoteLogSegmentMetadata:
    return next(one for one in cluster.finished() if one.segment_id == segment_id)


def before(cluster: Cluster, metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    return next(
        one
        for one in cluster.finished()
        if one.topic_id_partition == metadata.topic_id_partition and one.end_offset == metadata.start_offset - 1
    )


def stream_of(cluster: Cluster) -> EventStream:
    return EventStream(EventsInMemory(cluster.events))


def plan(cluster: Cluster, store: MemoryStore | None = None, segment_id: str = SEGMENT_ID) -> IndexRecoveryPlan:
    segment = SegmentsOnce.of(stream_of(cluster)).finished(segment_id)
    return plan_index_recovery(segment, store or cluster.store(), LAYOUT, INTERVAL)


def actions(planned: IndexRecoveryPlan) -> dict[Part, Action]:
    """Of the parts about which something is to be done."""
    return {one.found.part: one.action for one in planned.parts if one.action is not Action.NONE}


@dataclass
class Recovery:
    """A plan that is carried out on a store."""

    cluster: Cluster
    store: MemoryStore
    planned: IndexRecoveryPlan

    def run(self, read: Callable[[], EventStream] | None = None) -> IndexRecoveryOutcome:
        recovery = IndexRecovery([self.planned], self.store, read or (lambda: stream_of(self.cluster)), lambda: 0)
        return recovery.run(Unguarded(StoreClock(lambda: 0, 0)))

    def objects(self) -> dict[str, bytes]:
        return {one.key: self.store.read(one.key) for one in self.store.list()}


def recovery(cluster: Cluster) -> Recovery:
    store = cluster.store()
    return Recovery(cluster, store, plan(cluster, store))


def test_nothing_is_to_be_done_about_any_sound_segment(cluster: Cluster) -> None:
    store = cluster.store()

    found = {one.segment_id: actions(plan(cluster, store, one.segment_id)) for one in cluster.finished()}

    assert [segment for segment, planned in found.items() if planned] == []


def test_a_part_that_is_missing_or_damaged_is_mended_byte_for_byte(cluster: Cluster) -> None:
    metadata = metadata_in(cluster)
    for part in REBUILT:
        for broken, action in (
            (cluster.without_part(metadata, part), Action.PUT),
            (cluster.with_part(metadata, part, GARBAGE), Action.REPLACE),
        ):
            mending = recovery(broken)

            outcome = mending.run()

            left = {key: data for key, data in mending.objects().items() if not key.startswith(RESERVED_FOLDER)}
            assert actions(mending.planned) == {part: action}, (part, action)
            assert (outcome.is_complete, left == cluster.objects) == (True, True), (part, action)


def test_all_parts_are_mended_at_once(cluster: Cluster) -> None:
    metadata, broken = metadata_in(cluster), cluster
    for part in REBUILT:
        broken = broken.without_part(metadata, part)
    mending = recovery(broken)

    mending.run()

    assert mending.objects() == cluster.objects


def test_what_is_replaced_is_kept_in_quarantine_and_nothing_is_left_to_do(cluster: Cluster) -> None:
    # What is replaced is kept in quarantine.
    mending = recovery(cluster.with_part(metadata_in(cluster), Part.TIME_INDEX, GARBAGE))
    outcome = mending.run()
    (segment,) = outcome.segments
    assert mending.store.read(segment.quarantined[Part.TIME_INDEX]) == GARBAGE
    assert segment.quarantined[Part.TIME_INDEX].startswith(".tieredctl/quarantine/")
    # Nothing is left to do afterwards.
    mending = recovery(cluster.with_part(metadata_in(cluster), Part.OFFSET_INDEX, GARBAGE))
    mending.run()
    again = plan(cluster, mending.store)
    assert actions(again) == {}


def half_kept(store: MemoryStore, key: str, data: bytes) -> StoredObject | None:
    return MemoryStore.put_if_absent(store, key, data[: len(data) // 2])


def not_kept(_store: MemoryStore, key: str, data: bytes) -> StoredObject | None:
    return StoredObject(key, len(data), 0, "1")


@pytest.mark.parametrize("put", [half_kept, not_kept])
def test_what_the_store_did_not_keep_is_not_called_written(
    cluster: Cluster, put: Callable[[MemoryStore, str, bytes], StoredObject | None]
) -> None:
    mending = recovery(cluster.without_part(metadata_in(cluster), Part.TIME_INDEX))
    mending.store.put_if_absent = partial(put, mending.store)  # type: ignore[method-assign]

    outcome = mending.run()

    assert (outcome.written, outcome.left, outcome.is_complete) == (0, 1, False)
    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED


def test_without_the_segment_before_what_needs_no_producers_is_mended(cluster: Cluster) -> None:
    metadata = metadata_in(cluster)
    alone = cluster.without_events_of(before(cluster, metadata))
    for part in REBUILT:
        alone = alone.without_part(metadata, part)

    planned = plan(alone)

    assert actions(planned) == {
        Part.OFFSET_INDEX: Action.PUT,
        Part.TIME_INDEX: Action.PUT,
        Part.TRANSACTION_INDEX: Action.IMPOSSIBLE,
        Part.PRODUCER_SNAPSHOT: Action.IMPOSSIBLE,
    }
    assert "no segment in remote storage ends at offset 38" in str(planned.impossible()[0].obstacle)


def test_the_producers_of_a_segment_whose_predecessor_lost_its_snapshot_are_not_known(cluster: Cluster) -> None:
    cases: list[tuple[bytes | None, str]] = [(None, "is not in the store"), (GARBAGE, "is damaged")]
    for data, why in cases:
        metadata, part = metadata_in(cluster), Part.PRODUCER_SNAPSHOT
        earlier = before(cluster, metadata)
        broken = cluster.without_part(metadata, part)
        broken = broken.without_part(earlier, part) if data is None else broken.with_part(earlier, part, data)
        planned = plan(broken)
        assert actions(planned) == {part: Action.IMPOSSIBLE}, (data, why)
        obstacle = str(planned.impossible()[0].obstacle)
        assert f"the producer snapshot of segment {earlier.segment_id}, which must be rebuilt first, {why}" in obstacle


def test_the_segment_before_counts_only_if_the_same_leaders_wrote_it(cluster: Cluster) -> None:
    metadata = metadata_in(cluster)
    elsewhere = ((1, before(cluster, metadata).start_offset),)
    other = cluster.with_start_changed(before(cluster, metadata), segment_leader_epochs=elsewhere)
    planned = plan(other.without_part(metadata, Part.PRODUCER_SNAPSHOT))
    assert actions(planned) == {Part.PRODUCER_SNAPSHOT: Action.IMPOSSIBLE}
    # The segment before is not known without the checkpoint of leader epochs.
    metadata = metadata_in(cluster)
    broken = cluster.without_part(metadata, Part.LEADER_EPOCH).without_part(metadata, Part.PRODUCER_SNAPSHOT)
    planned = plan(broken)
    obstacles = {one.found.part: one.obstacle for one in planned.impossible()}
    assert "does not show which leader wrote what is before it" in str(obstacles[Part.PRODUCER_SNAPSHOT])


def marker_alone() -> tuple[WrittenSegment, WrittenSegment]:
    """Two segments: in the first is all of a transaction but its ABORT marker, which alone is in the second."""
    writer = SegmentWriter()
    writer.append(writer.data(3, producer=PRODUCER))
    first = writer.close()
    writer.begin_epoch(1)
    last = SegmentWriter(start_offset=writer.next_offset, leader_epoch=1, epochs_before=((0, 0),))
    last.know_producers_of(writer)
    last.append(writer.marker(PRODUCER, ControlType.ABORT))
    last.next_offset += 1
    return first, last.close(txn_idx_empty=False)


def test_a_transaction_is_missed_that_has_only_its_marker_in_the_segment() -> None:
    # An aborted transaction is missed that has only its marker in the segment. By the segment alone, as `verify`
    # looks at it, it might have been empty: only the producers before it tell.
    first, last = marker_alone()
    made = made_of([first, last])
    planned = plan(made, segment_id=last.metadata.segment_id)
    (part,) = [one for one in planned.to_write() if one.found.part is Part.TRANSACTION_INDEX]
    assert part.action is Action.PUT
    assert part.rebuilt == encode_transaction_index([AbortedTransaction(PRODUCER, 0, 3, 4)])
    assert made.findings() == []
    # A transaction index without an earlier transaction is damaged.
    first, last = marker_alone()
    made = made_of([first, last]).with_part(last.metadata, Part.TRANSACTION_INDEX, b"")
    planned = plan(made, segment_id=last.metadata.segment_id)
    assert actions(planned) == {Part.TRANSACTION_INDEX: Action.REPLACE}
    # At offset 0 there were no producers.
    made = made_of([transactions(start_offset=0)])
    (metadata,) = made.finished()
    mending_of = made.without_part(metadata, Part.TRANSACTION_INDEX)
    planned = plan(mending_of, segment_id=metadata.segment_id)
    (part,) = planned.to_write()
    assert part.rebuilt == made.data(metadata, Part.TRANSACTION_INDEX)


def test_a_transaction_index_that_brokers_would_never_fetch_is_not_made(cluster: Cluster) -> None:
    cases: list[bytes | None] = [None, GARBAGE]
    for data in cases:
        metadata, part = metadata_in(cluster), Part.TRANSACTION_INDEX
        told = cluster.with_start_changed(metadata, txn_idx_empty=True)
        broken = told.without_part(metadata, part) if data is None else told.with_part(metadata, part, data)
        planned = plan(broken)
        assert actions(planned) == {part: Action.IMPOSSIBLE}, data
        assert "brokers would never fetch the index" in str(planned.impossible()[0].obstacle), data


def test_nothing_is_rebuilt_from_a_log_that_is_not_sound(cluster: Cluster) -> None:
    metadata = metadata_in(cluster)
    log = bytearray(cluster.data(metadata, Part.LOG))
    log[-1] ^= 1
    broken = cluster.with_part(metadata, Part.LOG, bytes(log)).without_part(metadata, Part.TIME_INDEX)
    planned = plan(broken)
    assert actions(planned) == {Part.TIME_INDEX: Action.IMPOSSIBLE}
    assert "CRC-32C does not match" in str(planned.log_damage)
    # Nothing is rebuilt from a log of unknown size.
    metadata = metadata_in(cluster)
    broken = cluster.without_part(metadata, Part.TIME_INDEX).with_start_changed(metadata, segment_size_in_bytes=-1)
    with pytest.raises(TieredctlError, match="whether its log is whole is unknown") as error:
        plan(broken)
    assert error.value.code is ErrorCode.METADATA_INCOMPLETE
    # Nothing is rebuilt without a log.
    metadata = metadata_in(cluster)
    broken = cluster.without_part(metadata, Part.LOG).without_part(metadata, Part.TIME_INDEX)
    planned = plan(broken)
    assert actions(planned) == {Part.TIME_INDEX: Action.IMPOSSIBLE}
    assert planned.log_damage == "it is not in the store"
    # A checkpoint of leader epochs is not rebuilt.
    planned = plan(cluster.without_part(metadata_in(cluster), Part.LEADER_EPOCH))
    assert actions(planned) == {Part.LEADER_EPOCH: Action.IMPOSSIBLE}


def test_a_segment_that_is_being_deleted_or_that_nobody_knows_is_refused(cluster: Cluster) -> None:
    # A segment that is being deleted is refused.
    deleting = update(metadata_in(cluster), RemoteLogSegmentState.DELETE_SEGMENT_STARTED)
    with pytest.raises(TieredctlError, match="DELETE_SEGMENT_STARTED"):
        plan(cluster.with_events(deleting))
    # A segment that nobody knows is refused.
    with pytest.raises(TieredctlError, match="no segment") as raised:
        plan(cluster, segment_id="AAAAAAAAAAAAAAAAAAAAAA")
    assert raised.value.code == "unknown-segment"


def test_nothing_is_written_where_the_world_changed_meanwhile(cluster: Cluster) -> None:
    # Nothing is written for a segment that is deleted meanwhile.
    metadata = metadata_in(cluster)
    mending = recovery(cluster.without_part(metadata, Part.TIME_INDEX))
    gone = cluster.with_events(update(metadata, RemoteLogSegmentState.DELETE_SEGMENT_STARTED))
    objects = mending.objects()
    outcome = mending.run(lambda: stream_of(gone))
    assert outcome.stopped is not None
    assert mending.objects() == objects
    # Nothing is written over what somebody wrote meanwhile.
    cases: list[Part] = [Part.LOG, Part.TIME_INDEX]
    for part in cases:
        metadata = metadata_in(cluster)
        mending = recovery(cluster.with_part(metadata, Part.TIME_INDEX, GARBAGE))
        mending.store.put(key_of(metadata, part), b"somebody's")
        outcome = mending.run()
        assert outcome.stopped is not None, part
        assert outcome.stopped.code == "world-changed", part
        assert outcome.written == 0, part
        assert mending.store.read(key_of(metadata, part)) == b"somebody's", part
    # An object that appeared meanwhile is left alone.
    metadata = metadata_in(cluster)
    mending = recovery(cluster.without_part(metadata, Part.TIME_INDEX))
    mending.store.put(key_of(metadata, Part.TIME_INDEX), b"somebody's")
    outcome = mending.run()
    assert outcome.stopped is not None
    assert mending.store.read(key_of(metadata, Part.TIME_INDEX)) == b"somebody's"
    # A write whose answer was lost counts.
    metadata = metadata_in(cluster)
    mending = recovery(cluster.without_part(metadata, Part.TIME_INDEX))
    mending.store.put(key_of(metadata, Part.TIME_INDEX), cluster.data(metadata, Part.TIME_INDEX))
    outcome = mending.run()
    assert outcome.is_complete


def test_what_is_written_while_a_broker_deletes_the_segment_is_named(cluster: Cluster) -> None:
    metadata = metadata_in(cluster)
    mending = recovery(cluster.without_part(metadata, Part.TIME_INDEX))
    gone = cluster.with_events(update(metadata, RemoteLogSegmentState.DELETE_SEGMENT_STARTED))
    readings = iter([cluster, gone])

    outcome = mending.run(lambda: stream_of(next(readings)))

    assert outcome.written == 1
    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.exit_code) == (ErrorCode.WORLD_CHANGED, ExitCode.INCOMPLETE)
    assert key_of(metadata, Part.TIME_INDEX) in outcome.stopped.message


def test_a_store_without_conditions_on_writes_is_refused() -> None:
    store = MemoryStore()
    store.capabilities = store.capabilities - {Capability.CONDITIONAL_WRITE}

    with pytest.raises(TieredctlError) as raised:
        demand_conditional_writes(store)

    assert raised.value.code == "store-incapable"
