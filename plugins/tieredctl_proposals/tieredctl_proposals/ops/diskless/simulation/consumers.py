"""A simulated consumer: it finds batches, and reads their objects within the grace period."""

from __future__ import annotations

from tieredctl_proposals.model.diskless_requests import BatchQuery, FindBatches, KafkaError
from tieredctl_proposals.ops.diskless.simulation.world import World

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
        found = host.find_batches(FindBatches(_FETCH_BYTES, 1, (query,))).partitions[0]
        if found.error is KafkaError.OFFSET_OUT_OF_RANGE:
            self._starts[host.coordinator_id, partition] = found.log_start_offset
        for batch in found.batches:
            delay_ms = self._chance.randint(0, _LONGEST_READ_MS)
            self._schedule.after(delay_ms, lambda key=batch.object_key: self._read(key))  # type: ignore[misc]

    def _read(self, key: str) -> None:
        def answered(was_there: bool) -> None:
            self._promises.counts["reads"] += 1
            self._promises.lost["reads"] += not was_there

        self._store.get(key, answered)
