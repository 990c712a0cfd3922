"""What Aiven's storage manager has of a partition goes as well, wherever it was copied to."""

from __future__ import annotations

from tests.metadata_logs import COPIED, DELETED, DELETING, segment_id, started, updated
from tests.partition_removal.removed_topic import RemovedTopic, told
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState

PREFIX = "tiered/"
OLD_PREFIX = b"old/"
OBJECT_PREFIX = bytes([1, 1, len(OLD_PREFIX) + 1, len(OLD_PREFIX) + 1]) + OLD_PREFIX
"""Custom metadata that has this field alone."""


def moved_topic(*states: RemoteLogSegmentState) -> RemovedTopic:
    """A segment that was copied before the manager's prefix was changed."""
    later = [updated(1, state, custom_metadata=OBJECT_PREFIX) for state in states]
    return RemovedTopic([started(1, 0, 9), *later], layout=layout_named("aiven", {"key-prefix": PREFIX}))


def put(topic: RemovedTopic, segment: RemoteLogSegmentMetadata) -> list[str]:
    keys = list(topic.layout.promised_objects(segment).values())
    for key in keys:
        topic.store.put(key, b"bytes")
    return keys


def test_all_three_objects_of_a_segment_go() -> None:
    topic = RemovedTopic([started(1, 0, 9), updated(1, COPIED)], layout=layout_named("aiven", {"key-prefix": PREFIX}))
    keys = put(topic, started(1, 0, 9))
    outcome = topic.remove()
    assert (len(keys), outcome.is_complete, topic.keys()) == (3, True, [])
    # Objects that are reported as gone but are not stay reported.
    topic = RemovedTopic([started(1, 0, 9), updated(1, COPIED)], layout=layout_named("aiven", {"key-prefix": PREFIX}))
    keys = put(topic, started(1, 0, 9))
    topic.store.kept = {keys[0]}
    outcome = topic.remove()
    assert (outcome.is_complete, topic.keys()) == (False, [keys[0]])
    assert told(topic.events)[-1] == (DELETING.name, segment_id(1))


def test_objects_that_were_copied_under_another_prefix_go_by_the_segments_custom_metadata() -> None:
    topic = moved_topic(COPIED)
    keys = put(topic, started(1, 0, 9, custom_metadata=OBJECT_PREFIX))
    topic.remove()
    assert all(key.startswith("old/") for key in keys)
    assert topic.keys() == []
    # They go after an interruption too.
    topic = moved_topic(COPIED)
    topic.store.refused = set(put(topic, started(1, 0, 9, custom_metadata=OBJECT_PREFIX)))
    topic.remove()
    topic.store.refused = set()
    outcome = topic.remove()
    assert (outcome.is_complete, topic.keys()) == (True, [])
    assert told(topic.events)[-2] == (DELETED.name, segment_id(1))
    # They go too where brokers said that they were deleted.
    topic = moved_topic(COPIED, DELETING, DELETED)
    put(topic, started(1, 0, 9, custom_metadata=OBJECT_PREFIX))
    topic.remove()
    assert topic.keys() == []
