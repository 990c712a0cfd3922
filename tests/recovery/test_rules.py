"""Which segments of a store `recover metadata` says to the metadata again, and which it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.lost_metadata import LostMetadata, as_copied, led, written
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.faults.segments_made import transactions
from tests.metadata_logs import COPIED as DONE
from tests.metadata_logs import DELETED, DELETING, PARTITION, copied, partition_delete, segment_id, started, updated
from tieredctl.errors import TieredctlError
from tieredctl.formats.record_batches import ControlType
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.findings import Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.recovery_plan import steps
from tieredctl.ops.metadata_recovery.segment_judgement import REBUILT_PARTS, Fate
from tieredctl.ports.layout import ORIGINAL_PARTS, Part

OTHER_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
PROMISED = [part for part in ORIGINAL_PARTS if part is not Part.TRANSACTION_INDEX]


def found(cluster: LostMetadata) -> list[RemoteLogSegmentMetadata]:
    """What a broker has of the partition now."""
    return [known.metadata for known in cluster.state().segments_of(PARTITION)]


def codes(cluster: LostMetadata) -> list[str]:
    return [finding.code for finding in cluster.plan().all_findings() if finding.severity is not Severity.INFO]


def test_all_is_recovered_as_the_broker_had_it() -> None:
    cluster = LostMetadata(live=led(0, 20, 25, ((0, 0), (3, 5))))
    segments = [cluster.copy(1, 0, 9, epochs=((0, 0), (3, 5))), cluster.copy(2, 10, 19, epochs=((0, 0), (3, 5)))]
    outcome = cluster.recover()
    assert outcome.is_complete
    assert found(cluster) == [as_copied(segment).metadata for segment in segments]
    assert [event.state.name for event in cluster.events] == ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"] * 2
    # A second run has nothing to write.
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.recover()
    before = list(cluster.events)
    outcome = cluster.recover()
    assert (outcome.is_complete, outcome.partitions, cluster.events) == (True, [], before)


def test_a_segment_that_lacks_objects_is_partial() -> None:
    # A segment without one of its objects is partial.
    for part in PROMISED:
        cluster = LostMetadata()
        cluster.lose(cluster.copy(1, 0, 9), part)
        assert cluster.fates() == {1: Fate.PARTIAL}, part
        assert codes(cluster) == ["segment-not-recovered"], part
    # A segment without its log or its epochs is partial whatever the disk proves.
    for part in (Part.LOG, Part.LEADER_EPOCH):
        cluster = LostMetadata(live=led(0, 10, 25))
        cluster.lose(cluster.copy(1, 0, 9), part)
        assert cluster.fates() == {1: Fate.PARTIAL}, part


def test_a_segment_that_lacks_only_what_its_log_gives_is_recovered_where_the_disk_proves_its_copy() -> None:
    for part in REBUILT_PARTS:
        proven, on_disk = led(0, 10, 25), led(0, 9, 25)
        cluster = LostMetadata(live=proven)
        cluster.lose(segment := cluster.copy(1, 0, 9), part)
        cluster.live = on_disk
        kept = cluster.fates()
        cluster.live = proven
        found_before, outcome = codes(cluster), cluster.recover()
        assert kept == {1: Fate.PARTIAL}, part
        assert found_before == ["object-missing"], part
        assert outcome.is_complete, part
        assert found(cluster) == [as_copied(segment).metadata], part


def test_a_segment_whose_objects_contradict_each_other_is_damaged() -> None:
    # A log that is cut is damaged.
    cluster = LostMetadata()
    segment = cluster.copy(1, 0, 9)
    cluster.change(segment, Part.LOG, segment.parts[Part.LOG][:-1])
    assert cluster.fates() == {1: Fate.DAMAGED}
    # A checkpoint without the segments epochs is damaged.
    cluster = LostMetadata()
    cluster.change(cluster.copy(1, 0, 9), Part.LEADER_EPOCH, b"0\n1\n4 10\n")
    assert cluster.fates() == {1: Fate.DAMAGED}
    # A copy that is not what a broker began is damaged.
    cluster = LostMetadata([started(1, 0, 8)], live=led(0, 10, 25))
    cluster.copy(1, 0, 9)
    assert cluster.fates() == {1: Fate.DAMAGED}


def aborted_here() -> WrittenSegment:
    return transactions(start_offset=0)


def aborted_of_before() -> WrittenSegment:
    """All that the segment has of an aborted transaction is its marker."""
    earlier = SegmentWriter()
    earlier.append(earlier.data(3, producer=71))
    writer = SegmentWriter(start_offset=earlier.next_offset)
    writer.append(earlier.marker(71, ControlType.ABORT))
    writer.next_offset += 1
    return writer.close(txn_idx_empty=False)


def ended_by(*markers: ControlType) -> WrittenSegment:
    """A transaction with data, and after its end as many more without."""
    writer = SegmentWriter()
    writer.append(writer.data(3, producer=71))
    for marker in markers:
        writer.append(writer.marker(71, marker))
    return writer.close()


def test_what_brokers_are_told_of_a_lost_transaction_index() -> None:
    # Where a transaction index is lost brokers are not told that it is empty.
    cases: list[Callable[[], WrittenSegment]] = [aborted_here, aborted_of_before]
    for make in cases:
        cluster = LostMetadata()
        segment = make()
        cluster.put(replace(segment, parts={part: segment.parts[part] for part in PROMISED}))
        (plan,) = cluster.plan().partitions
        assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [False], make
    # Where no transaction with data was aborted brokers are told so.
    others: list[list[ControlType]] = [[ControlType.COMMIT], [ControlType.COMMIT, ControlType.ABORT]]
    for markers in others:
        cluster = LostMetadata()
        cluster.put(ended_by(*markers))
        (plan,) = cluster.plan().partitions
        assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [True], markers
    # What a broker said of the transaction index when it began a copy counts.
    for txn_idx_empty in [True, False]:
        cluster = LostMetadata(live=led(0, 10, 25))
        segment = cluster.put(aborted_of_before())
        said = replace(segment.metadata, txn_idx_empty=txn_idx_empty)
        cluster.events.append(replace(said, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED))
        (plan,) = cluster.plan().partitions
        assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [txn_idx_empty], txn_idx_empty


def test_what_is_deleted_stays_deleted() -> None:
    # A deletion that is left of the metadata counts though the copy is not.
    cases: list[RemoteLogSegmentState] = [DELETING, DELETED]
    for state in cases:
        cluster = LostMetadata([updated(1, state)])
        cluster.copy(1, 0, 9)
        assert cluster.fates() == {1: Fate.DELETED}, state
    # Nothing of a partition that is removed comes back.
    for removal in RemotePartitionDeleteState:
        cluster = LostMetadata([partition_delete(removal)])
        cluster.copy(1, 0, 9)
        assert cluster.fates() == {1: Fate.DELETED}, removal


def test_a_copy_that_a_broker_has_begun_is_the_brokers_until_its_disk_proves_the_end() -> None:
    # A copy that a broker has begun is the brokers.
    cluster = LostMetadata([started(1, 0, 9)])
    cluster.copy(1, 0, 9)
    assert cluster.fates() == {1: Fate.COPY_NOT_FINISHED}
    # A copy that is begun and still on the leaders disk may be under way.
    cluster = LostMetadata(live=led(0, 0, 25))
    begun(cluster)
    assert cluster.fates() == {1: Fate.COPY_NOT_FINISHED}
    # A copy that is begun and no longer on the leaders disk did finish.
    cluster = LostMetadata(live=led(0, 10, 25))
    begun(cluster)
    outcome = cluster.recover()
    assert outcome.is_complete
    assert [event.state.name for event in cluster.events] == ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"]
    assert [one.state for one in found(cluster)] == [DONE]


def begun(cluster: LostMetadata) -> None:
    """Stores a segment, whose broker's word that the copy finished is lost."""
    segment = cluster.copy(1, 0, 9)
    cluster.events.append(replace(segment.metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED))


def test_of_two_copies_of_the_same_offsets_the_later_one_is_kept() -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9, stored_ms=2_000)
    cluster.copy(2, 0, 9, stored_ms=1_000)
    assert cluster.fates() == {1: Fate.RECOVER, 2: Fate.SUPERSEDED}
    # A copy that the metadata has supersedes an earlier one.
    later = written(2, 0, 9).metadata
    cluster = LostMetadata(
        [replace(started(2, 0, 9), segment_size_in_bytes=later.segment_size_in_bytes), updated(2, DONE)]
    )
    cluster.copy(1, 0, 9, stored_ms=1_000)
    cluster.copy(2, 0, 9, stored_ms=2_000)
    assert cluster.fates() == {1: Fate.SUPERSEDED, 2: Fate.IN_METADATA}


def test_what_lies_below_the_log_start_is_left_out_and_the_way_back_is_named() -> None:
    cluster = LostMetadata(live=led(20, 20, 25, ((3, 20), (5, 24))))
    for number, start in ((1, 0), (2, 10)):
        cluster.copy(number, start, start + 9, epochs=((0, 0), (3, 15)))
    (plan,) = cluster.plan().partitions
    assert cluster.fates() == {1: Fate.BELOW_LOG_START, 2: Fate.BELOW_LOG_START}
    assert codes(cluster) == ["log-start-above-store"]
    assert plan.row().restore == {
        "logStartOffset": 0,
        "leaderEpochCheckpoint": "0\n3\n0 0\n3 15\n5 24\n",
    }
    told = " ".join(steps(cluster.plan(), is_live=True))
    in_order = [
        "-o json > plan.json",
        "Stop all brokers",
        "tieredctl recover log-starts plan.json",
        "--apply: the segments",
    ]
    assert sorted(in_order, key=told.index) == in_order
    # Where the leaders epochs contradict all copies no way back is named.
    cluster = LostMetadata(live=led(30, 30, 35, ((2, 30),)))
    cluster.copy(1, 10, 19, epochs=((0, 0), (3, 12)))
    (plan,) = cluster.plan().partitions
    assert plan.row().restore is None
    assert (
        "how to restore the log start is not known: the leader's epochs contradict all of them"
        in plan.findings[0].message
    )


def test_the_way_back_follows_the_copies_that_the_leaders_epochs_allow() -> None:
    # The way back goes no further than the log start of the last copy.
    cluster = LostMetadata(live=led(20, 20, 25, ((3, 20),)))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19, epochs=((0, 10),))
    (plan,) = cluster.plan().partitions
    assert (plan.row().restore or {})["logStartOffset"] == 10
    # The way back follows the later leader though an earlier ones copy reaches further.
    cluster = LostMetadata(live=led(30, 30, 35, ((4, 30),)))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 20, epochs=((0, 0), (3, 12)), stored_ms=1_000)
    cluster.copy(3, 10, 19, epochs=((0, 0), (4, 11)), stored_ms=2_000)
    (plan,) = cluster.plan().partitions
    assert plan.row().restore == {"logStartOffset": 0, "leaderEpochCheckpoint": "0\n2\n0 0\n4 11\n"}
    # The way back does not follow copies that the leaders epochs contradict.
    cases: list[tuple[tuple[int, int], ...]] = [((2, 30),), ((2, 30), (4, 33)), ((2, 15), (5, 25))]
    for leader_epochs in cases:
        cluster = LostMetadata(live=led(30, 30, 35, leader_epochs))
        cluster.copy(1, 0, 9)
        cluster.copy(2, 10, 19, epochs=((0, 0), (3, 12)))
        (plan,) = cluster.plan().partitions
        restored = "".join(f"{epoch} {offset}\n" for epoch, offset in ((0, 0), *leader_epochs))
        assert (plan.row().restore or {})["leaderEpochCheckpoint"] == f"0\n{len(leader_epochs) + 1}\n{restored}"


def test_what_is_not_in_the_leaders_lineage_is_not_recovered() -> None:
    # What other leaders wrote at the offsets is not recovered.
    cluster = LostMetadata(live=led(0, 0, 25, ((0, 0), (2, 5))))
    cluster.copy(1, 0, 9, epochs=((0, 0), (1, 5)))
    assert cluster.fates() == {1: Fate.NOT_IN_LINEAGE}
    # A segment beyond the end of the log is not recovered.
    cluster = LostMetadata(live=led(0, 0, 5))
    cluster.copy(1, 0, 9)
    assert cluster.fates() == {1: Fate.NOT_IN_LINEAGE}
    # Each partition is judged by its own segments.
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.copy(2, 0, 9, partition=TopicIdPartition(PARTITION.topic_id, PARTITION.topic, 1))
    assert cluster.fates() == {1: Fate.RECOVER, 2: Fate.RECOVER}


def test_a_topic_id_that_the_cluster_does_not_have_is_named() -> None:
    cases: list[str | None] = [None, OTHER_ID]
    for topic_id in cases:
        cluster = LostMetadata(live=LivePartition(None, topic_id))
        cluster.copy(1, 0, 9)
        assert cluster.fates() == {1: Fate.TOPIC_UNKNOWN}, topic_id
        assert codes(cluster) == ["topic-not-in-cluster"], topic_id
        assert (topic_id or "no topic t") in cluster.plan().all_findings()[0].message, topic_id
    # Keys that the layout does not know are no empty store.
    cluster = LostMetadata()
    cluster.store.put("something", b"else")
    with pytest.raises(TieredctlError, match="explains none"):
        cluster.plan()


def test_offsets_that_nothing_explains_are_named() -> None:
    # Offsets between segments and before the local log are named.
    cluster = LostMetadata(live=led(0, 40, 45))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 20, 29)
    gaps = [(one.code, one.evidence["offsets"]) for one in cluster.plan().all_findings()]
    assert gaps == [("offset-gap", [10, 19]), ("local-remote-gap", [30, 39])]
    # What nothing explains is a gap.
    cluster = LostMetadata(live=led(0, 30, 40))
    cluster.copy(1, 0, 9)
    cluster.copy(3, 20, 24)
    assert codes(cluster) == ["offset-gap", "local-remote-gap"]


def test_what_changed_between_plan_and_writing_is_left_alone() -> None:
    # Segments deleted between plan and writing are left alone.
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19)
    cluster.before_writing = lambda: cluster.events.append(updated(1, DELETING))
    outcome = cluster.recover()
    assert outcome.is_complete
    assert [metadata.segment_id for metadata in found(cluster)] == [segment_id(2)]
    # Segments whose objects changed between plan and writing are left alone and named.
    cluster = LostMetadata()
    segment = cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19)
    cluster.before_writing = lambda: cluster.change(segment, Part.LOG, segment.parts[Part.LOG][:-1])
    outcome = cluster.recover()
    assert not outcome.is_complete
    assert outcome.partitions[0].row().changed_meanwhile == [segment_id(1)]
    assert [metadata.segment_id for metadata in found(cluster)] == [segment_id(2)]
    # Metadata that shrinks meanwhile stops it.
    cluster = LostMetadata([*copied(9, 30, 39)])
    cluster.copy(1, 0, 9)
    cluster.before_writing = cluster.events.clear
    outcome = cluster.recover()
    assert outcome.stopped is not None
    assert outcome.stopped.code == "world-changed"
    assert cluster.events == []


def test_what_retention_deleted_is_no_gap_whatever_went_first() -> None:
    """As on Kafka 4.3.1, where 177 to 200 of epoch 1 went 24 s before 162 to 176 of epoch 0."""
    epochs = ((0, 0), (1, 10))
    for name, number in {"in the middle": 2, "at the end": 3}.items():
        cluster = LostMetadata(live=led(0, 30, 40, epochs))
        segments = [cluster.copy(one, 10 * one - 10, 10 * one - 1, epochs=epochs) for one in (1, 2, 3)]
        cluster.recover()
        cluster.events += [updated(number, DELETING), updated(number, DELETED)]
        for part in PROMISED:
            cluster.lose(segments[number - 1], part)

        assert codes(cluster) == [], name
