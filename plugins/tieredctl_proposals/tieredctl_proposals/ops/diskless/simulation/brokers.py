"""Simulated brokers: they collect what their producers send, upload it, and commit it with each coordinator of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tieredctl.model.ids import uuid_text
from tieredctl.process.progress import note
from tieredctl_proposals.model.diskless_records import LOG_APPEND_TIME
from tieredctl_proposals.model.diskless_requests import CommitBatch, CommitFile, CommittedFile, KafkaError
from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.world import World

_MOST_RECORDS = 20
_RECORD_BYTES = 500
_RESTART_MS = 10_000
_RETRY_MS = 1_000
_NETWORK_MS = (1, 5)
_NOT_DELIVERED = 0.002


@dataclass(slots=True, eq=False)
class Producer:
    """An idempotent producer of one partition, with one batch under way at most; until it is acknowledged, it is sent
    again with the same sequences."""

    producer_id: int
    coordinator: CoordinatorHost
    partition: int
    sequence: int = 0
    records: int = 0
    """The records of the batch that is not acknowledged yet; 0 if there is none."""
    is_waiting: bool = False


@dataclass(slots=True, eq=False)
class _File:
    """A file under way: for each owner its producers, in the order of their batches."""

    key: str
    size: int
    uploaded_ms: int
    producers: dict[int, list[Producer]]
    request: dict[int, CommitFile]
    open: set[int] = field(default_factory=set)


class Production:
    """How many batches are still to be produced by all brokers together."""

    def __init__(self, batches: int) -> None:
        self.left = batches
        self.under_way = 0

    @property
    def is_over(self) -> bool:
        return not self.left and not self.under_way


class Broker:
    """A broker, which dies now and then and forgets what it was doing."""

    def __init__(
        self,
        broker_id: int,
        world: World,
        producers: Sequence[Producer],
        production: Production,
        host_of: Callable[[int], int],
    ) -> None:
        self.broker_id = broker_id
        self.crashes = 0
        self._settings, self._schedule, self._chance = world.settings, world.schedule, world.chance
        self._store, self._promises = world.store, world.promises
        self._producers, self._production, self._host_of = producers, production, host_of
        self._life = 0
        self._is_up = True
        self._hosts = {each.coordinator.coordinator_id: each.coordinator for each in producers}
        self._schedule.after(self._chance.randrange(self._settings.commit_interval_ms), self._flush)

    def _flush(self) -> None:
        """Uploads what producers sent since the last time."""
        if self._production.is_over:
            return
        self._schedule.after(self._settings.commit_interval_ms, self._flush)
        if not self._is_up:
            return
        ready = [each for each in self._producers if not each.is_waiting and self._has_batch(each)]
        if not ready:
            return
        file = self._file(ready)
        note("batches produced", self._settings.batches - self._production.left, self._settings.batches)
        life = self._life
        self._promises.counts["uploaded files"] += 1
        self._store.put(file.key, file.size, lambda: self._uploaded(file, life))

    def _has_batch(self, producer: Producer) -> bool:
        if producer.records:
            self._promises.counts["sent again"] += 1
            return True
        if not self._production.left:
            return False
        self._production.left -= 1
        self._production.under_way += 1
        self._promises.counts["produced"] += 1
        producer.records = self._chance.randint(1, _MOST_RECORDS)
        return True

    def _file(self, ready: Sequence[Producer]) -> _File:
        by_owner: dict[int, list[Producer]] = {}
        for each in ready:
            each.is_waiting = True
            by_owner.setdefault(each.coordinator.coordinator_id, []).append(each)
        owners = list(by_owner)
        self._chance.shuffle(owners)
        key, position = uuid_text(self._chance.randbytes(16)), 0
        batches: dict[int, tuple[CommitBatch, ...]] = {}
        for owner, of_owner in by_owner.items():
            made = []
            for each in of_owner:
                size = each.records * _RECORD_BYTES
                made.append(self._batch(each, position, size))
                position += size
            batches[owner] = tuple(made)
        requests = {owner: CommitFile(key, position, tuple(owners), batches[owner]) for owner in owners}
        return _File(key, position, 0, by_owner, requests, set(owners))

    def _batch(self, producer: Producer, position: int, size: int) -> CommitBatch:
        last = producer.records - 1
        sequences = (producer.sequence, producer.sequence + last)
        now_ms = self._schedule.now_ms
        topic_id = producer.coordinator.topic_id
        return CommitBatch(
            *(topic_id, producer.partition, position, size, 0, last, now_ms, LOG_APPEND_TIME),
            *(producer.producer_id, 0, *sequences),
        )

    def _uploaded(self, file: _File, life: int) -> None:
        if life != self._life:
            return
        self._promises.counts["files to commit"] += 1
        file.uploaded_ms = self._schedule.now_ms
        owners = file.request[next(iter(file.request))].owner_ids
        dies = self._chance.random() < self._settings.crash_rate
        reached = owners[: self._chance.randrange(len(owners))] if dies else owners
        for owner in reached:
            self._commit(file, owner, life)
        if dies:
            self._promises.counts["files left by a crash"] += not reached
            self._promises.counts["files committed in part"] += bool(reached)
            self._die()
            return
        self._promises.counts["commit calls"] += len(owners)
        network = {self._host_of(owner) for owner in owners} - {self.broker_id}
        self._promises.counts["commit calls over the network"] += len(network)

    def _commit(self, file: _File, owner: int, life: int) -> None:
        """Sends a commit to one owner; request or answer may be lost."""
        request, host = file.request[owner], self._hosts[owner]

        def arrive() -> None:
            host.ask(lambda leader: leader.commit_file(request, self.broker_id), answered)

        def answered(result: CommittedFile | None) -> None:
            if result is not None:
                accepted = sum(each.error is KafkaError.NONE and not each.is_duplicate for each in result.batches)
                self._promises.demand_object(file.key, accepted)
            if self._chance.random() >= _NOT_DELIVERED:
                self._schedule.after(
                    self._chance.randint(*_NETWORK_MS), lambda: self._answered(file, owner, life, result)
                )

        if self._chance.random() >= _NOT_DELIVERED:
            self._schedule.after(self._chance.randint(*_NETWORK_MS), arrive)
        self._schedule.after(self._settings.commit_timeout_ms, lambda: self._give_up(file, owner, life))

    def _answered(self, file: _File, owner: int, life: int, result: CommittedFile | None) -> None:
        if life != self._life or owner not in file.open:
            return
        if result is None:
            if self._schedule.now_ms + _RETRY_MS - file.uploaded_ms < self._settings.commit_timeout_ms:
                self._promises.counts["commits tried again"] += 1
                self._schedule.after(_RETRY_MS, lambda: self._retry(file, owner, life))
            return
        file.open.discard(owner)
        for producer, each in zip(file.producers[owner], result.batches, strict=True):
            producer.is_waiting = False
            if each.error is KafkaError.NONE:
                self._promises.acknowledge(owner, producer.partition, each)
                producer.sequence += producer.records
                producer.records = 0
                self._production.under_way -= 1
            else:
                self._promises.counts["refused"] += 1

    def _retry(self, file: _File, owner: int, life: int) -> None:
        if life == self._life and owner in file.open:
            self._commit(file, owner, life)

    def _give_up(self, file: _File, owner: int, life: int) -> None:
        if life == self._life and owner in file.open:
            if self._schedule.now_ms - file.uploaded_ms < self._settings.commit_timeout_ms:
                return  # of a later try
            file.open.discard(owner)
            self._promises.counts["commits given up"] += 1
            for producer in file.producers[owner]:
                producer.is_waiting = False

    def _die(self) -> None:
        self.crashes += 1
        self._life += 1
        self._is_up = False
        self._schedule.after(_RESTART_MS, self._restart)

    def _restart(self) -> None:
        self._is_up = True
        for each in self._producers:
            each.is_waiting = False
