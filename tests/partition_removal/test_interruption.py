"""A removal that is killed between any two steps, and run again: the same end, and no step twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.metadata_logs import DELETED, DELETING, copied, started, updated
from tests.partition_removal.removed_topic import EVENTS_ONLY, GONE, Killed, RemovedTopic, told
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent, RemotePartitionDeleteState
from tieredctl.ops.topic_removal.topic_removal_plan import RemovalScope

MOST_BOUNDARIES = 60


def made() -> RemovedTopic:
    """A topic with a segment in each state, and one object that has no event."""
    topic = RemovedTopic(
        [
            *copied(1, 0, 9),
            *copied(2, 10, 19),
            *copied(3, 20, 29),
            updated(3, DELETING),
            *copied(4, 30, 39),
            updated(4, DELETING),
            updated(4, DELETED),
            started(5, 40, 49),
        ]
    )
    for number in range(1, 7):
        topic.copy(number, 10 * (number - 1))
    return topic


def killed_at(boundary: int, scope: RemovalScope, batch_segments: int) -> RemovedTopic:
    topic = made()
    topic.kill_at = boundary
    with pytest.raises(Killed):
        topic.remove(scope, batch_segments=batch_segments)
    return topic


def test_killed_anywhere_a_second_run_ends_where_one_run_would() -> None:
    cases: list[RemovalScope] = [GONE, EVENTS_ONLY]
    for scope in cases:
        for batch_segments in [1, 2, 100]:
            whole = made()
            assert whole.remove(scope, batch_segments=batch_segments).is_complete, (scope, batch_segments)
            for boundary in range(1, whole.boundaries + 1):
                topic = killed_at(boundary, scope, batch_segments)
                outcome = topic.remove(scope, batch_segments=batch_segments)
                assert outcome.is_complete, (scope, batch_segments)
                assert topic.keys() == [], (scope, batch_segments)
                assert sorted(told(topic.events)) == sorted(told(whole.events)), (scope, batch_segments)
                assert topic.events[-1] == whole.events[-1], (scope, batch_segments)


def test_killed_again_and_again_it_still_ends() -> None:
    topic = made()

    for _ in range(MOST_BOUNDARIES):
        topic.kill_at = topic.boundaries + 2
        try:
            outcome = topic.remove()
        except Killed:
            continue
        break

    assert outcome.is_complete
    assert topic.keys() == []
    assert len(told(topic.events)) == len(set(told(topic.events)))


class Unconfirmed(RemovedTopic):
    """A cluster that takes every event, and of one state never says so."""

    state = ""

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        super().publish(metadata_partition, events)
        if events[0].state.name == self.state:
            self.state = ""
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "No answer came.")


def test_an_event_that_was_written_and_not_confirmed_is_not_written_again() -> None:
    cases: list[str] = [DELETING.name, DELETED.name, *(state.name for state in RemotePartitionDeleteState)]
    for state in cases:
        topic = Unconfirmed(copied(1, 0, 9))
        topic.copy(1, 0)
        topic.state = state
        stopped = topic.remove().stopped
        again = topic.remove()
        assert stopped is not None, state
        assert stopped.code == "broker-unreachable", state
        assert (again.is_complete, topic.keys()) == (True, []), state
        assert [step[0] for step in told(topic.events)].count(state) == 1, state
