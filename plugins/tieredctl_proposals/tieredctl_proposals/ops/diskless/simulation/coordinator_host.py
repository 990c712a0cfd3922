"""A simulated partition of __diskless_metadata: its log, and who leads it with the coordinator that tieredctl has."""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from tieredctl.model.ids import uuid_text
from tieredctl_proposals.coordinator.machine import Coordinator, Loading, NotCoordinator, Operation
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord, NotLeader
from tieredctl_proposals.coordinator.ownership import OwnedFile, OwnershipWorker
from tieredctl_proposals.coordinator.queries import describe_file, oldest_live_file_ms, released_files
from tieredctl_proposals.coordinator.recovery import Origin, Recovered, recover
from tieredctl_proposals.coordinator.snapshots import prune, remove_database, take_snapshot
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC, DisklessRecord
from tieredctl_proposals.model.diskless_requests import (
    CreatablePartitions,
    CreatedPartitions,
    CreatePartitions,
    FindBatches,
    FoundBatches,
    KafkaError,
)
from tieredctl_proposals.ops.diskless.simulation.schedule import Schedule
from tieredctl_proposals.ops.diskless.simulation.settings import Settings

T = TypeVar("T")
_REPLICATION_MS = (5, 15)
_WITHOUT_LEADER_MS = (500, 4_000)
_UNANSWERED_MS = 2_000
_RETRY_MS = 5_000


@dataclass(slots=True)
class AppliedFiles:
    """A coordinator's files as its state has them."""

    connection: sqlite3.Connection

    def has_live_batches(self, object_key: str) -> bool | None:
        file = describe_file(self.connection, object_key)
        return None if file.error is KafkaError.RESOURCE_NOT_FOUND else file.has_live_batches

    def released_files(self, since_ms: int | None = None) -> Iterator[OwnedFile]:
        since = () if since_ms is None else (since_ms,)
        for file in released_files(self.connection, *since):
            yield OwnedFile(file.object_key, file.owner_ids, file.object_format, file.file_size)


@dataclass(slots=True)
class _Leader:
    """One leadership: the coordinator on one broker, its clock, its work on files."""

    coordinator: Coordinator
    files: AppliedFiles
    worker: OwnershipWorker
    skew_ms: int
    is_loaded: bool = False
    looked_ms: int = 0
    waiting: list[tuple[Operation[Any], Callable[[Any], None]]] = field(default_factory=list)


class CoordinatorHost:
    """A coordinator for as long as the simulation lasts, whoever leads it."""

    def __init__(
        self, coordinator_id: int, settings: Settings, schedule: Schedule, chance: Random, folder: Path
    ) -> None:
        self.coordinator_id = coordinator_id
        self.topic_id = uuid_text(coordinator_id.to_bytes(16, "big"))
        self.failovers = self.snapshots = 0
        self.recoveries: Counter[Origin] = Counter()
        """How many recoveries, by what new leaders made their state of."""
        self.has_faults = True
        self._settings, self._schedule, self._chance = settings, schedule, chance
        self._folder = folder
        self._log = ReplicatedLog(coordinator_id)
        self._replicating = self._is_up = False
        self._next_snapshot = settings.snapshot_records
        self._lead(self._recovered().connection)
        self._create_topic(None)

    @property
    def is_led(self) -> bool:
        return self._leader.is_loaded

    @property
    def now_ms(self) -> int:
        """By the leader's clock."""
        return self._schedule.now_ms + self._leader.skew_ms

    @property
    def files(self) -> AppliedFiles:
        """What was applied last, also where nobody leads."""
        return self._leader.files

    @property
    def worker(self) -> OwnershipWorker:
        return self._leader.worker

    def oldest_live_file_ms(self) -> int | None:
        """The time of the oldest file with live batches; a file that is to be committed is not in it."""
        return oldest_live_file_ms(self._leader.files.connection)

    def ask(self, what: Callable[[Coordinator], Operation[T]], answer: Callable[[T | None], None]) -> None:
        """Asks the leader; None answers where there is none, or where another one took over."""
        leader = self._leader
        try:
            operation = what(leader.coordinator)
        except (NotCoordinator, Loading):
            self._schedule.after(_UNANSWERED_MS, lambda: answer(None))
            return
        leader.waiting.append((operation, answer))
        self._replicate()

    def find_batches(self, request: FindBatches) -> FoundBatches:
        """What the leader's state has."""
        return self._leader.coordinator.find_batches(request)

    def newly_released(self) -> Iterator[OwnedFile]:
        """The files that lost their last batch since this was asked last."""
        since_ms, self._leader.looked_ms = self._leader.looked_ms, self.now_ms
        # A record has the time of its appending, and is applied later: until then it was not seen.
        return self._leader.files.released_files(since_ms - _REPLICATION_MS[1])

    def close(self) -> None:
        self._leader.files.connection.close()

    def _create_topic(self, created: CreatedPartitions | None) -> None:
        if created is None:
            partitions = self._settings.partitions_per_coordinator
            topic = CreatablePartitions(self.topic_id, f"topic-{self.coordinator_id}", partitions)
            self.ask(lambda leader: leader.create_partitions(CreatePartitions((topic,))), self._create_topic)

    def _replicate(self) -> None:
        if not self._replicating:
            self._replicating = True
            self._schedule.after(self._chance.randint(*_REPLICATION_MS), self._replicated)

    def _replicated(self) -> None:
        self._replicating = False
        leader = self._leader
        if not self._is_up:
            return
        self._log.high_watermark = self._log.end_offset
        leader.coordinator.poll()
        if not leader.is_loaded:
            leader.is_loaded = True
            leader.looked_ms = self.now_ms
            leader.worker.start(self.now_ms)
        self._answer(leader)
        if self._log.high_watermark >= self._next_snapshot:
            self._take_snapshot()

    def _answer(self, leader: _Leader) -> None:
        answered = [pair for pair in leader.waiting if pair[0].is_over]
        leader.waiting = [pair for pair in leader.waiting if not pair[0].is_over]
        for operation, answer in answered:
            try:
                answer(operation.answer)
            except NotCoordinator:
                self._schedule.after(_UNANSWERED_MS, lambda answer=answer: answer(None))  # type: ignore[misc]

    def _take_snapshot(self) -> None:
        self._next_snapshot = self._log.high_watermark + self._settings.snapshot_records
        self.snapshots += 1
        take_snapshot(self._state, self._folder, self._log.name)
        prune(LeadersLog(self._log), self._folder)

    @property
    def _state(self) -> Path:
        return self._folder / f"state-{self.coordinator_id}.sqlite"

    def _fail_over(self) -> None:
        """The leader is gone. For some time there is none."""
        if not self.has_faults:
            return
        self.failovers += 1
        leader = self._leader
        self._is_up = leader.is_loaded = False
        leader.coordinator.resign()
        self._log.fail_over(self._chance)
        self._answer(leader)
        self._schedule.after(self._chance.randint(*_WITHOUT_LEADER_MS), self._take_over)

    def _take_over(self) -> None:
        self.close()
        if self._chance.random() < 0.5:
            remove_database(self._state)  # a broker that never led it: it has the snapshots and the log
        recovered = self._recovered()
        self.recoveries[recovered.origin] += 1
        self._lead(recovered.connection)

    def _recovered(self) -> Recovered:
        self._folder.mkdir(parents=True, exist_ok=True)
        return recover(self._state, LeadersLog(self._log), self._folder)

    def _lead(self, connection: sqlite3.Connection) -> None:
        log = LeadersLog(self._log)
        skew_ms = self._chance.randint(-self._settings.clock_skew_ms, self._settings.clock_skew_ms)
        files = AppliedFiles(connection)
        worker = OwnershipWorker(self.coordinator_id, files, self._settings.grace_ms, _RETRY_MS)
        coordinator = Coordinator(self.coordinator_id, log, connection, lambda: self._schedule.now_ms + skew_ms)
        self._leader = _Leader(coordinator, files, worker, skew_ms)
        self._is_up = True
        self._replicate()
        self._schedule.after(1 + round(self._chance.expovariate(1 / self._settings.failover_ms)), self._fail_over)


class ReplicatedLog:
    """What all leaders of one coordinator append to, in turn. A MetadataLog is one leader's view of it."""

    def __init__(self, coordinator_id: int) -> None:
        self.name = f"{DISKLESS_METADATA_TOPIC}-{coordinator_id}"
        self.start_offset = 0
        self.high_watermark = 0
        self.leader_epoch = 0
        self.records: deque[LoggedRecord] = deque()

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.records)

    def fail_over(self, chance: Random) -> None:
        """A new leader: of what was not known to be replicated, it has some, or all, or nothing."""
        self.leader_epoch += 1
        for _ in range(chance.randint(0, self.end_offset - self.high_watermark)):
            self.records.pop()


class LeadersLog:
    """The log as one leader has it: once another leads, nothing can be appended."""

    def __init__(self, log: ReplicatedLog) -> None:
        self._log = log
        self._leader_epoch = log.leader_epoch
        self.name = log.name

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def high_watermark(self) -> int:
        return self._log.high_watermark

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def append(self, records: Sequence[DisklessRecord], timestamp_ms: int) -> int:
        if self._leader_epoch != self._log.leader_epoch:
            raise NotLeader
        first = self._log.end_offset
        self._log.records += (LoggedRecord(first + place, timestamp_ms, each) for place, each in enumerate(records))
        return first

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        first = offset - self._log.start_offset
        return islice(self._log.records, first, self._log.high_watermark - self._log.start_offset)

    def prune(self, offset: int) -> None:
        while self._log.start_offset < offset:
            self._log.records.popleft()
            self._log.start_offset += 1
