"""Runs a simulation from its seed, and tells what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tieredctl_proposals.coordinator.gateways import Deployment, placed_gateways
from tieredctl_proposals.coordinator.ownership import AskForHandOver, DeleteObject, HandOver, OwnershipWorker
from tieredctl_proposals.coordinator.recovery import Origin
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    BatchQuery,
    CommitFile,
    CommittedFile,
    DeletableRecords,
    DeleteRecords,
    DescribedFiles,
    DescribeFiles,
    FindBatches,
    KafkaError,
    ListedOffsets,
    ListOffsets,
    OffsetQuery,
)
from tieredctl_proposals.ops.diskless.simulation.brokers import Broker, Producer, Production
from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.settings import Settings
from tieredctl_proposals.ops.diskless.simulation.world import World
from tieredctl_proposals.ops.diskless.written_states import written_states

_LONGEST_PRODUCTION_MS = 30 * 86_400_000
_LONGEST_ELECTION_MS = 60_000
_SPARE_MS = 600_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened, what was lost, and what is still in the store after everything had time to be cleaned."""

    counts: dict[str, int]
    lost: dict[str, int]
    puts: int
    gets: int
    lists: int
    deletes: int
    uploaded_bytes: int
    byte_ms: int
    left: int
    produced_ms: int
    lasted_ms: int


def simulate(settings: Settings, folder: Path) -> Outcome:
    """Runs until everything is produced, acknowledged, and no longer retained. States are kept in the folder.

    Raises TieredctlError `unwritable` where the folder does not take them.
    """
    with written_states(folder.parent, "the simulated coordinators"), closing(World(settings, folder)) as world:
        return _simulate(world)


def _simulate(world: World) -> Outcome:
    settings, schedule, store, counts = world.settings, world.schedule, world.store, world.promises.counts
    production = Production(settings.batches)
    brokers = _brokers(world, production)
    Cleaning(world)
    Consumers(world)
    schedule.run(lambda: production.is_over, _LONGEST_PRODUCTION_MS)
    produced_ms = schedule.now_ms
    for host in world.hosts:
        host.has_faults = False
    schedule.run(lambda: all(host.is_led for host in world.hosts), produced_ms + _LONGEST_ELECTION_MS)
    world.promises.audit()
    schedule.run(lambda: not store.objects, schedule.now_ms + _longest_cleaning_ms(settings))
    counts["broker crashes"] = sum(broker.crashes for broker in brokers)
    counts["failovers"] = sum(host.failovers for host in world.hosts)
    counts["snapshots"] = sum(host.snapshots for host in world.hosts)
    for origin in Origin:
        counts[f"recoveries from {origin.value}"] = sum(host.recoveries[origin] for host in world.hosts)
    return Outcome(
        dict(counts),
        {name: number for name, number in world.promises.lost.items() if number},
        *(store.puts, store.gets, store.lists, store.deletes, store.put_bytes, store.byte_ms),
        *(len(store.objects), produced_ms, schedule.now_ms),
    )


def _longest_cleaning_ms(settings: Settings) -> int:
    """By when everything has to be gone: retained no longer, handed over by each, left alone, and looked for twice."""
    owned = settings.retention_ms + 2 * settings.grace_ms * (settings.coordinators + 1)
    return owned + settings.orphan_grace_ms + 3 * settings.orphan_scan_ms + 4 * settings.clock_skew_ms + _SPARE_MS


def _brokers(world: World, production: Production) -> list[Broker]:
    """Each with its producers, which prefer the gateways of their partitions if there are any."""
    settings = world.settings
    deployment = Deployment.even(settings.brokers, settings.racks, settings.coordinators)
    gateways = placed_gateways(deployment)
    brokers = []
    for broker_id in range(settings.brokers):
        every = tuple(range(settings.coordinators))
        coordinators = gateways.coordinators[broker_id] if settings.uses_gateways else every
        producers = [
            Producer(
                broker_id * settings.producers_per_broker + number,
                world.hosts[coordinators[number % len(coordinators)]],
                world.chance.randrange(settings.partitions_per_coordinator),
            )
            for number in range(settings.producers_per_broker if coordinators else 0)
        ]
        brokers.append(Broker(broker_id, world, producers, production, deployment.hosts.__getitem__))
    return brokers


_INTERVAL_MS = 1_000
_FETCH_BYTES = 1 << 20
_LONGEST_READ_MS = 30_000
"""How long after it found a batch a consumer reads its object."""


class Consumers:
    """They read from the beginning of logs, which are deleted meanwhile: an object has to stay for who found it."""

    def __init__(self, world: World) -> None:
        self._settings, self._schedule, self._chance = world.settings, world.schedule, world.chance
        self._store, self._hosts, self._promises = world.store, world.hosts, world.promises
        self._starts: dict[tuple[int, int], int] = {}
        self._schedule.every(_INTERVAL_MS, self._fetch, _INTERVAL_MS)

    def _fetch(self) -> None:
        host = self._chance.choice(self._hosts)
        partition = self._chance.randrange(self._settings.partitions_per_coordinator)
        if not host.is_led:
            return
        offset = self._starts.get((host.coordinator_id, partition), 0)
        query = BatchQuery(host.topic_id, partition, offset, _FETCH_BYTES)
        answer = host.find_batches(FindBatches(_FETCH_BYTES, 1, (query,))).partitions[0]
        if answer.error is KafkaError.OFFSET_OUT_OF_RANGE:
            self._starts[host.coordinator_id, partition] = answer.log_start_offset
        for batch in answer.batches:
            delay_ms = self._chance.randint(0, _LONGEST_READ_MS)
            self._schedule.after(delay_ms, lambda key=batch.object_key: self._read(key))  # type: ignore[misc]

    def _read(self, key: str) -> None:
        def answered(was_there: bool) -> None:
            self._promises.counts["reads"] += 1
            self._promises.lost["reads"] += not was_there

        self._store.get(key, answered)


_RETENTION_INTERVAL_MS = 10_000
_WORK_INTERVAL_MS = 1_000
_NETWORK_MS = (1, 5)
_NOT_DELIVERED = 0.02


class Cleaning:
    """The background work of all coordinators."""

    def __init__(self, world: World) -> None:
        self._settings, self._schedule, self._chance = world.settings, world.schedule, world.chance
        self._store, self._hosts, self._promises = world.store, world.hosts, world.promises
        for host in world.hosts:
            self._schedule.every(_RETENTION_INTERVAL_MS, lambda host=host: self._retain(host), _RETENTION_INTERVAL_MS)  # type: ignore[misc]
            self._schedule.every(_WORK_INTERVAL_MS, lambda host=host: self._work(host), _WORK_INTERVAL_MS)  # type: ignore[misc]
        self._schedule.every(self._settings.orphan_scan_ms, self._scan, self._settings.orphan_scan_ms)

    def _retain(self, host: CoordinatorHost) -> None:
        """Asks for the first offset that is young enough, and deletes what is before it."""
        since_ms = max(0, host.now_ms - self._settings.retention_ms)
        numbers = range(self._settings.partitions_per_coordinator)
        asked = ListOffsets(tuple(OffsetQuery(host.topic_id, number, since_ms) for number in numbers))

        def delete(listed: ListedOffsets | None) -> None:
            if listed is None:
                return
            old = [
                DeletableRecords(each.topic_id, each.partition, LATEST if each.offset < 0 else each.offset)
                for each in listed.partitions
                if each.error is KafkaError.NONE and each.offset
            ]
            if old:
                host.ask(lambda leader: leader.delete_records(DeleteRecords(tuple(old))), lambda _: None)

        host.ask(lambda leader: leader.list_offsets(asked), delete)

    def _work(self, host: CoordinatorHost) -> None:
        if not host.is_led:
            return
        for file in host.newly_released():
            host.worker.release(file, host.now_ms)
        worker = host.worker
        for duty in worker.due(host.now_ms):
            if isinstance(duty, DeleteObject):
                self._delete(duty, worker)
            elif self._is_delivered():
                self._send(duty, worker)

    def _delete(self, duty: DeleteObject, worker: OwnershipWorker) -> None:
        key = duty.file.object_key
        self._store.delete(key, lambda: self._deleted(key, "deleted by their last owner"), lambda: worker.confirm(duty))

    def _deleted(self, key: str, by_whom: str) -> None:
        self._promises.counts[by_whom] += 1
        self._promises.demand_dead(key)

    def _send(self, message: HandOver | AskForHandOver, sender: OwnershipWorker) -> None:
        self._promises.counts["hand-overs" if isinstance(message, HandOver) else "questions for a hand-over"] += 1
        self._later(lambda: self._receive(message, sender))

    def _receive(self, message: HandOver | AskForHandOver, sender: OwnershipWorker) -> None:
        host, file = self._hosts[message.to], message.file
        if not host.is_led:
            return
        if host.worker.receive(message, host.now_ms):
            if self._is_delivered():
                self._later(lambda: sender.confirm(message))
            return
        request = CommitFile(file.object_key, file.file_size, file.owner_ids, (), file.object_format)

        def committed(answer: CommittedFile | None) -> None:
            if answer is not None:
                self._promises.counts["committed without batches"] += 1

        host.ask(lambda leader: leader.commit_file(request, -1), committed)

    def _scan(self) -> None:
        """The KIP's search for orphans: nothing that is younger than the oldest file of all, less the grace period, and
        nothing that any coordinator knows."""
        if not all(host.is_led for host in self._hosts):
            return
        skew_ms = self._chance.randint(-self._settings.clock_skew_ms, self._settings.clock_skew_ms)
        oldest = [file_ms for host in self._hosts if (file_ms := host.oldest_live_file_ms()) is not None]
        threshold_ms = min([*oldest, self._schedule.now_ms + skew_ms]) - self._settings.orphan_grace_ms
        unknown = set(keys := self._store.list_older(threshold_ms))
        waiting = len(self._hosts)
        if not keys:
            return

        def described(files: DescribedFiles | None) -> None:
            nonlocal waiting
            waiting -= 1
            if files is None:
                unknown.clear()
                waiting = -1
                return
            unknown.difference_update(
                each.object_key for each in files.files if each.error is not KafkaError.RESOURCE_NOT_FOUND
            )
            if not waiting:
                for key in sorted(unknown):
                    self._store.delete(key, lambda key=key: self._deleted(key, "deleted as orphans"), lambda: None)  # type: ignore[misc]

        request = DescribeFiles(tuple(keys))
        for host in self._hosts:
            host.ask(lambda leader: leader.describe_files(request), described)

    def _is_delivered(self) -> bool:
        return self._chance.random() >= _NOT_DELIVERED

    def _later(self, action: Callable[[], None]) -> None:
        self._schedule.after(self._chance.randint(*_NETWORK_MS), action)
