"""A coordinator, its log, its database and its snapshots, beside the model of what they should come to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tieredctl_proposals.coordinator.audit import demand_sound
from tieredctl_proposals.coordinator.machine import Coordinator, NotCoordinator, Operation
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.snapshots import prune, take_snapshot

from tests.coordinator.histories import RandomRequests
from tests.coordinator.memory_log import MemoryLog
from tests.coordinator.model_coordinator import ModelCoordinator, batch_answers, records_answers
from tests.coordinator.state_contents import state_contents

Effect = Callable[[ModelCoordinator], Any]


class Story:
    """Random requests, in which brokers die, logs change leaders, and databases get lost.

    Two models go along: `ahead` has all that was asked, as operations are checked against; `applied` has what was
    applied, as questions are answered from.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = Random(seed)
        self._requests = RandomRequests(self._random)
        self._folder = folder
        self._file = folder / "state.sqlite"
        self._now_ms = 1_000
        self._limit = self._random.choice([0, 3, 100])
        self.log = MemoryLog()
        self.ahead = ModelCoordinator()
        self.applied = ModelCoordinator()
        self._waiting: list[tuple[int, Effect]] = []
        self._asked: list[tuple[Operation[Any], Callable[[Any], Any], Callable[[], Any]]] = []
        self._open()

    def run(self, steps: int) -> None:
        weights: dict[Callable[[], None], int] = {
            self.create_partitions: 8,
            self.commit_file: 40,
            self.delete_records: 6,
            self.delete_topics: 2,
            self.list_offsets: 10,
            self.describe_files: 6,
            self.find_batches: 10,
            self.replicate: 30,
            self.restart: 2,
            self.change_leader: 2,
            self.lose_database: 2,
            self.take_snapshot: 3,
            self.prune: 3,
        }
        for step in self._random.choices(list(weights), list(weights.values()), k=steps):
            step()
        self.log.replicate()
        self._poll()
        self._demand_equal()
        assert self.ahead.contents() == self.applied.contents()
        self.restart()

    def close(self) -> None:
        self._connection.close()

    def create_partitions(self) -> None:
        request, now_ms = self._requests.create_partitions(), self._tick()
        expected = self.ahead.create_partitions(request, now_ms)
        operation = self._coordinator.create_partitions(request)
        self._await(operation, lambda answer: [one.error for one in answer.topics], expected)
        self._later(lambda model: model.create_partitions(request, now_ms))

    def delete_topics(self) -> None:
        request, now_ms = self._requests.delete_topics(), self._tick()
        expected = self.ahead.delete_topics(request, now_ms)
        self._await(self._coordinator.delete_topics(request), lambda answer: list(answer.topics), expected)
        self._later(lambda model: model.delete_topics(request, now_ms))

    def delete_records(self) -> None:
        request, now_ms = self._requests.delete_records(self.ahead), self._tick()
        expected = self.ahead.delete_records(request, now_ms)
        operation = self._coordinator.delete_records(request)
        self._await(operation, lambda answer: records_answers(answer.partitions), expected)
        self._later(lambda model: model.delete_records(request, now_ms))

    def commit_file(self) -> None:
        request, now_ms = self._requests.commit_file(self.ahead), self._tick()
        broker_id = self._random.randrange(3)
        expected = self.ahead.commit_file(request, broker_id, now_ms)
        operation = self._coordinator.commit_file(request, broker_id)
        self._await(operation, lambda answer: batch_answers(answer.batches), expected)
        self._later(lambda model: model.commit_file(request, broker_id, now_ms))

    def list_offsets(self) -> None:
        request = self._requests.list_offsets()
        operation = self._coordinator.list_offsets(request)
        expected = lambda: [self.applied.list_offset(each) for each in request.partitions]  # noqa: E731
        self._asked.append((operation, lambda answer: list(answer.partitions), expected))

    def describe_files(self) -> None:
        request = self._requests.describe_files()
        operation = self._coordinator.describe_files(request)
        expected = lambda: [self.applied.describe_file(key) for key in request.object_keys]  # noqa: E731
        self._asked.append((operation, lambda answer: list(answer.files), expected))

    def find_batches(self) -> None:
        request = self._requests.find_batches(self.applied)
        assert list(self._coordinator.find_batches(request).partitions) == self.applied.find_batches(request)

    def replicate(self) -> None:
        self.log.replicate(self._random.choice([1, 2, 5, None]))
        self._poll()

    def restart(self) -> None:
        """The broker dies, and leads the log again: what it had appended is there."""
        self._die()
        self.log.replicate()
        self._settle(self.log.high_watermark)
        self._open()

    def change_leader(self) -> None:
        """Another broker leads the log, with some of what was pending, and then this one again."""
        self.log.lose_leadership(kept=self._random.randint(0, 2))
        operation = None
        try:
            operation = self._coordinator.create_partitions(self._requests.create_partitions())
        except NotCoordinator:
            assert all(asked.is_over for asked, _, _ in self._asked)
        assert operation is None or operation.end <= self.log.end_offset  # it created nothing
        self._die()
        self.log.is_led_here = True
        self._settle(self.log.high_watermark)
        self._open()

    def lose_database(self) -> None:
        self._file.unlink()
        self.restart()

    def take_snapshot(self) -> None:
        snapshot = take_snapshot(self._file, self._folder / "snapshots", self.log.name)
        assert snapshot.next_offset <= self.log.high_watermark

    def prune(self) -> None:
        prune(self.log, self._folder / "snapshots")

    def _open(self) -> None:
        recovered = recover(self._file, self.log, self._folder / "snapshots")
        assert not recovered.refused
        self._connection = recovered.connection
        self._coordinator = Coordinator(0, self.log, self._connection, lambda: self._now_ms, self._limit)
        self.ahead = self.applied.copy()
        self._demand_equal()

    def _die(self) -> None:
        self._connection.close()
        self._asked.clear()

    def _tick(self) -> int:
        self._now_ms += self._random.choice([0, 1, 10])
        return self._now_ms

    def _await(self, operation: Operation[Any], simply: Callable[[Any], Any], expected: Any) -> None:
        self._asked.append((operation, simply, lambda: expected))

    def _later(self, effect: Effect) -> None:
        self._waiting.append((self.log.end_offset, effect))

    def _poll(self) -> None:
        pending = self._coordinator.poll()
        self._settle(self.log.high_watermark)
        over = [asked for asked in self._asked if asked[0].is_over]
        self._asked = [asked for asked in self._asked if not asked[0].is_over]
        assert pending == len(self._asked)
        assert all(operation.end > self.log.high_watermark for operation, _, _ in self._asked)
        assert all(operation.end <= self.log.high_watermark for operation, _, _ in over)
        for operation, simply, expected in over:
            assert simply(operation.answer) == expected()

    def _settle(self, high_watermark: int) -> None:
        """What was replicated is applied; what is beyond the end of the log was lost."""
        for end, effect in self._waiting:
            if end <= high_watermark:
                effect(self.applied)
        self._waiting = [(end, effect) for end, effect in self._waiting if high_watermark < end <= self.log.end_offset]

    def _demand_equal(self) -> None:
        assert state_contents(self._connection) == self.applied.contents()
        demand_sound(self._connection)
