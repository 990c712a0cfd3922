"""A removal carries out the plan that was shown, or nothing: what became otherwise since stops it, and is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.metadata_logs import COPIED, DELETING, PARTITION, copied, partition_delete, segment_id, started, updated
from tests.partition_removal.removed_topic import GONE, LIVE, DoomedStore, RemovedTopic, told
from tieredctl.errors import ExitCode
from tieredctl.model.events import RemotePartitionDeleteState
from tieredctl.ops.topic_removal.topic_removal_plan import RemovalScope
from tieredctl.ports.object_store import Capability, Deletion, StoredObject

SECOND_PARTITION = replace(PARTITION, partition=1)


def made() -> RemovedTopic:
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 10, 19)])
    for number in (1, 2):
        topic.copy(number, 10 * (number - 1))
    return topic


def a_segment(topic: RemovedTopic) -> str:
    topic.events += copied(3, 20, 29)
    topic.copy(3, 20)
    return f"segment {segment_id(3)}"


def a_copy(topic: RemovedTopic) -> str:
    topic.events.append(started(3, 20, 29))
    return f"segment {segment_id(3)}"


def a_state(topic: RemovedTopic) -> str:
    topic.events.append(updated(2, DELETING))
    return f"segment {segment_id(2)}"


def an_event_again(topic: RemovedTopic) -> str:
    topic.events.append(updated(2, COPIED))
    return "broker 1 wrote an event"


def other_metadata(topic: RemovedTopic) -> str:
    topic.events += [updated(2, COPIED, custom_metadata=b"elsewhere")]
    return f"segment {segment_id(2)}"


def a_partition_delete(topic: RemovedTopic) -> str:
    topic.events.append(partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_MARKED))
    return "the removal of"


def an_object(topic: RemovedTopic) -> str:
    return f"object {topic.copy(3, 20)[0]} appeared"


def other_bytes(topic: RemovedTopic) -> str:
    key = topic.keys()[0]
    topic.store.put(key, b"other bytes")
    return f"object {key} was rewritten"


def the_same_bytes_again(topic: RemovedTopic) -> str:
    key = topic.keys()[-1]
    topic.store.put(key, b"bytes")
    return f"object {key} was rewritten"


def a_partition(topic: RemovedTopic) -> str:
    topic.events += copied(4, 0, 9, partition=SECOND_PARTITION)
    return f"{SECOND_PARTITION} appeared"


CHANGES = [
    *(a_segment, a_copy, a_state, an_event_again, other_metadata),
    *(a_partition_delete, an_object, other_bytes, the_same_bytes_again, a_partition),
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_became_otherwise_since_the_plan_was_shown_stops_it_before_anything_is_deleted(
    change: Callable[[RemovedTopic], str],
) -> None:
    topic = made()
    names: list[str] = []
    before: list[object] = []

    def happens() -> None:
        names.append(change(topic))
        before.extend((topic.keys(), list(topic.events)))

    topic.after_showing = happens
    outcome = topic.remove()

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.stopped.exit_code) == ("world-changed", ExitCode.INCOMPLETE)
    assert names[0] in outcome.stopped.message
    assert [topic.keys(), topic.events] == before


@pytest.mark.parametrize("change", [a_segment, a_copy, a_state, an_object, other_bytes, the_same_bytes_again])
def test_run_again_it_shows_what_is_there_now_and_removes_it(change: Callable[[RemovedTopic], str]) -> None:
    topic = made()
    topic.after_showing = lambda: change(topic)
    topic.remove()
    topic.after_showing = lambda: None

    again = topic.remove()

    assert (again.is_complete, topic.keys()) == (True, [])


def test_what_comes_while_partitions_are_removed_stops_it() -> None:
    # What became otherwise while an earlier partition was removed stops it.
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 0, 9, partition=SECOND_PARTITION)])
    topic.copy(1, 0)
    kept = topic.copy(2, 0, SECOND_PARTITION)
    topic.after_deletion = lambda: topic.store.put(kept[0], b"other bytes")
    outcome = topic.remove()
    assert topic.keys() == sorted(kept)
    assert outcome.stopped is not None
    assert kept[0] in outcome.stopped.message
    # What comes while it is removed is left and named.
    topic = made()
    late: list[str] = []
    topic.after_deletion = lambda: late.extend(topic.copy(3, 20))
    outcome = topic.remove()
    assert topic.keys() == sorted(late)
    assert outcome.stopped is not None
    assert outcome.stopped.exit_code is ExitCode.INCOMPLETE
    assert late[0] in outcome.stopped.message
    assert "DELETE_PARTITION_FINISHED" not in [step[0] for step in told(topic.events)]


@pytest.mark.parametrize("scope", [GONE, LIVE])
def test_what_disappeared_since_the_plan_was_shown_is_not_an_obstacle(scope: RemovalScope) -> None:
    topic = made()
    doomed = list(topic.store.list())[:1]
    topic.after_showing = lambda: topic.store.delete(doomed)

    assert topic.remove(scope).is_complete


@pytest.mark.parametrize("change", [a_segment, a_copy])
def test_what_comes_to_a_live_topic_is_left_and_named(change: Callable[[RemovedTopic], str]) -> None:
    topic = made()
    topic.after_showing = lambda: change(topic)

    outcome = topic.remove(LIVE)

    assert outcome.stopped is None
    left = topic.keys()
    assert all(segment_id(3) in key for key in left)
    assert segment_id(3) in outcome.partitions[0].row().appeared[0]
    assert outcome.is_complete is (change is a_copy)


@pytest.mark.parametrize("change", [a_state, other_metadata, other_bytes])
def test_what_was_shown_of_a_live_topic_and_became_otherwise_stops_it(change: Callable[[RemovedTopic], str]) -> None:
    topic = made()
    names: list[str] = []
    topic.after_showing = lambda: names.append(change(topic))
    before = len(topic.keys())

    outcome = topic.remove(LIVE)

    assert outcome.stopped is not None
    assert names[0] in outcome.stopped.message
    assert len(topic.keys()) == before


class Unconditional(DoomedStore):
    """A store that deletes whatever is under a key."""

    capabilities = DoomedStore.capabilities - {Capability.CONDITIONAL_DELETE}

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        found = [self.head(stored.key) or stored for stored in objects]
        return super().delete(found)


def test_where_a_store_deletes_whatever_is_under_a_key_it_is_looked_at_right_before() -> None:
    topic = RemovedTopic(copied(1, 0, 9), Unconditional())
    key = topic.copy(1, 0)[0]
    topic.after_event = lambda: topic.store.put(key, b"other bytes")

    outcome = topic.remove()

    assert outcome.stopped is not None
    assert f"object {key} was rewritten" in outcome.stopped.message
    assert topic.store.head(key) is not None
