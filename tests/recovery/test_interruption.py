"""A recovery that is killed between any two events, and run again: the same end, and no event twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from tests.faults.cluster import EventsInMemory
from tests.faults.lost_metadata import Killed, LostMetadata, led
from tests.metadata_logs import COPIED, DELETED, DELETING, PARTITION, copied, segment_id, started, updated
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.segment_judgement import Fate
from tieredctl.ports.layout import Part

OTHER = replace(PARTITION, partition=7)


def made() -> LostMetadata:
    """A partition with a copy that the metadata still has, one that a later copy displaced, and three to recover."""
    cluster = LostMetadata([*copied(9, 30, 39)])
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 14)
    cluster.copy(3, 10, 19)
    cluster.copy(4, 20, 29)
    cluster.copy(9, 30, 39)
    return cluster


def told(events: list[MetadataEvent]) -> list[tuple[str, str]]:
    return [(event.state.name, getattr(event, "segment_id", "")) for event in events]


def test_killed_anywhere_a_second_run_ends_where_one_run_would() -> None:
    for batch_segments in [1, 2, 100]:
        whole = made()
        assert whole.recover(batch_segments=batch_segments).is_complete, batch_segments
        for boundary in range(1, whole.boundaries + 1):
            cluster = made()
            cluster.kill_at = boundary
            with pytest.raises(Killed):
                cluster.recover(batch_segments=batch_segments)
            cluster.kill_at = None
            outcome = cluster.recover(batch_segments=batch_segments)
            assert outcome.is_complete, batch_segments
            assert cluster.events == whole.events, batch_segments
            assert cluster.fates() == dict.fromkeys((1, 3, 4, 9), Fate.IN_METADATA) | {2: Fate.SUPERSEDED}


def test_what_an_earlier_run_began_otherwise_is_begun_again() -> None:
    cluster = LostMetadata([started(1, 0, 7, author=-1)])
    cluster.copy(1, 0, 9)

    outcome = cluster.recover()

    (found,) = cluster.state().segments_of(PARTITION)
    assert outcome.is_complete
    assert (found.metadata.end_offset, found.metadata.state) == (9, COPIED)
    assert [one for one in told(cluster.events) if one[0] == "COPY_SEGMENT_STARTED"] == [
        ("COPY_SEGMENT_STARTED", segment_id(1))
    ] * 2


def test_a_broker_that_goes_away_in_the_middle_leaves_the_rest_to_the_next_run() -> None:
    # A broker that goes away in the middle is reported and the next run continues.
    cluster = made()
    cluster.kill_at = 4
    cluster.killed_by = TieredctlError(ErrorCode.BROKER_UNREACHABLE, "It is gone.")
    stopped = cluster.recover(batch_segments=1)
    cluster.kill_at = None
    assert (stopped.is_complete, stopped.stopped) == (False, cluster.killed_by)
    assert cluster.recover().is_complete
    # A partition that was not reached is left as a whole.
    cluster = LostMetadata()
    for number in range(1, 5):
        cluster.copy(number, number * 10, number * 10 + 9)
        cluster.copy(number + 4, number * 10, number * 10 + 9, partition=OTHER)
    cluster.kill_at = 3
    cluster.killed_by = TieredctlError(ErrorCode.BROKER_UNREACHABLE, "It is gone.")
    outcome = cluster.recover(batch_segments=1)
    assert [(one.done, one.left) for one in outcome.partitions] == [(1, 3), (0, 4)]


def test_what_went_or_moved_after_the_plan_is_left() -> None:
    # A log start that moves after the plan stops it.
    cluster = made()
    cluster.live = led(0, 40, 45)

    def restart() -> None:
        cluster.live = led(40, 40, 45)

    cluster.before_writing = restart
    outcome = cluster.recover()
    assert outcome.stopped is not None
    assert outcome.stopped.code == "world-changed"
    assert cluster.boundaries == 0
    # A segment whose object went after the plan is left.
    cluster = LostMetadata()
    cluster.copy(1, 0, 9)
    gone = cluster.copy(2, 10, 19)
    cluster.before_writing = lambda: cluster.lose(gone, Part.OFFSET_INDEX)
    outcome = cluster.recover()
    (partition,) = outcome.partitions
    assert (outcome.is_complete, partition.done, partition.left) == (False, 1, 1)
    assert {segment for _, segment in told(cluster.events)} == {segment_id(1)}


@dataclass
class DeletedMeanwhile(LostMetadata):
    """A cluster whose broker deletes a segment right before the first event is written."""

    deletes: int = 1
    has_deleted: bool = False

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        if not self.has_deleted:
            self.has_deleted = True
            self.events += [updated(self.deletes, DELETING), updated(self.deletes, DELETED)]
        super().publish(metadata_partition, events)


def test_a_segment_that_a_broker_deleted_meanwhile_does_not_stay_recovered() -> None:
    cluster = DeletedMeanwhile()
    cluster.copy(1, 0, 9)
    cluster.copy(2, 10, 19)

    outcome = cluster.recover()

    (partition,) = outcome.partitions
    (found,) = cluster.state().segments_of(PARTITION)
    assert found.metadata.segment_id == segment_id(2)
    assert (outcome.is_complete, partition.done, partition.skipped) == (True, 1, 1)


def test_a_batch_that_cannot_be_read_stops_it() -> None:
    known = KnownMetadata(FollowedMetadata(lambda: Damaged(())))

    with pytest.raises(TieredctlError) as refused:
        known.refresh()

    assert refused.value.code == "metadata-incomplete"


@dataclass
class Damaged(EventsInMemory):
    """Metadata with a batch that is damaged."""

    def findings(self) -> list[Finding]:
        return [Finding(FindingCode.BATCH_CORRUPT, "__remote_log_metadata-0", "its checksum is another")]
