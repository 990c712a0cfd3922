"""What coordinators do in the background: retention, ownership of files, and the search for orphans."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl_proposals.coordinator.ownership import AskForHandOver, DeleteObject, HandOver, OwnershipWorker
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    CommitFile,
    CommittedFile,
    DeletableRecords,
    DeleteRecords,
    DescribedFiles,
    DescribeFiles,
    KafkaError,
    ListedOffsets,
    ListOffsets,
    OffsetQuery,
)
from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.world import World

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
        oldest = [found for host in self._hosts if (found := host.oldest_live_file_ms()) is not None]
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
