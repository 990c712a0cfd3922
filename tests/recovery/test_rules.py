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


def test_a_second_run_has_nothing_to_write() -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.recover()
    before = list(cluster.events)

    outcome = cluster.recover()

    assert (outcome.is_complete, outcome.partitions, cluster.events) == (True, [], before)


@pytest.mark.parametrize("part", PROMISED)
def test_a_segment_without_one_of_its_objects_is_partial(part: Part) -> None:
    cluster = LostMetadata()
    cluster.lose(cluster.copy(1, 0, 9), part)

    assert cluster.fates() == {1: Fate.PARTIAL}
    assert codes(cluster) == ["segment-not-recovered"]


@pytest.mark.parametrize("part", REBUILT_PARTS)
def test_a_segment_that_lacks_only_what_its_log_gives_is_recovered_where_the_disk_proves_its_copy(part: Part) -> None:
    proven, on_disk = led(0, 10, 25), led(0, 9, 25)
    cluster = LostMetadata(live=proven)
    cluster.lose(segment := cluster.copy(1, 0, 9), part)
    cluster.live = on_disk
    kept = cluster.fates()
    cluster.live = proven

    found_before, outcome = codes(cluster), cluster.recover()

    assert kept == {1: Fate.PARTIAL}
    assert found_before == ["object-missing"]
    assert outcome.is_complete
    assert found(cluster) == [as_copied(segment).metadata]


@pytest.mark.parametrize("part", [Part.LOG, Part.LEADER_EPOCH])
def test_a_segment_without_its_log_or_its_epochs_is_partial_whatever_the_disk_proves(part: Part) -> None:
    cluster = LostMetadata(live=led(0, 10, 25))
    cluster.lose(cluster.copy(1, 0, 9), part)

    assert cluster.fates() == {1: Fate.PARTIAL}


def test_a_log_that_is_cut_is_damaged() -> None:
    cluster = LostMetadata()
    segment = cluster.copy(1, 0, 9)
    cluster.change(segment, Part.LOG, segment.parts[Part.LOG][:-1])

    assert cluster.fates() == {1: Fate.DAMAGED}


def test_a_checkpoint_without_the_segments_epochs_is_damaged() -> None:
    cluster = LostMetadata()
    cluster.change(cluster.copy(1, 0, 9), Part.LEADER_EPOCH, b"0\n1\n4 10\n")

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


@pytest.mark.parametrize("make", [aborted_here, aborted_of_before])
def test_where_a_transaction_index_is_lost_brokers_are_not_told_that_it_is_empty(
    make: Callable[[], WrittenSegment],
) -> None:
    cluster = LostMetadata()
    segment = make()
    cluster.put(replace(segment, parts={part: segment.parts[part] for part in PROMISED}))

    (plan,) = cluster.plan().partitions

    assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [False]


@pytest.mark.parametrize("markers", [[ControlType.COMMIT], [ControlType.COMMIT, ControlType.ABORT]])
def test_where_no_transaction_with_data_was_aborted_brokers_are_told_so(markers: list[ControlType]) -> None:
    cluster = LostMetadata()
    cluster.put(ended_by(*markers))

    (plan,) = cluster.plan().partitions

    assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [True]


@pytest.mark.parametrize("txn_idx_empty", [True, False])
def test_what_a_broker_said_of_the_transaction_index_when_it_began_a_copy_counts(txn_idx_empty: bool) -> None:
    cluster = LostMetadata(live=led(0, 10, 25))
    segment = cluster.put(aborted_of_before())
    said = replace(segment.metadata, txn_idx_empty=txn_idx_empty)
    cluster.events.append(replace(said, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED))

    (plan,) = cluster.plan().partitions

    assert [metadata.txn_idx_empty for metadata in plan.recovered()] == [txn_idx_empty]


@pytest.mark.parametrize("state", [DELETING, DELETED])
def test_a_deletion_that_is_left_of_the_metadata_counts_though_the_copy_is_not(state: RemoteLogSegmentState) -> None:
    cluster = LostMetadata([updated(1, state)])
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.DELETED}


@pytest.mark.parametrize("state", list(RemotePartitionDeleteState))
def test_nothing_of_a_partition_that_is_removed_comes_back(state: RemotePartitionDeleteState) -> None:
    cluster = LostMetadata([partition_delete(state)])
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.DELETED}


def test_a_copy_that_a_broker_has_begun_is_the_brokers() -> None:
    cluster = LostMetadata([started(1, 0, 9)])
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.COPY_NOT_FINISHED}


def begun(cluster: LostMetadata) -> None:
    """Stores a segment, whose broker's word that the copy finished is lost."""
    segment = cluster.copy(1, 0, 9)
    cluster.events.append(replace(segment.metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED))


def test_a_copy_that_is_begun_and_still_on_the_leaders_disk_may_be_under_way() -> None:
    cluster = LostMetadata(live=led(0, 0, 25))
    begun(cluster)

    assert cluster.fates() == {1: Fate.COPY_NOT_FINISHED}


def test_a_copy_that_is_begun_and_no_longer_on_the_leaders_disk_did_finish() -> None:
    cluster = LostMetadata(live=led(0, 10, 25))
    begun(cluster)

    outcome = cluster.recover()

    assert outcome.is_complete
    assert [event.state.name for event in cluster.events] == ["COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"]
    assert [one.state for one in found(cluster)] == [DONE]


def test_a_copy_that_is_not_what_a_broker_began_is_damaged() -> None:
    cluster = LostMetadata([started(1, 0, 8)], live=led(0, 10, 25))
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.DAMAGED}


def test_of_two_copies_of_the_same_offsets_the_later_one_is_kept() -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9, stored_ms=2_000)
    cluster.copy(2, 0, 9, stored_ms=1_000)

    assert cluster.fates() == {1: Fate.RECOVER, 2: Fate.SUPERSEDED}


def test_a_copy_that_the_metadata_has_supersedes_an_earlier_one() -> None:
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
    assert plan.document()["restore"] == {
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


def test_the_way_back_goes_no_further_than_the_log_start_of_the_last_copy() -> None:
    cluster = LostMetadata(live=led(20, 20, 25, ((3, 20),)))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19, epochs=((0, 10),))

    (plan,) = cluster.plan().partitions

    assert plan.document()["restore"]["logStartOffset"] == 10


def test_the_way_back_follows_the_later_leader_though_an_earlier_ones_copy_reaches_further() -> None:
    cluster = LostMetadata(live=led(30, 30, 35, ((4, 30),)))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 20, epochs=((0, 0), (3, 12)), stored_ms=1_000)
    cluster.copy(3, 10, 19, epochs=((0, 0), (4, 11)), stored_ms=2_000)

    (plan,) = cluster.plan().partitions

    assert plan.document()["restore"] == {"logStartOffset": 0, "leaderEpochCheckpoint": "0\n2\n0 0\n4 11\n"}


@pytest.mark.parametrize("leader_epochs", [((2, 30),), ((2, 30), (4, 33)), ((2, 15), (5, 25))])
def test_the_way_back_does_not_follow_copies_that_the_leaders_epochs_contradict(
    leader_epochs: tuple[tuple[int, int], ...],
) -> None:
    cluster = LostMetadata(live=led(30, 30, 35, leader_epochs))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19, epochs=((0, 0), (3, 12)))

    (plan,) = cluster.plan().partitions

    restored = "".join(f"{epoch} {offset}\n" for epoch, offset in ((0, 0), *leader_epochs))
    assert plan.document()["restore"]["leaderEpochCheckpoint"] == f"0\n{len(leader_epochs) + 1}\n{restored}"


def test_where_the_leaders_epochs_contradict_all_copies_no_way_back_is_named() -> None:
    cluster = LostMetadata(live=led(30, 30, 35, ((2, 30),)))
    cluster.copy(1, 10, 19, epochs=((0, 0), (3, 12)))

    (plan,) = cluster.plan().partitions

    assert plan.document()["restore"] is None
    assert (
        "how to restore the log start is not known: the leader's epochs contradict all of them"
        in plan.findings[0].message
    )


def test_what_other_leaders_wrote_at_the_offsets_is_not_recovered() -> None:
    cluster = LostMetadata(live=led(0, 0, 25, ((0, 0), (2, 5))))
    cluster.copy(1, 0, 9, epochs=((0, 0), (1, 5)))

    assert cluster.fates() == {1: Fate.NOT_IN_LINEAGE}


def test_a_segment_beyond_the_end_of_the_log_is_not_recovered() -> None:
    cluster = LostMetadata(live=led(0, 0, 5))
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.NOT_IN_LINEAGE}


@pytest.mark.parametrize("topic_id", [None, OTHER_ID])
def test_a_topic_id_that_the_cluster_does_not_have_is_named(topic_id: str | None) -> None:
    cluster = LostMetadata(live=LivePartition(None, topic_id))
    cluster.copy(1, 0, 9)

    assert cluster.fates() == {1: Fate.TOPIC_UNKNOWN}
    assert codes(cluster) == ["topic-not-in-cluster"]
    assert (topic_id or "no topic t") in cluster.plan().all_findings()[0].message


def test_offsets_between_segments_and_before_the_local_log_are_named() -> None:
    cluster = LostMetadata(live=led(0, 40, 45))
    cluster.copy(1, 0, 9)
    cluster.copy(2, 20, 29)

    gaps = [(one.code, one.evidence["offsets"]) for one in cluster.plan().all_findings()]

    assert gaps == [("offset-gap", [10, 19]), ("local-remote-gap", [30, 39])]


def test_keys_that_the_layout_does_not_know_are_no_empty_store() -> None:
    cluster = LostMetadata()
    cluster.store.put("something", b"else")

    with pytest.raises(TieredctlError, match="explains none"):
        cluster.plan()


def test_each_partition_is_judged_by_its_own_segments() -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.copy(2, 0, 9, partition=TopicIdPartition(PARTITION.topic_id, PARTITION.topic, 1))

    assert cluster.fates() == {1: Fate.RECOVER, 2: Fate.RECOVER}


def test_segments_deleted_between_plan_and_writing_are_left_alone() -> None:
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19)
    cluster.before_writing = lambda: cluster.events.append(updated(1, DELETING))

    outcome = cluster.recover()

    assert outcome.is_complete
    assert [metadata.segment_id for metadata in found(cluster)] == [segment_id(2)]


def test_segments_whose_objects_changed_between_plan_and_writing_are_left_alone_and_named() -> None:
    cluster = LostMetadata()
    segment = cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19)
    cluster.before_writing = lambda: cluster.change(segment, Part.LOG, segment.parts[Part.LOG][:-1])

    outcome = cluster.recover()

    assert not outcome.is_complete
    assert outcome.partitions[0].document()["changedMeanwhile"] == [segment_id(1)]
    assert [metadata.segment_id for metadata in found(cluster)] == [segment_id(2)]


def test_metadata_that_shrinks_meanwhile_stops_it() -> None:
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


def test_what_nothing_explains_is_a_gap() -> None:
    cluster = LostMetadata(live=led(0, 30, 40))
    cluster.copy(1, 0, 9)
    cluster.copy(3, 20, 24)

    assert codes(cluster) == ["offset-gap", "local-remote-gap"]
