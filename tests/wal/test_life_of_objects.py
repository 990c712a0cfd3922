"""KIP-1176, "Life Cycle of the active log segments": whatever happens in whatever order, and whoever is interrupted
between any two steps, no object is removed that a reader needs, and in the end nothing dead is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.leadership import deletions_beyond, segments_beyond, upload_from
from tieredctl_proposals.wal.lifecycle import JudgedObject, judge_objects
from tieredctl_proposals.wal.places import WAL_SUFFIX
from tieredctl_proposals.wal.reading import fetch_from_offset
from tieredctl_proposals.wal.replayed import ReplayedWal
from tieredctl_proposals.wal.sections import queue_item
from tieredctl_proposals.wal.steps import Step
from tieredctl_proposals.wal.tiered_ranges import EpochRanges, TieredRanges
from tieredctl_proposals.wal.upload import upload_steps

from tests.conftest import examples
from tests.metadata_logs import DELETED, PARTITION, segment_id
from tests.wal.model_partition import ModelBatch, ModelPartition
from tests.wal.model_wal import METADATA_PARTITIONS, ModelWal
from tests.wal.recoverable import recoverable_end
from tests.wal_histories import OTHER
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog

WITHOUT_KIP_405 = TopicIdPartition("EBAPDg0MCwoJCAcGBQQDAQ", "untiered", 0)
NUMBERS = st.integers(0, 2)
ALL = 1_000
STEPS = st.sampled_from([*range(10), *[ALL] * 10])
"""How far somebody gets until interrupted."""
GIVE_UP_AFTER_MS = 500


@dataclass
class InFlight:
    """Somebody who may be interrupted for ever, or go on much later."""

    steps: Iterator[Step]
    begun_ms: int
    segments: set[str] = field(default_factory=set)


class LifeOfObjects(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.wal = ModelWal()
        self.partitions = [
            ModelPartition(PARTITION),
            ModelPartition(OTHER, retention_ms=3_000),
            ModelPartition(WITHOUT_KIP_405, is_tiered=False, retention_ms=2_000),
        ]
        self.in_flight: list[InFlight] = []
        self.uploaded: dict[tuple[TopicIdPartition, int, int], set[str]] = {}
        """Each batch that readers could ever get from the WAL tier, with the segments that had it."""
        self.excused: set[str] = set()
        """Segments that a new leader deleted, or that were given up and reported later all the same."""
        self.deposed: list[tuple[ModelPartition, LeaderLog, int]] = []
        """Leaders of the past, with their logs and epochs: they may not know."""
        self.named = 0
        self.known, self.known_events = self.wal.replayed(), 0
        self.read_events = -1

    # What happens in the cluster.

    @rule(number=NUMBERS, records=st.integers(1, 4), batches=st.integers(1, 3))
    def producers_write(self, number: int, records: int, batches: int) -> None:
        for _ in range(batches):
            self.partitions[number].append(records, self.wal.now_ms)

    @rule(ms=st.sampled_from([1, 100, 600, 4_000]))
    def time_passes(self, ms: int) -> None:
        self.wal.now_ms += ms
        late = [one.segments for one in self.in_flight if self.wal.now_ms - one.begun_ms > GIVE_UP_AFTER_MS]
        self.excused |= set().union(*late) - set().union(*self.uploaded.values())

    @rule(number=st.integers(0, 1), batches=st.integers(1, 5))
    def kip_405_tiers(self, number: int, batches: int) -> None:
        self.partitions[number].tier(batches)

    @rule(number=NUMBERS, batches=st.integers(1, 5))
    def local_retention_deletes(self, number: int, batches: int) -> None:
        self.partitions[number].delete_local(batches)

    @rule(number=NUMBERS, offset=st.integers(0, 30))
    def the_log_start_moves(self, number: int, offset: int) -> None:
        self.partitions[number].move_log_start(offset)

    @rule(number=NUMBERS, lost=st.integers(0, 3), steps=STEPS)
    def another_leader_is_elected(self, number: int, lost: int, steps: int) -> None:
        one = self.partitions[number]
        self.deposed.append((one, one.leader, one.leader_epoch))
        one.elect(lost)
        self.leaders_delete(number, steps)

    @rule(number=NUMBERS, steps=STEPS)
    def leaders_delete(self, number: int, steps: int) -> None:
        """What is beyond the leader's own log."""
        one, known = self.partitions[number], self.replayed().partition(self.partitions[number].partition)
        self.excused |= {segment.segment_id for segment in segments_beyond(known, one.leader)}
        deletions = deletions_beyond(
            known, one.leader, broker_id=2, leader_epoch=one.leader_epoch, clock_ms=self.wal.clock_ms
        )
        self.wal.do(deletions, steps)

    @precondition(lambda self: self.deposed)
    @rule(which=st.integers(0, 100))
    def a_leader_of_the_past_deletes(self, which: int) -> None:
        one, leader, leader_epoch = self.deposed[which % len(self.deposed)]
        known = self.replayed().partition(one.partition)
        self.wal.do(deletions_beyond(known, leader, broker_id=1, leader_epoch=leader_epoch, clock_ms=self.wal.clock_ms))

    # Uploads and deletions, by anybody at any time.

    @rule(numbers=st.sets(NUMBERS, min_size=1), most=st.integers(1, 3), steps=STEPS)
    def an_upload_begins(self, numbers: set[int], most: int, steps: int) -> None:
        items = []
        for one in (self.partitions[number] for number in sorted(numbers)):
            start = upload_from(self.replayed().partition(one.partition), one.tiered, one.leader)
            if records := b"".join(batch.data for batch in one.batches(start)[:most]):
                items.append(
                    queue_item(
                        one.partition,
                        self.new_id(),
                        records,
                        broker_id=1,
                        leader_epoch=one.leader_epoch,
                        event_timestamp_ms=self.wal.now_ms,
                    )
                )
        if items:
            upload = upload_steps(
                items, self.new_id(), broker_id=1, metadata_partitions=METADATA_PARTITIONS, clock_ms=self.wal.clock_ms
            )
            segments = {item.metadata.segment_id for item in items}
            self.begin(InFlight(upload, self.wal.now_ms, segments), steps)

    @rule(which=st.integers(0, 100), steps=STEPS)
    def a_cleaner_begins(self, which: int, steps: int) -> None:
        if due := self.due():
            chosen = due[which % len(due)]
            deletion = deletion_steps(
                self.replayed(), chosen.combined_segment_id, broker_id=3, clock_ms=self.wal.clock_ms
            )
            self.begin(InFlight(deletion, self.wal.now_ms), steps)

    @precondition(lambda self: self.in_flight)
    @rule(which=st.integers(0, 100), steps=STEPS)
    def somebody_goes_on(self, which: int, steps: int) -> None:
        self.wal.do(self.in_flight[which % len(self.in_flight)].steps, steps)

    # What must hold.

    @invariant()
    def what_readers_are_told_is_there_and_right(self) -> None:
        known = self.replayed()
        if self.read_events == self.events():
            return
        self.read_events = self.events()
        for one in self.partitions:
            readers = known.partition(one.partition)
            for batch in one.lineage():
                segment = readers.segment_for(batch.leader_epoch, batch.first)
                if segment is not None:
                    found = fetch_from_offset(self.wal.store, segment, batch.first, 1)
                    assert found.data == batch.data
                    self.uploaded.setdefault(name(one, batch), set()).add(segment.segment_id)

    @invariant()
    def nothing_is_removed_that_a_reader_needs(self) -> None:
        known = self.replayed()
        for one in self.partitions:
            readers = known.partition(one.partition)
            for batch in one.lineage():
                segments = self.uploaded.get(name(one, batch), set())
                is_old = not one.is_tiered and self.wal.now_ms - timestamp(batch) > one.retention_ms
                if not segments or segments & self.excused or is_old or one.is_safe_elsewhere(batch):
                    continue
                assert readers.segment_for(batch.leader_epoch, batch.first) is not None, batch

    @invariant()
    def a_new_broker_rebuilds_all_up_to_what_was_waiting_for_its_upload(self) -> None:
        known = self.replayed()
        for one in self.partitions:
            readers, end = known.partition(one.partition), one.log_start
            for batch in one.lineage():
                in_wal = readers.segment_for(batch.leader_epoch, batch.first) is not None
                if not in_wal and batch.last >= one.tiered_end:
                    break
                end = batch.last + 1
            assert recoverable_end(readers, one.tiered, one.epochs, one.log_start) == end

    def teardown(self) -> None:
        """In the end all is tiered or past its retention, and cleaners are left to do their work."""
        for one in self.partitions:
            one.tier(len(one.log))
        for _ in range(3):
            self.wal.now_ms += 10_000
            for number in range(len(self.partitions)):
                self.leaders_delete(number, ALL)
            for one_due in self.due():
                deletion = deletion_steps(
                    self.replayed(), one_due.combined_segment_id, broker_id=3, clock_ms=self.wal.clock_ms
                )
                self.wal.do(deletion)
        assert not self.wal.stored_keys()
        known = self.replayed()
        assert set(known.segments.states.tolist()) <= {DELETED}
        assert set(known.combined.states.tolist()) <= {DELETED}

    def begin(self, somebody: InFlight, steps: int) -> None:
        self.in_flight.append(somebody)
        self.wal.do(somebody.steps, steps)

    def due(self) -> list[JudgedObject]:
        """The objects that may go, and are there or not deleted yet."""
        known = self.replayed()
        ranges = [
            (known.events.partitions[one.partition], *each)
            for one in self.partitions
            if one.partition in known.events.partitions
            for each in one.tiered_ranges
        ]
        columns = np.array(ranges, np.int64).reshape(-1, 4).T
        judged = judge_objects(
            known,
            TieredRanges(EpochRanges(*columns)),
            {one.partition: one.facts for one in self.partitions},
            now_ms=self.wal.now_ms,
            give_up_after_ms=GIVE_UP_AFTER_MS,
        )
        stored = {key.removesuffix(WAL_SUFFIX) for key in self.wal.stored_keys()}
        due = []
        for one in judged.objects(judged.may_go()):
            combined = known.combined_named(one.combined_segment_id)
            states = {each.metadata.state for each in known.segments_in(one.combined_segment_id)}
            states |= {combined.metadata.state} if combined else set()
            if states - {DELETED} or one.combined_segment_id in stored:
                due.append(one)
        return due

    def events(self) -> int:
        return sum(map(len, self.wal.topic))

    def replayed(self) -> ReplayedWal:
        if self.events() != self.known_events:
            self.known, self.known_events = self.wal.replayed(), self.events()
        return self.known

    def new_id(self) -> str:
        self.named += 1
        return segment_id(self.named)


def name(one: ModelPartition, batch: ModelBatch) -> tuple[TopicIdPartition, int, int]:
    return one.partition, batch.leader_epoch, batch.first


def timestamp(batch: ModelBatch) -> int:
    return int.from_bytes(batch.data[35:43], signed=True)


def run(usual: int, steps: int) -> None:
    run_state_machine_as_test(
        LifeOfObjects,
        settings=settings(
            max_examples=examples(usual), stateful_step_count=steps, suppress_health_check=list(HealthCheck)
        ),
    )


def test_never_is_an_object_removed_that_a_reader_needs_and_in_the_end_nothing_dead_is_left() -> None:
    run(100, 25)


@pytest.mark.exhaustive
def test_the_same_in_longer_stories() -> None:
    run(100, 50)
