"""Kills a coordinator's process at every statement that it gives to SQLite, one after the other, and recovers it.

`python -m tests.coordinator.killed FOLDER` ends with 0 and prints how many statements there are, if the state was the
model's each time: after everything in the log, and with nothing lost that was answered. With TIEREDCTL_SHARE the
process is killed at a share of them.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from tieredctl_proposals.coordinator.audit import demand_sound
from tieredctl_proposals.coordinator.file_log import FileLog
from tieredctl_proposals.coordinator.machine import Coordinator
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.snapshots import prune, take_snapshot
from tieredctl_proposals.model.diskless_requests import (
    CreatablePartitions,
    CreatePartitions,
    DeletableRecords,
    DeleteRecords,
    DeleteTopics,
)

from tests.coordinator.histories import TOPIC_IDS, RandomRequests
from tests.coordinator.model_coordinator import ModelCoordinator
from tests.coordinator.state_contents import state_contents
from tests.shares import divided

LOG = "cluster __diskless_metadata-0"
NOW_MS = 1_000
Ask = Callable[[Any], Any]
"""Asks something of a coordinator or of the model, whose methods are named alike."""


class Plan:
    """What the process does, the same each time."""

    def __init__(self) -> None:
        self._model = ModelCoordinator()
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        topics = tuple(CreatablePartitions(topic_id, "orders", 2) for topic_id in TOPIC_IDS[:3])
        self._ask("create_partitions", CreatePartitions(topics))
        requests = RandomRequests(Random(7))
        for number in range(12):
            self._ask("commit_file", requests.commit_file(self._model), 1)
            if number == 5:
                self._ask("delete_records", DeleteRecords((DeletableRecords(TOPIC_IDS[0], 0, -1),)))
        self._ask("delete_topics", DeleteTopics((TOPIC_IDS[1],)))
        self._ask("commit_file", requests.commit_file(self._model), 1)

    def model(self, operations: int) -> ModelCoordinator:
        """After so many operations."""
        model = ModelCoordinator()
        for name, asked in self.asked[:operations]:
            getattr(model, name)(*asked, NOW_MS)
        return model

    def _ask(self, name: str, *asked: Any) -> None:
        self.asked.append((name, asked))
        getattr(self._model, name)(*asked, NOW_MS)


def run(plan: Plan, folder: Path, answered: Callable[[int], object]) -> list[int]:
    """Does it all; three operations are under way at once. Returns where in the log each ends."""
    with FileLog(LOG, folder / "log", segment_bytes=1_000) as log:
        coordinator = Coordinator(
            0, log, recover(folder / "state", log, folder / "snapshots").connection, lambda: NOW_MS
        )
        ends = []
        for number, (name, asked) in enumerate(plan.asked, 1):
            ends.append(getattr(coordinator, name)(*asked).end)
            if number % 3 == 0 or number == len(plan.asked):
                log.sync()
                coordinator.poll()
                answered(number)
            if number in (6, 12):
                take_snapshot(folder / "state", folder / "snapshots", LOG)
                prune(log, folder / "snapshots")
    return ends


def statements_of(plan: Plan, folder: Path) -> int:
    """How many there are once a process has done it before, as those have that are killed."""
    folder.mkdir()
    statements: list[str] = []
    connect = sqlite3.connect
    _call_before_statements(statements.append)
    run(plan, folder, lambda _: None)
    sqlite3.connect = connect
    return len(statements)


def kill_at(plan: Plan, folder: Path, statement: int) -> int:
    """Runs the plan in a process that is killed before its n-th statement. Returns how many operations had been
    answered."""
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        left = statement

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        _call_before_statements(count)
        run(plan, folder, lambda number: os.write(told, bytes([number])))
        os._exit(0)
    os.close(told)
    with os.fdopen(heard, "rb") as answers:
        answered = answers.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise SystemExit(f"the process was not killed at statement {statement}")
    return answered[-1] if answered else 0


def demand_recovered(plan: Plan, folder: Path, ends: list[int], answered: int) -> None:
    """The state is what the log says, whether the database is there or not, and the log has what was answered."""
    with FileLog(LOG, folder / "log") as log:
        logged = sum(end <= log.end_offset for end in ends)
        assert logged >= answered
        assert log.end_offset == (ends[logged - 1] if logged else 0), "half of an operation"
        for _ in ("the database as it was left", "and without it"):
            with closing(recover(folder / "state", log, folder / "snapshots").connection) as connection:
                assert state_contents(connection) == plan.model(logged).contents()
                demand_sound(connection)
            (folder / "state").unlink()


def _call_before_statements(listener: Callable[[str], object]) -> None:
    """Of every connection that is made from here on."""
    connect = sqlite3.connect

    def heard(*words: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*words, **options)
        connection.set_trace_callback(listener)
        return connection

    sqlite3.connect = heard  # type: ignore[assignment] # of one signature


def main(folder: Path) -> None:
    plan = Plan()
    whole = folder / "whole"
    whole.mkdir()
    ends = run(plan, whole, lambda _: None)
    demand_recovered(plan, whole, ends, len(ends))
    count = statements_of(plan, folder / "counted")
    for statement in divided(range(1, count + 1)):
        place = folder / str(statement)
        place.mkdir()
        answered = kill_at(plan, place, statement)
        try:
            demand_recovered(plan, place, ends, answered)
        except BaseException as failure:
            failure.add_note(f"killed at statement {statement}")
            raise
    sys.stdout.write(str(count))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
