"""A broker says STARTED again at each retry: what is stuck counts from the first time, whoever judges it."""

from __future__ import annotations

import pytest

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, copied, started, updated
from tieredctl.model.clock import Clock
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, stuck
from tieredctl.ops.monitoring.topic_figures import topic_figures
from tieredctl.ops.status.facts import facts_of_metadata
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

DELETING = RemoteLogSegmentState.DELETE_SEGMENT_STARTED
MINUTE_MS = 60_000
TRIES = 121
BEGAN_MS = FIRST_TIMESTAMP_MS + MINUTE_MS
CLOCK = Clock(BEGAN_MS + TRIES * MINUTE_MS, 120 * MINUTE_MS)
MOMENTS = [BEGAN_MS + number * MINUTE_MS for number in range(TRIES)]
REFUSED: dict[str, list[MetadataEvent]] = {
    "deletions": [*copied(1, 0, 9), *(updated(1, DELETING, event_timestamp_ms=one, author=2) for one in MOMENTS)],
    "copies": [started(1, 0, 9, event_timestamp_ms=one, author=2) for one in MOMENTS],
}
each_kind = pytest.mark.parametrize("kind", list(REFUSED))


def metadata(events: list[MetadataEvent]) -> ReplayedMetadata:
    return replayed(EventStream(EventsInMemory(events)))


@each_kind
def test_metadata_stuck_has_the_first_try_and_how_many(kind: str) -> None:
    ((finding,), _) = stuck(metadata(REFUSED[kind]), Selection(), CLOCK)

    assert finding.code == {"deletions": "delete-stuck", "copies": "copy-stuck"}[kind]
    assert (finding.evidence["ageMs"], finding.evidence["tries"]) == (TRIES * MINUTE_MS, TRIES)
    assert finding.evidence["eventTimestampMs"] == MOMENTS[-1]
    assert finding.message.endswith("started 2h ago and never ended in 121 tries, the last 60s ago by broker 2")


@each_kind
def test_status_and_the_exporter_count_from_the_first_try(kind: str) -> None:
    left = metadata(REFUSED[kind])

    facts = facts_of_metadata(left, CLOCK, None, [], is_broken=False, may_be_more=False, replicas=[])
    (figures,) = topic_figures(left, None, CLOCK)

    assert facts.stuck is not None
    found = {"copies": facts.stuck.copies, "deletions": facts.stuck.deletions}
    assert found == {"copies": 0, "deletions": 0} | {kind: 1}
    assert facts.stuck.oldest_ms == BEGAN_MS
    assert {"copies": figures.stuck_copies, "deletions": figures.stuck_deletions} == found
    assert {figures.oldest_stuck_copy_ms, figures.oldest_stuck_deletion_ms} == {None, BEGAN_MS}


def test_another_state_begins_to_count_again() -> None:
    left = metadata([*REFUSED["copies"], updated(1, DELETING, event_timestamp_ms=MOMENTS[-1])])

    assert stuck(left, Selection(), CLOCK) == ([], [])
