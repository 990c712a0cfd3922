"""KIP-1164, Metadata log size management: snapshots of a state that goes on being written to, and the log pruned."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator import snapshots as snapshots_module
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.schema import StateUnusable
from tieredctl_proposals.coordinator.snapshots import (
    KEPT,
    Snapshot,
    check_snapshot,
    prune,
    restore_snapshot,
    snapshots,
    take_snapshot,
)

from tests.coordinator.memory_log import MemoryLog
from tests.coordinator.state_contents import state_contents
from tests.coordinator.states import Served, a_batch, produced
from tests.coordinator.synced_disk import SyncedDisk


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    for number in range(30):
        served.commit(f"a{number}", produced(number), a_batch(2, partition=1))
    yield served
    served.connection.close()


def test_a_snapshot_is_one_moment_though_writes_go_on_at_every_step(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = 0

    class Busy(sqlite3.Connection):
        """Something is committed before each statement, and at each step of the copy."""

        def execute(self, *words: object) -> sqlite3.Cursor:
            commit()
            return super().execute(*words)  # type: ignore[arg-type]

        def backup(self, target: sqlite3.Connection, **options: object) -> None:
            super().backup(target, **options | {"pages": 1, "progress": lambda *_: commit()})  # type: ignore[arg-type]

    def commit() -> None:
        nonlocal committed
        if committed < 60:
            committed += 1
            served.commit(f"meanwhile-{committed}", produced(29 + committed), a_batch())

    open_ = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda file, **options: open_(file, factory=Busy, **options))
    before = served.log.end_offset

    snapshot = take_snapshot(served.file, served.snapshots, served.log.name)

    monkeypatch.undo()
    assert before <= snapshot.next_offset < served.log.end_offset
    prefix = MemoryLog(served.log.name, served.log.records[: snapshot.next_offset])
    with closing(sqlite3.connect(snapshot.file)) as taken:
        replayed = recover(served.file.with_name("replayed"), prefix, served.file.with_name("none")).connection
        assert state_contents(taken) == state_contents(replayed)
        replayed.close()


def test_a_snapshot_names_its_offset_and_its_bytes(served: Served) -> None:
    snapshot = take_snapshot(served.file, served.snapshots, served.log.name)

    assert snapshots(served.snapshots) == [snapshot]
    assert snapshot.next_offset == served.log.end_offset
    check_snapshot(snapshot, served.log.name)


def checked(snapshot: Snapshot, served: Served) -> Snapshot:
    check_snapshot(snapshot, served.log.name)
    return snapshot


def test_a_snapshot_with_one_other_byte_is_found_out(served: Served) -> None:
    """In its magic, its version, a page, and at its end."""
    snapshot = take_snapshot(served.file, served.snapshots, served.log.name)
    whole = snapshot.file.read_bytes()
    for position in (0, 60, 5_000, -1):
        data = bytearray(whole)
        data[position] ^= 1
        snapshot.file.write_bytes(data)

        with pytest.raises(StateUnusable):
            pytest.fail(f"byte {position}: {checked(snapshot, served)}")


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE files SET live_batches = live_batches + 1 WHERE object_key = 'a3'", "files have other batches"),
        ("DELETE FROM batches WHERE last_offset = 10", "follow one another"),
        ("UPDATE partitions SET high_watermark = high_watermark + 1", "begin and end"),
        ("UPDATE partitions SET log_start_offset = high_watermark + 1", "begin and end"),
        ("UPDATE files SET released_ms = 5 WHERE object_key = 'a1'", "neither live nor released"),
        ("UPDATE batches SET partition = 77 WHERE last_offset = 0", "of no partition"),
        ("UPDATE producer_batches SET partition = 77", "of no partition"),
    ],
)
def test_a_state_that_contradicts_itself_gets_no_snapshot(served: Served, statement: str, fault: str) -> None:
    served.connection.execute(statement)

    with pytest.raises(StateUnusable, match=fault):
        take_snapshot(served.file, served.snapshots, served.log.name)

    assert not snapshots(served.snapshots)


def test_the_log_is_pruned_up_to_the_older_of_two_sound_snapshots(served: Served) -> None:
    first = take_snapshot(served.file, served.snapshots, served.log.name)
    assert prune(served.log, served.snapshots) == 0
    for number in range(3):
        served.commit(f"b{number}", a_batch())
        second = take_snapshot(served.file, served.snapshots, served.log.name)
        assert prune(served.log, served.snapshots) == first.next_offset
        assert snapshots(served.snapshots) == [second, first]
        first = second


def _newest_of_those_kept(served: Served) -> Snapshot:
    """Taken after as many commits."""
    for number in range(KEPT):
        served.commit(f"b{number}", a_batch())
        newest = take_snapshot(served.file, served.snapshots, served.log.name)
    return newest


def test_the_log_is_pruned_when_the_snapshots_are_on_the_disk(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SyncedDisk(monkeypatch)
    pruned: list[list[bool]] = []

    def prune_log(_: int) -> None:
        pruned.append([disk.has(path) for path in (served.snapshots, *served.snapshots.iterdir())])

    _newest_of_those_kept(served)
    monkeypatch.setattr(served.log, "prune", prune_log)

    prune(served.log, served.snapshots)

    assert pruned == [[True] * (1 + KEPT)]


def test_a_snapshot_that_is_damaged_or_ahead_of_the_log_does_not_count_when_it_is_pruned(served: Served) -> None:
    newest = _newest_of_those_kept(served)
    served.log.high_watermark -= 1
    assert prune(served.log, served.snapshots) == 0

    served.log.high_watermark += 1
    newest.file.write_bytes(b"")

    assert prune(served.log, served.snapshots) == 0
    assert len(snapshots(served.snapshots)) == KEPT


def test_whoever_may_not_read_the_state_may_not_read_its_snapshots(served: Served) -> None:
    snapshot = take_snapshot(served.file, served.snapshots, served.log.name)
    restored = served.file.with_name("restored")

    restore_snapshot(snapshot, restored)

    assert [file.stat().st_mode & 0o777 for file in (served.file, snapshot.file, restored)] == [0o600] * 3


def test_a_snapshot_is_restored_whole_or_not_at_all(served: Served) -> None:
    snapshot = take_snapshot(served.file, served.snapshots, served.log.name)
    restored = served.file.with_name("restored")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (snapshot.file.stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            restore_snapshot(snapshot, restored)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert not restored.exists()


def test_with_the_newest_snapshot_damaged_after_pruning_nothing_is_lost(served: Served) -> None:
    newest = _newest_of_those_kept(served)
    prune(served.log, served.snapshots)
    before = state_contents(served.connection)
    newest.file.write_bytes(b"")
    served.connection.close()
    served.file.unlink()

    assert state_contents(served.open().connection) == before


def test_what_an_interrupted_snapshot_left_is_not_taken_for_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(snapshots_module, "_demand_snapshot", fail)
        with pytest.raises(OSError, match="no space"):
            take_snapshot(served.file, served.snapshots, served.log.name)

    assert not snapshots(served.snapshots)
    for left in served.snapshots.iterdir():
        left.write_bytes(b"cut off where nobody can read it")
    take_snapshot(served.file, served.snapshots, served.log.name)
    assert len(snapshots(served.snapshots)) == 1
