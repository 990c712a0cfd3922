"""What all parts of a simulation share."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

from tieredctl_proposals.model.diskless_requests import BatchQuery, BatchResult, FindBatches
from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.object_store import SimulatedStore
from tieredctl_proposals.ops.diskless.simulation.schedule import Schedule
from tieredctl_proposals.ops.diskless.simulation.settings import Settings


class World:
    """Time, chance, the store, the coordinators, and what was promised."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.schedule, self.chance = Schedule(), Random(settings.seed)
        skew_ms = self.chance.randint(-settings.clock_skew_ms, settings.clock_skew_ms)
        self.store = SimulatedStore(self.schedule, self.chance, settings.slow_store_rate, skew_ms)
        self.hosts: list[CoordinatorHost] = []
        self.promises = Promises(self.store, self.hosts)
        for number in range(settings.coordinators):
            self.hosts.append(CoordinatorHost(number, settings, self.schedule, self.chance, folder / str(number)))

    def close(self) -> None:
        """Closes what coordinators have open."""
        for host in self.hosts:
            host.close()


_NO_LIMIT = (1 << 31) - 1
_BATCHES_AT_ONCE = 10_000


class Promises:
    """Counts what happened, and what should never have."""

    def __init__(self, store: SimulatedStore, hosts: list[CoordinatorHost]) -> None:
        self.counts: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        """How much was lost, by what it was: batches, objects, reads. Always empty, unless the settings cannot work."""
        self._store, self._hosts = store, hosts
        self._offsets: defaultdict[tuple[int, int], array[int]] = defaultdict(lambda: array("q"))

    def acknowledge(self, coordinator: int, partition: int, result: BatchResult) -> None:
        """A producer was told where its batch is."""
        self._offsets[coordinator, partition].append(result.assigned_base_offset)
        self.counts["acknowledged"] += 1
        self.counts["duplicates"] += result.is_duplicate

    def demand_object(self, key: str, batches: int) -> None:
        """Batches of a file were accepted: it has to be there."""
        if batches and key not in self._store.objects:
            self.lost["batches"] += batches

    def demand_dead(self, key: str) -> None:
        """An object was deleted: no coordinator may have live batches of it."""
        self.lost["objects"] += any(host.files.has_live_batches(key) for host in self._hosts)

    def audit(self) -> None:
        """Walks through all partitions: each acknowledged batch from the log start on is found once, in an object."""
        for host in self._hosts:
            for (coordinator, partition), offsets in self._offsets.items():
                if coordinator == host.coordinator_id:
                    self._audit_partition(host, partition, offsets)

    def _audit_partition(self, host: CoordinatorHost, partition: int, offsets: array[int]) -> None:
        missing, offset, start = set(offsets), 0, None
        self.lost["offsets given twice"] += len(offsets) - len(missing)
        while True:
            asked = BatchQuery(host.topic_id, partition, offset if start is not None else 0, _NO_LIMIT)
            answer = host.find_batches(FindBatches(_NO_LIMIT, _BATCHES_AT_ONCE, (asked,))).partitions[0]
            if start is None:
                start = offset = answer.log_start_offset
                continue
            for batch in answer.batches:
                self.lost["batches"] += batch.object_key not in self._store.objects
                self.lost["gaps"] += batch.base_offset != offset and batch.base_offset > start
                missing.discard(batch.base_offset)
                offset = batch.last_offset + 1
                self.counts["readable"] += 1
            if not answer.batches:
                break
        self.lost["batches"] += sum(base >= start for base in missing)
