"""What removing a partition does, and what it leaves alone: one rule a test."""

from __future__ import annotations

from dataclasses import replace

from tests.faults.cluster import LAYOUT
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    PARTITION,
    copied,
    partition_delete,
    segment_id,
    started,
    updated,
)
from tests.partition_removal.removed_topic import EVENTS_ONLY, GONE, LIVE, RemovedTopic, told
from tieredctl.model.events import MetadataEvent, RecordForm, RemoteLogSegmentMetadataUpdate, RemotePartitionDeleteState
from tieredctl.ops.topic_removal.topic_removal_plan import plan_partition

MARKED, STARTED, FINISHED = (state.name for state in RemotePartitionDeleteState)
SECOND_PARTITION = replace(PARTITION, partition=1)
STATES: dict[str, list[MetadataEvent]] = {
    "copying": [started(1, 0, 9)],
    "copied": copied(1, 0, 9),
    "deleting": [*copied(1, 0, 9), updated(1, DELETING)],
}


def test_a_segment_in_any_state_goes_with_its_objects() -> None:
    for state, before in STATES.items():
        topic = RemovedTopic([*before])
        topic.copy(1, 0)
        outcome = topic.remove()
        written = told(topic.events[len(before) :])
        started_before = [(DELETING.name, segment_id(1))] if state != "deleting" else []
        assert written == [(MARKED,), (STARTED,), *started_before, (DELETED.name, segment_id(1)), (FINISHED,)], state
        assert (outcome.is_complete, topic.keys()) == (True, []), state
        assert outcome.partitions[0].row().state == FINISHED, state
    # A plan tells how far a removal is.
    topic = RemovedTopic([*copied(1, 0, 9), partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_MARKED)])
    metadata = topic.metadata()
    metadata.refresh()
    plan = plan_partition(metadata.state(PARTITION), topic.store, LAYOUT, GONE)
    assert plan.row().state == MARKED


def test_whatever_is_left_of_a_partition_goes() -> None:
    # A segment that is deleted gets no event and loses what was left of it.
    topic = RemovedTopic([*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)])
    topic.copy(1, 0)
    topic.remove()
    assert told(topic.events[4:]) == [(MARKED,), (STARTED,), (FINISHED,)]
    assert topic.keys() == []
    # Objects without any event go too.
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(2, 10)
    topic.remove()
    assert topic.keys() == []
    # A transaction index goes too.
    topic = RemovedTopic(copied(1, 0, 9))
    (log, *_) = topic.copy(1, 0)
    topic.store.put(log.removesuffix(".log") + ".txnindex", b"bytes")
    topic.remove()
    assert topic.keys() == []
    # Objects that are gone already are no obstacle.
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    topic.copy(2, 10)
    outcome = topic.remove()
    assert outcome.is_complete
    assert told(topic.events)[-3:] == [(DELETED.name, segment_id(1)), (DELETED.name, segment_id(2)), (FINISHED,)]
    # What the layout cannot explain stays and is counted.
    topic = RemovedTopic(copied(1, 0, 9))
    stray = LAYOUT.partition_prefix(PARTITION) + "notes.txt"
    topic.copy(1, 0)
    topic.store.put(stray, b"bytes")
    outcome = topic.remove()
    assert topic.keys() == [stray]
    assert outcome.partitions[0].row().unknown_objects == 1


def test_other_partitions_and_topics_are_left_alone() -> None:
    # Other partitions of the topic are left alone when one is named.
    other = copied(2, 0, 9, partition=SECOND_PARTITION)
    topic = RemovedTopic([*copied(1, 0, 9), *other])
    topic.copy(1, 0)
    kept = topic.copy(2, 0, SECOND_PARTITION)
    topic.remove(partition=0)
    assert topic.keys() == sorted(kept)
    assert {event.topic_id_partition for event in topic.events[4:]} == {PARTITION}  # type: ignore[union-attr]
    # Every partition goes when none is named.
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 0, 9, partition=SECOND_PARTITION)])
    topic.copy(1, 0)
    topic.copy(2, 0, SECOND_PARTITION)
    outcome = topic.remove()
    assert [one.plan.state.partition for one in outcome.partitions] == [PARTITION, SECOND_PARTITION]
    assert topic.keys() == []
    assert told(topic.events).count((FINISHED,)) == 2
    # Other topics are left alone.
    namesake = replace(PARTITION, topic_id="Ex-aw3fEQIi3do0H9Y7cKQ")
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 0, 9, partition=namesake)])
    topic.copy(1, 0)
    kept = topic.copy(2, 0, namesake)
    topic.remove()
    assert topic.keys() == sorted(kept)


def test_a_removal_that_began_or_ended_is_not_begun_again() -> None:
    # A second run writes nothing.
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(1, 0)
    topic.remove()
    events = list(topic.events)
    outcome = topic.remove()
    assert outcome.is_complete
    assert topic.events == events
    # What comes after the removal goes without an event.
    topic = RemovedTopic([*copied(1, 0, 9), *map(partition_delete, RemotePartitionDeleteState)])
    topic.copy(1, 0)
    outcome = topic.remove()
    assert (outcome.is_complete, topic.keys(), topic.events[5:]) == (True, [], [])
    # A removal that began is not begun again.
    for done in [1, 2]:
        states = list(RemotePartitionDeleteState)
        topic = RemovedTopic([*copied(1, 0, 9), *map(partition_delete, states[:done])])
        topic.copy(1, 0)
        topic.remove()
        steps = [step[0] for step in told(topic.events) if step[0] in (MARKED, STARTED, FINISHED)]
        assert steps == [MARKED, STARTED, FINISHED], done


def test_what_events_say() -> None:
    # Only segments get events where brokers are to be told of nothing else.
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(1, 0)
    outcome = topic.remove(EVENTS_ONLY)
    assert told(topic.events[2:]) == [(DELETING.name, segment_id(1)), (DELETED.name, segment_id(1))]
    assert (outcome.is_complete, topic.keys()) == (True, [])
    # Events name no broker and keep what tells where the objects are.
    topic = RemovedTopic([started(1, 0, 9), updated(1, COPIED, custom_metadata=b"prefix")])
    topic.copy(1, 0)
    topic.remove()
    written = [event for event in topic.events[2:] if isinstance(event, RemoteLogSegmentMetadataUpdate)]
    assert [event.custom_metadata for event in written] == [b"prefix", b"prefix"]
    assert {event.author for event in topic.events[2:]} == {-1}
    # Events are written as the clusters own are.
    old = RecordForm.KAFKA_BEFORE_3_6
    topic = RemovedTopic(copied(1, 0, 9, form=old))
    topic.copy(1, 0)
    topic.remove()
    assert {event.form for event in topic.events[2:]} == {old}


def test_a_segment_whose_object_stays_is_left_to_the_next_run() -> None:
    # A segment whose object stays is not said to be deleted.
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    refused = topic.copy(1, 0)[0]
    topic.copy(2, 10)
    topic.store.refused = {refused}
    outcome = topic.remove()
    assert topic.keys() == [refused]
    assert told(topic.events)[-1] == (DELETED.name, segment_id(2))
    assert (outcome.is_complete, outcome.partitions[0].failed) == (False, 1)
    # What failed is done by the next run.
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    topic.store.refused = {topic.copy(1, 0)[0]}
    topic.copy(2, 10)
    topic.remove()
    topic.store.refused = set()
    before = len(topic.events)
    outcome = topic.remove()
    assert told(topic.events[before:]) == [(DELETED.name, segment_id(1)), (FINISHED,)]
    assert (outcome.is_complete, topic.keys()) == (True, [])
    # A store that deletes nothing stops the run.
    topic = RemovedTopic(copied(1, 0, 9))
    topic.store.refused = set(topic.copy(1, 0))
    outcome = topic.remove()
    assert outcome.stopped is not None
    assert outcome.stopped.code == "store-forbidden"
    assert told(topic.events)[-1] == (DELETING.name, segment_id(1))


def test_what_comes_meanwhile_keeps_the_removal_from_being_finished() -> None:
    # A broker that is at work keeps the removal from being finished.
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(1, 0)
    topic.after_deletion = lambda: topic.events.append(updated(1, DELETED))
    outcome = topic.remove()
    assert outcome.stopped is not None
    assert outcome.stopped.code == "world-changed"
    assert "Broker 1 wrote events" in outcome.stopped.message
    assert (FINISHED,) not in told(topic.events)
    # Objects that come meanwhile keep the removal from being finished.
    topic = RemovedTopic(copied(1, 0, 9))
    log = topic.copy(1, 0)[0]

    def upload() -> None:
        topic.store.put(log, b"late")

    topic.after_deletion = upload
    stopped = topic.remove().stopped
    again = topic.remove()
    assert stopped is not None
    assert stopped.code == "removal-failed"
    assert (again.is_complete, topic.keys()) == (True, [])


def test_copies_under_way_and_unannounced_objects_of_a_live_topic_are_left_alone() -> None:
    topic = RemovedTopic([*copied(1, 0, 9), started(2, 10, 19)])
    topic.copy(1, 0)
    kept = [*topic.copy(2, 10), *topic.copy(3, 20)]

    outcome = topic.remove(LIVE)

    assert topic.keys() == sorted(kept)
    assert told(topic.events[3:]) == [(DELETING.name, segment_id(1)), (DELETED.name, segment_id(1))]
    assert outcome.partitions[0].row().copies_left_alone == 1


def test_segments_are_taken_in_batches() -> None:
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)])
    for number in range(3):
        topic.copy(number + 1, 10 * number)

    topic.remove(GONE, batch_segments=2)

    steps = [(state, segments[0]) for state, *segments in told(topic.events[6:]) if segments]
    first, second, third = (segment_id(number) for number in (1, 2, 3))
    begun, ended = DELETING.name, DELETED.name
    assert steps == [(begun, first), (begun, second), (ended, first), (ended, second), (begun, third), (ended, third)]
