"""What coordinators' logs answer is what the running coordinators answer, wherever the logs were pruned."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from tieredctl_proposals.coordinator.file_log import FileLog
from tieredctl_proposals.coordinator.machine import Coordinator, Operation
from tieredctl_proposals.coordinator.queries import describe_file, list_offset
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.snapshots import prune, snapshots, take_snapshot
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    BatchesResult,
    BatchQuery,
    DescribeFiles,
    FindBatches,
    KafkaError,
    ListOffsets,
    OffsetQuery,
)
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs
from tieredctl_proposals.ops.diskless.logged_coordinators import LoggedCoordinator, logged_coordinators
from tieredctl_proposals.ops.diskless.simulation.coordinator_host import CoordinatorHost
from tieredctl_proposals.ops.diskless.simulation.run import simulate
from tieredctl_proposals.ops.diskless.simulation.world import Promises

from tests.coordinator.histories import RandomRequests
from tests.coordinator.model_coordinator import ModelCoordinator
from tests.diskless.test_simulation import drawn
from tests.rigs.memory import IN_MEMORY
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.log_directory import LogDirectories

STEPS, QUESTIONS = 40, 10
T = TypeVar("T")
NO_LIMIT = (1 << 31) - 1


@contextmanager
def by_log(log_dir: Path, coordinator: int, folder: Path) -> Iterator[LoggedCoordinator]:
    """A coordinator as its log has it, which has to be whole."""
    with closing(LogDirectories([log_dir], DISKLESS_METADATA_TOPIC)) as source:
        logs = CoordinatorLogs.now(source, None, [log_dir])
        folder.mkdir()
        for one in logged_coordinators(logs, folder, coordinator):
            with closing(one):
                assert one.is_whole, logs.findings
                yield one
        assert not [*folder.iterdir()]


def as_a_follower(results: Sequence[BatchesResult], asked: Sequence[BatchQuery]) -> list[BatchesResult]:
    """What a leader answers, as a follower says it: it does not know whether offsets after its own are there."""
    return [
        result._replace(error=KafkaError.OFFSET_NOT_AVAILABLE)
        if result.error is KafkaError.OFFSET_OUT_OF_RANGE and query.offset > result.high_watermark
        else result
        for result, query in zip(results, asked, strict=True)
    ]


class Running:
    """A coordinator whose log is a folder of Kafka's files, and whatever is asked of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.log_dir = folder / "data"
        self._folder = self.log_dir / f"{DISKLESS_METADATA_TOPIC}-0"
        self._state = folder / "state.sqlite"
        self.log = FileLog(self._folder.name, self._folder, segment_bytes=self.random.choice([1, 600, 1 << 20]))
        self._connection = recover(self._state, self.log, self._folder).connection
        self.now_ms = 1_000
        self.coordinator = Coordinator(0, self.log, self._connection, lambda: self.now_ms)
        self.requests, self._model = RandomRequests(self.random), ModelCoordinator()
        self.snapshots = 0

    def run(self) -> None:
        steps: dict[Callable[[], None], int] = {self.create: 4, self.commit: 20, self.delete: 4, self.snapshot: 3}
        self.create()
        for step in self.random.choices([*steps], [*steps.values()], k=STEPS):
            step()
            self.now_ms += self.random.choice([0, 1, 10])

    def create(self) -> None:
        request = self.requests.create_partitions()
        self._model.create_partitions(request, self.now_ms)
        self._done(self.coordinator.create_partitions(request))

    def commit(self) -> None:
        request = self.requests.commit_file(self._model)
        self._model.commit_file(request, 1, self.now_ms)
        self._done(self.coordinator.commit_file(request, 1))

    def delete(self) -> None:
        if self.random.random() < 0.1:
            topics = self.requests.delete_topics()
            self._model.delete_topics(topics, self.now_ms)
            self._done(self.coordinator.delete_topics(topics))
            return
        records = self.requests.delete_records(self._model)
        self._model.delete_records(records, self.now_ms)
        self._done(self.coordinator.delete_records(records))

    def snapshot(self) -> None:
        take_snapshot(self._state, self._folder, self.log.name)
        prune(self.log, self._folder)
        self.snapshots += 1

    def demand_same_answers(self, logged: LoggedCoordinator) -> None:
        for _ in range(QUESTIONS):
            offsets, files = self.requests.list_offsets(), self.requests.describe_files()
            batches = self.requests.find_batches(self._model)
            assert logged.list_offsets(offsets) == self._done(self.coordinator.list_offsets(offsets))
            assert logged.describe_files(files) == self._done(self.coordinator.describe_files(files))
            found = self.coordinator.find_batches(batches).partitions
            assert [*logged.find_batches(batches).partitions] == as_a_follower(found, batches.partitions)

    def close(self) -> None:
        self._connection.close()
        self.log.close()

    def _done(self, operation: Operation[T]) -> T:
        self.log.sync()
        self.coordinator.poll()
        return operation.answer


def test_after_any_history_logs_answer_as_their_coordinator(tmp_path: Path) -> None:
    pruned = 0
    for seed in range(30):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with closing(Running(folder, seed)) as running:
            try:
                running.run()
                pruned += running.log.start_offset > 0
                with by_log(running.log_dir, 0, folder / "states") as logged:
                    running.demand_same_answers(logged)
            except BaseException as failure:
                failure.add_note(f"seed {seed}")
                raise
    assert pruned > 5


def _write(log_dir: Path, host: CoordinatorHost) -> bool:
    """A simulated coordinator's log and snapshots, as a broker would have them on its disk; whether it is pruned."""
    log = host._log
    folder = log_dir / log.name
    folder.mkdir(parents=True)
    replicated = islice(log.records, log.high_watermark - log.start_offset)
    records = [Record(one.offset, one.timestamp_ms, None, encode_diskless_record(one.record)) for one in replicated]
    (folder / f"{log.start_offset:020d}.log").write_bytes(encode_batch(records) if records else b"")
    for snapshot in snapshots(host._folder):
        shutil.copy(snapshot.file, folder)
    return log.start_offset > 0


def _demand_same(host: CoordinatorHost, logged: LoggedCoordinator, chance: Random) -> int:
    """How many batches both have from some offsets on."""
    state = host.files.connection
    places = [(one.topic_id, one.partition) for one in logged.partitions()]
    times = [-1, -2, -3, -4, -5, -6, 0, *(chance.randint(0, 60_000) for _ in range(5)), 1 << 60]
    others = [(places[0][0], 99), ("A" * 22, 0)]
    queries = tuple(OffsetQuery(*one, time_ms) for one in (*places, *others) for time_ms in times)
    assert [*logged.list_offsets(ListOffsets(queries)).partitions] == [list_offset(state, each) for each in queries]

    keys = (*(key for (key,) in state.execute("SELECT object_key FROM files")), "unknown")
    assert [*logged.describe_files(DescribeFiles(keys)).files] == [describe_file(state, key) for key in keys]

    ends = {one: list_offset(state, OffsetQuery(*one, LATEST)).offset for one in places}
    asked = tuple(BatchQuery(*one, chance.randint(0, end + 1), chance.randint(1, 9_000)) for one, end in ends.items())
    few = FindBatches(chance.randint(1, 9_000), chance.randint(0, 3), asked)
    many = FindBatches(NO_LIMIT, 0, tuple(BatchQuery(*one, end // 2, NO_LIMIT) for one, end in ends.items()))
    for request in (few, many):
        found = host.find_batches(request).partitions
        assert [*logged.find_batches(request).partitions] == as_a_follower(found, request.partitions)
    return sum(len(one.batches) for one in found)


def test_logs_answer_as_the_simulated_coordinators_that_wrote_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked when everything is produced, and not all of it deleted yet."""
    seen: Counter[str] = Counter()

    def compare(promises: Promises) -> None:
        for host in promises._hosts:
            folder = tmp_path / f"{seed}-{host.coordinator_id}"
            seen["pruned"] += _write(folder / "data", host)
            with by_log(folder / "data", host.coordinator_id, folder / "states") as logged:
                seen["batches"] += _demand_same(host, logged, Random(seed))

    monkeypatch.setattr(Promises, "audit", compare)
    for seed in range(12):
        with TemporaryDirectory(dir=IN_MEMORY) as folder:
            retention_ms = 300_000 if seed % 2 else 10_000
            simulate(replace(drawn(seed), retention_ms=retention_ms, snapshot_records=8), Path(folder))

    assert seen["pruned"] > 5, seen
    assert seen["batches"] > 50, seen
