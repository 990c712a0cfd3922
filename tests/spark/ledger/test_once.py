"""What a run does once: it asks the ledger about its segments, and the store for their objects."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.ledger import Asked
from tieredctl_spark.planned_work import PlannedWork, reused
from tieredctl_spark.work_units import UnitSize

from tests.spark.captured_tasks import captured_tasks
from tests.spark.ledger.recorded_runs import HALF_A_DAY, Runs, ids
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore, StoredObject
from tieredctl.ports.read_only_store import ReadOnlyStore

pytestmark = pytest.mark.spark


def noting(store: ObjectStore, notes: Path) -> ObjectStore:
    """Another store, with a line in a file for each request for an object."""
    notes.touch()

    def note(*request: object) -> None:
        with notes.open("a") as file:
            file.write(" ".join(map(str, request)) + "\n")

    class Noting(ReadOnlyStore):
        def head(self, key: str) -> StoredObject | None:
            note("head", key)
            return self.store.head(key)

        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            note("read", key, start, end)
            return self.store.read(key, start, end)

        def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
            note("stream", key, start)
            return self.store.stream(key, start, chunk_size)

    return Noting(store)


def requests(notes: Path) -> Counter[str]:
    return Counter(notes.read_text().splitlines())


def test_each_object_is_asked_for_as_the_local_engine_does_and_once(runs: Runs, kafka_4: Path, tmp_path: Path) -> None:
    for level in (Level.HEADERS, Level.FULL):
        local, here = tmp_path / f"local-{level.value}", tmp_path / f"here-{level.value}"
        tasks = captured_tasks(kafka_4, level)[:12]
        list(LocalEngine().check_segments(tasks, noting(runs.store, local), LocalLayout()))

        noted = replace(runs, store=noting(runs.store, here))
        noted.reports(tasks)

        first = requests(here)
        assert first == requests(local), level
        assert set(first.values()) == {1}, level
    noted.reports(tasks)
    assert requests(here) == first


def test_what_is_due_is_judged_once_whatever_becomes_of_the_ledger(runs: Runs, tasks: list[SegmentTask]) -> None:
    sound, others = tasks[:5], tasks[5:12]
    runs.reports(sound)
    work = PlannedWork(runs.output, runs.store, LocalLayout(), "a-run")
    work.write([*sound, *others])
    judged = work.kept(work.judged(runs.ledger, Asked(Level.HEADERS, datetime.now(UTC), HALF_A_DAY)))
    for name in ("ledger", "tasks"):
        shutil.rmtree(runs.folder / "output" / name)

    before = reused(judged)
    work.divide(judged, UnitSize())

    due = work.of(work.units()).select("segmentId").toArrow()["segmentId"].to_pylist()
    assert before.segments == len(sound)
    assert sorted(due) == sorted(ids(others))
