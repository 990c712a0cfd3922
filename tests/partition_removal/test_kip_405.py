"""KIP-405, "Topic deletion lifecycle": RemotePartitionRemover's flow, step by step, and the order of its states."""

from __future__ import annotations

from tests.metadata_logs import DELETED, DELETING, copied, partition_delete, segment_id
from tests.partition_removal.removed_topic import RemovedTopic, told
from tieredctl.model.events import RemotePartitionDeleteState
from tieredctl.rlmm.states import partition_may_become

MARKED = RemotePartitionDeleteState.DELETE_PARTITION_MARKED
STARTED = RemotePartitionDeleteState.DELETE_PARTITION_STARTED
FINISHED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
EVENTS_BEFORE = 4


def removed() -> list[tuple[str, ...]]:
    """What is published for a partition of two segments."""
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    topic.copy(1, 0)
    topic.copy(2, 10)
    topic.remove(batch_segments=1)
    return told(topic.events[EVENTS_BEFORE:])


def test_steps_1_3_and_8_the_partition_is_marked_its_deletion_starts_and_is_reported() -> None:
    # Step 1 the partition is marked for deletion.
    assert removed()[0] == (MARKED.name,)
    # Step 3 the deletion is reported to have started.
    assert removed()[1] == (STARTED.name,)
    # Step 8 the partition is reported as deleted once all segments are.
    assert removed()[-1] == (FINISHED.name,)


def test_steps_1_and_2_an_event_that_was_published_more_than_once_is_processed_once() -> None:
    # Step 1 an event that was published more than once is deduplicated.
    topic = RemovedTopic([*copied(1, 0, 9), partition_delete(MARKED), partition_delete(MARKED)])
    topic.copy(1, 0)
    topic.remove()
    assert [step for step in told(topic.events) if step == (MARKED.name,)] == [(MARKED.name,)] * 2
    assert told(topic.events)[-1] == (FINISHED.name,)
    # Step 2 a mark that was processed is not processed again.
    topic = RemovedTopic([*copied(1, 0, 9), *map(partition_delete, RemotePartitionDeleteState)])
    topic.remove()
    assert len(topic.events) == len(copied(1, 0, 9)) + len(RemotePartitionDeleteState)


def test_steps_4_5_and_7_each_segments_deletion_is_reported_to_start_and_to_finish() -> None:
    # Step 4 every segment of the partition is deleted.
    deleted = [step[1] for step in removed() if step[0] == DELETED.name]
    assert deleted == [segment_id(1), segment_id(2)]
    # Steps 5 and 7 each segments deletion is reported to start and to finish.
    assert removed()[2:-1] == [
        (DELETING.name, segment_id(1)),
        (DELETED.name, segment_id(1)),
        (DELETING.name, segment_id(2)),
        (DELETED.name, segment_id(2)),
    ]


def test_step_6_the_segment_is_deleted_between_the_two() -> None:
    topic = RemovedTopic(copied(1, 0, 9))
    keys = topic.copy(1, 0)
    found: list[tuple[str, int]] = []
    topic.store.boundary = lambda: found.append((topic.events[-1].state.name, len(topic.keys())))
    topic.after_deletion = lambda: found.append((topic.events[-1].state.name, len(topic.keys())))

    topic.remove()

    assert found == [*((DELETING.name, left) for left in range(len(keys), 0, -1)), (DELETED.name, 0)]


def test_the_states_follow_each_other_in_one_order() -> None:
    befores = (None, *RemotePartitionDeleteState)

    allowed = {
        (before, after)
        for before in befores
        for after in RemotePartitionDeleteState
        if partition_may_become(before, after)
    }

    assert allowed == {
        (None, MARKED),
        (MARKED, MARKED),
        (MARKED, STARTED),
        (STARTED, STARTED),
        (STARTED, FINISHED),
        (FINISHED, FINISHED),
    }
