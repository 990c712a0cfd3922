"""What brokers delete while `recover metadata` registers it: whatever ends the run, it does not stay promised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from tests.faults.lost_metadata import NOW_MS, Killed, LostMetadata
from tests.faults.segment_writer import WrittenSegment
from tests.metadata_logs import COPIED, DELETED, DELETING, PARTITION, copied, segment_id, updated
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.model.findings import Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.segment_judgement import Fate
from tieredctl.ports.layout import ORIGINAL_PARTS, Part
from tieredctl.process import interruption

GONE = TieredctlError(ErrorCode.BROKER_UNREACHABLE, "It is gone.")
ITS_END = 8
"""After two events for each of three segments, and the beginning of a deletion: the event that records its end."""
OTHER = replace(PARTITION, topic_id="Ex-aw3fEQIi3do0H9Y7cKQ")


@dataclass
class DeletingCluster(LostMetadata):
    """A cluster whose broker deletes segment 1 right before the first event is written."""

    segments: dict[int, WrittenSegment] = field(default_factory=dict)
    refuses_from: int = 1_000
    """From this event on, every event is refused."""
    loses_answers: bool = False
    """Whether what is refused is in the metadata all the same."""
    has_deleted: bool = False
    deletes_in: TopicIdPartition = PARTITION

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        if not self.has_deleted:
            self.has_deleted = True
            self.events += [updated(1, state, partition=self.deletes_in) for state in (DELETING, DELETED)]
            if self.deletes_in == PARTITION:
                self.take_objects(1)
        for event in events:
            if self.boundaries + 1 >= self.refuses_from:
                self.events += [event] if self.loses_answers else []
                raise GONE
            super().publish(metadata_partition, [event])

    def take_objects(self, number: int, parts: Iterable[Part] = ORIGINAL_PARTS) -> None:
        for part in parts:
            if part in self.segments[number].parts:
                self.lose(self.segments[number], part)

    def promised(self) -> set[str]:
        known = (one.metadata for one in self.state().segments_of(PARTITION))
        return {one.segment_id for one in known if one.state is COPIED}

    def state_of(self, number: int) -> RemoteLogSegmentState | None:
        """A segment's, as brokers know it; None once its deletion has ended."""
        states = {one.metadata.segment_id: one.metadata.state for one in self.state().segments_of(PARTITION)}
        return states.get(segment_id(number))

    def findings(self) -> list[tuple[str, Severity]]:
        found = self.plan().all_findings()
        return [(one.code, one.severity) for one in found if one.severity is not Severity.INFO]


def deleting() -> DeletingCluster:
    """Three segments to recover."""
    cluster = DeletingCluster()
    cluster.segments = stored_in(cluster)
    return cluster


def stored_in(cluster: LostMetadata) -> dict[int, WrittenSegment]:
    return {number: cluster.copy(number, number * 10, number * 10 + 9) for number in (1, 2, 3)}


def left_by_a_killed_run() -> DeletingCluster:
    """Segment 1 is promised, although its broker deleted it."""
    cluster = deleting()
    cluster.kill_at = 3
    with pytest.raises(Killed):
        cluster.recover(batch_segments=1)
    cluster.kill_at = None
    assert cluster.promised() == {segment_id(1)}
    return cluster


def test_it_is_taken_back_though_publishing_failed_after_it() -> None:
    cluster = deleting()
    cluster.kill_at, cluster.killed_by = 5, GONE  # once

    outcome = cluster.recover(batch_segments=1)

    (partition,) = outcome.partitions
    assert outcome.stopped is GONE
    assert cluster.promised() == {segment_id(2)}
    assert (partition.done, partition.skipped, partition.left) == (1, 1, 1)


def test_it_is_taken_back_though_the_answer_to_its_event_was_lost() -> None:
    cluster = deleting()
    cluster.refuses_from, cluster.loses_answers = 2, True

    outcome = cluster.recover(batch_segments=1)

    (partition,) = outcome.partitions
    assert outcome.stopped is not None
    assert cluster.promised() == set()
    assert (partition.done, partition.skipped) == (0, 0)


def test_it_is_named_where_it_cannot_be_taken_back_and_the_next_run_takes_it_back() -> None:
    cluster = deleting()
    cluster.refuses_from = 5

    outcome = cluster.recover(batch_segments=1)

    assert outcome.stopped is not None
    assert outcome.stopped.code == "broker-unreachable"
    assert segment_id(1) in outcome.stopped.message
    cluster.refuses_from = 1_000
    again = cluster.recover()
    assert again.is_complete
    assert cluster.promised() == {segment_id(2), segment_id(3)}


class SetBackCluster(LostMetadata):
    """A cluster whose broker deletes segment 2 once segment 1 is registered, while the host's clock is set back."""

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        super().publish(metadata_partition, events)
        if self.now_ms == NOW_MS:
            self.now_ms -= 3_600_000
            self.events += [updated(2, state) for state in (DELETING, DELETED)]


def test_a_clock_that_is_set_back_makes_nothing_that_was_read_look_new() -> None:
    cluster = SetBackCluster()
    stored_in(cluster)

    outcome = cluster.recover(batch_segments=1)

    (partition,) = outcome.partitions
    assert (partition.done, partition.skipped, partition.events) == (2, 1, 4)


@dataclass
class InterruptedCluster(DeletingCluster):
    """One whose user presses Ctrl-C while the first events are written."""

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        if not self.has_deleted:
            interruption.request()
        super().publish(metadata_partition, events)


def test_it_is_taken_back_though_the_user_interrupts() -> None:
    cluster = InterruptedCluster()
    cluster.segments = stored_in(cluster)

    with forgotten(), pytest.raises(KeyboardInterrupt):
        cluster.recover(batch_segments=1)

    assert cluster.promised() == set()
    assert cluster.boundaries == 4  # of segment 1 alone: written, and taken back


def test_it_is_named_where_the_user_interrupts_and_it_cannot_be_taken_back() -> None:
    cluster = InterruptedCluster(refuses_from=3)
    cluster.segments = stored_in(cluster)

    with forgotten(), pytest.raises(TieredctlError) as ended:
        cluster.recover(batch_segments=1)

    assert ended.value.code is ErrorCode.INTERRUPTED
    assert segment_id(1) in ended.value.message
    assert cluster.promised() == {segment_id(1)}


class InterruptedLease:
    """A lease that cannot be renewed once, right when the user presses Ctrl-C."""

    clock = StoreClock(lambda: 0, 0)

    def __init__(self) -> None:
        self.renewals = 0

    def renew(self) -> None:
        self.renewals += 1
        if self.renewals == 2:
            interruption.request()
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")


def test_it_is_taken_back_though_the_user_interrupts_the_reading_back_of_a_stopped_run() -> None:
    cluster = deleting()
    cluster.lease = InterruptedLease()

    with forgotten(), pytest.raises(KeyboardInterrupt):
        cluster.recover(batch_segments=1)

    assert (cluster.promised(), cluster.boundaries) == (set(), 4)


@contextmanager
def forgotten() -> Iterator[None]:
    """Without the interruption afterwards."""
    try:
        yield
    finally:
        interruption.forget()


class LostLease:
    """A lease that another run takes over at its third renewal."""

    clock = StoreClock(lambda: 0, 0)

    def __init__(self) -> None:
        self.renewals = 0

    def renew(self) -> None:
        self.renewals += 1
        if self.renewals >= 3:
            raise TieredctlError(ErrorCode.LEASE_LOST, "It is lost.")


def test_without_the_lease_it_is_named_and_nothing_is_written() -> None:
    cluster = deleting()
    cluster.lease = LostLease()

    outcome = cluster.recover(batch_segments=1)

    assert outcome.stopped is not None
    assert outcome.stopped.code == "lease-lost"
    assert segment_id(1) in outcome.stopped.message
    assert cluster.boundaries == 4  # of the segments 1 and 2


def test_a_later_run_takes_back_what_a_killed_one_left() -> None:
    cluster = left_by_a_killed_run()
    recovery = cluster.plan()
    shown = [one.metadata.segment_id for plan in recovery.partitions for one in plan.to_take_back]
    found = cluster.findings()

    outcome = cluster.recover()

    (partition,) = outcome.partitions
    assert (shown, recovery.to_take_back) == ([segment_id(1)], 1)
    assert found == [("object-missing", Severity.WARNING)]
    assert (outcome.is_complete, partition.taken_back, partition.done, partition.left) == (True, 1, 2, 0)
    assert cluster.promised() == {segment_id(2), segment_id(3)}
    assert (cluster.plan().to_take_back, cluster.findings()) == (0, [])


def test_a_later_run_takes_it_back_though_it_has_nothing_to_register() -> None:
    cluster = left_by_a_killed_run()
    cluster.take_objects(2)
    cluster.take_objects(3)
    other = cluster.copy(9, 0, 9, partition=OTHER)
    cluster.events += copied(9, 0, 9, partition=OTHER)

    outcome = cluster.recover()

    assert outcome.is_complete
    assert [(one.taken_back, one.events) for one in outcome.partitions] == [(1, 2)]
    assert cluster.promised() == set()
    assert {one.metadata.segment_id for one in cluster.state().segments_of(OTHER)} == {other.metadata.segment_id}


def test_a_killed_run_that_takes_back_is_resumed() -> None:
    cluster = left_by_a_killed_run()
    before = cluster.boundaries
    for boundary in range(before + 1, before + 7):
        cluster = left_by_a_killed_run()
        cluster.kill_at = boundary
        with pytest.raises(Killed):
            cluster.recover()
        cluster.kill_at = None
        cluster.recover()
        assert cluster.promised() == {segment_id(2), segment_id(3)}, boundary
        assert cluster.state_of(1) is None, boundary


def test_a_deletion_of_which_only_the_beginning_was_recorded_is_named_and_ended_by_the_next_run() -> None:
    cluster = deleting()
    cluster.refuses_from = ITS_END

    outcome = cluster.recover()

    (partition,) = outcome.partitions
    assert outcome.stopped is not None
    assert segment_id(1) in outcome.stopped.message
    assert (cluster.state_of(1), partition.left) == (DELETING, 1)
    cluster.refuses_from = 1_000
    assert (cluster.findings(), cluster.plan().to_take_back) == ([("delete-stuck", Severity.WARNING)], 1)
    events = len(cluster.events)
    (ended,) = cluster.recover().partitions
    assert (ended.taken_back, ended.done, ended.left) == (1, 0, 0)
    assert len(cluster.events) == events + 1, "the beginning is not recorded twice"
    assert cluster.state_of(1) is None
    assert (cluster.findings(), cluster.plan().to_take_back) == ([], 0)


def test_a_deletion_that_was_begun_is_not_ended_while_objects_are_left() -> None:
    cluster = deleting()
    cluster.refuses_from = ITS_END
    cluster.recover()
    cluster.refuses_from = 1_000
    for left in ({Part.LOG: cluster.segments[1].parts[Part.LOG]}, cluster.segments[1].parts):
        cluster.put(replace(cluster.segments[1], parts=left))

        assert cluster.plan().to_take_back == 0
        assert cluster.findings() == [("delete-stuck", Severity.WARNING)]
        cluster.recover()
        assert cluster.state_of(1) is DELETING


def test_a_deletion_that_a_broker_began_is_its_own() -> None:
    cluster = deleting()
    cluster.events += [*copied(1, 10, 19), updated(1, DELETING)]
    cluster.has_deleted = True
    cluster.take_objects(1)

    assert (cluster.plan().to_take_back, cluster.findings()) == (0, [])


def test_what_came_back_since_the_plan_is_left() -> None:
    cluster = left_by_a_killed_run()

    def come_back() -> None:
        cluster.put(cluster.segments[1])

    cluster.before_writing = come_back

    outcome = cluster.recover()

    assert not outcome.is_complete
    assert segment_id(1) in cluster.promised()


def test_one_of_which_objects_are_left_is_named_and_not_taken_back() -> None:
    cluster = left_by_a_killed_run()
    cluster.put(replace(cluster.segments[1], parts={Part.LOG: cluster.segments[1].parts[Part.LOG]}))

    recovery = cluster.plan()

    assert recovery.to_take_back == 0
    assert cluster.fates()[1] is Fate.DELETED
    assert cluster.findings() == [("object-missing", Severity.WARNING)]


def test_one_that_no_event_deletes_is_named_and_not_taken_back() -> None:
    cluster = deleting()
    cluster.has_deleted = True
    cluster.recover()
    cluster.take_objects(1)
    before = list(cluster.events)

    outcome = cluster.recover()

    assert cluster.findings() == [("object-missing", Severity.CRITICAL)]
    assert (cluster.events, outcome.partitions) == (before, [])


def test_what_a_broker_finished_is_never_taken_back() -> None:
    cluster = DeletingCluster([updated(1, DELETING), updated(1, DELETED), *copied(1, 10, 19)], has_deleted=True)
    cluster.segments = {2: cluster.copy(2, 20, 29)}
    cluster.recover()

    assert cluster.promised() == {segment_id(1), segment_id(2)}
    assert cluster.plan().to_take_back == 0


def test_a_deletion_in_another_partition_takes_nothing_back() -> None:
    # A copy under a mapped topic id has the same segment id.
    cluster = DeletingCluster(deletes_in=OTHER)
    cluster.segments = {1: cluster.copy(1, 10, 19), 2: cluster.copy(2, 20, 29)}

    outcome = cluster.recover()

    assert outcome.is_complete
    assert cluster.promised() == {segment_id(1), segment_id(2)}
    cluster.take_objects(1)
    assert cluster.plan().to_take_back == 0


def test_what_is_not_known_in_the_end_is_said_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = deleting()
    cluster.refuses_from = 5
    refresh = KnownMetadata.refresh

    def refreshed(known: KnownMetadata) -> None:
        if cluster.boundaries >= 4:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "It cannot be read.")
        refresh(known)

    monkeypatch.setattr(KnownMetadata, "refresh", refreshed)
    outcome = cluster.recover(batch_segments=1)

    assert outcome.stopped is not None
    assert "unknown" in outcome.stopped.message
    assert not outcome.is_complete
