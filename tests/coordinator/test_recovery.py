"""KIP-1164, Local state machine: the database is a cache, and is rebuilt whenever it cannot be trusted."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator.apply import Applier, DoesNotFit
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord
from tieredctl_proposals.coordinator.recovery import StateAhead, Unrecoverable, recover
from tieredctl_proposals.coordinator.schema import StateUnusable, connect, next_offset
from tieredctl_proposals.coordinator.snapshots import check_snapshot, prune, snapshots, take_snapshot
from tieredctl_proposals.model.diskless_records import (
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)
from tieredctl_proposals.model.diskless_requests import DeletableRecords, DeleteRecords

from tests.coordinator.memory_log import MemoryLog
from tests.coordinator.state_contents import state_contents
from tests.coordinator.states import TOPIC_ID, Served, a_batch, produced
from tests.coordinator.story import Story


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Some files and producers, and a snapshot of the first of them."""
    served = Served(tmp_path)
    served.commit("a", produced(0, 5), a_batch(3, partition=1))
    take_snapshot(served.file, served.snapshots, served.log.name)
    for number in range(20):
        served.commit(f"b{number}", produced(5 + number), a_batch(2, partition=1))
    yield served
    served.connection.close()


def _execute(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _overwrite(file: Path, position: int, data: bytes) -> None:
    with file.open("r+b") as stored:
        stored.seek(position)
        stored.write(data)


def _batches_overwritten(file: Path) -> None:
    _execute(file, "PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'batches'").fetchone()
    _overwrite(file, (page - 1) * 4096, b"\xff" * 4096)


def _cut(file: Path) -> None:
    _execute(file, "PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(file, 12_288)


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "not a database": lambda file: file.write_bytes(b"nothing that SQLite knows" * 1000),
    "empty": lambda file: file.write_bytes(b""),
    "damaged where nothing is read at first": _batches_overwritten,
    "cut short": _cut,
    "a newer schema": lambda file: _execute(file, "PRAGMA user_version = 2"),
    "an older schema": lambda file: _execute(file, "PRAGMA user_version = 0"),
    "another program's": lambda file: _execute(file, "PRAGMA application_id = 77"),
    "another log's": lambda file: _execute(file, "UPDATE applied SET log = 'cluster __diskless_metadata-1'"),
    "of a log that went on otherwise": lambda file: _execute(file, "UPDATE applied SET last_record = x'00'"),
    "one that contradicts the log": lambda file: _execute(
        file, "UPDATE applied SET next_offset = 0, last_record = NULL"
    ),
    "without a table": lambda file: _execute(file, "DROP TABLE applied"),
}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_a_database_that_cannot_be_trusted_is_set_aside_and_made_again(served: Served, fault: str) -> None:
    before = state_contents(served.connection)
    served.connection.close()
    UNUSABLE[fault](served.file)

    recovered = served.open()

    assert len(recovered.refused) == 1
    assert state_contents(recovered.connection) == before
    assert served.file.with_name("state.sqlite.refused").exists()


def test_another_programs_database_is_set_aside_as_it_was(served: Served) -> None:
    served.connection.close()
    served.file.unlink()
    _execute(served.file, "CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (5)")
    theirs = served.file.read_bytes()

    served.open()

    assert served.file.with_name("state.sqlite.refused").read_bytes() == theirs


def test_a_database_with_a_batch_that_the_log_has_not_is_set_aside(served: Served, tmp_path: Path) -> None:
    _execute(
        served.file,
        """INSERT INTO batches SELECT id, high_watermark, high_watermark, 99, 2, 0, 100, 2, 0, 0, 0
        FROM partitions WHERE partition = 0""",
    )
    (tmp_path / "other").mkdir()
    other = Served(tmp_path / "other", served.log)
    other.commit("z", a_batch())

    recovered = served.reopen()

    assert len(recovered.refused) == 1
    assert state_contents(recovered.connection) == state_contents(other.connection)
    other.connection.close()


def test_what_was_left_beside_a_database_that_is_gone_is_not_taken_for_the_new_ones(served: Served) -> None:
    before = state_contents(served.connection)
    left = {name: served.file.with_name(name) for name in ("state.sqlite-wal", "state.sqlite-shm")}
    kept = {name: file.read_bytes() for name, file in left.items()}
    served.connection.close()
    served.file.unlink()
    for name, data in kept.items():
        left[name].write_bytes(data)

    recovered = served.open()

    assert recovered.began_at == snapshots(served.snapshots)[0].next_offset
    assert state_contents(recovered.connection) == before


def test_a_state_ahead_of_its_log_is_refused_and_left_alone(served: Served) -> None:
    before = state_contents(served.connection)
    served.log.high_watermark -= 3

    with pytest.raises(StateAhead):
        served.reopen()

    served.log.high_watermark += 3
    assert state_contents(served.open().connection) == before


@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "unreadable"])
def test_a_snapshot_that_cannot_be_used_is_passed_over_and_the_log_read_from_its_beginning(
    served: Served, is_damaged: bool
) -> None:
    before = state_contents(served.connection)
    served.connection.close()
    (snapshot,) = snapshots(served.snapshots)
    if is_damaged:
        _overwrite(snapshot.file, 100, b"\x55")
    else:
        snapshot.file.unlink()
        snapshot.file.mkdir()
    served.file.unlink()

    recovered = served.open()

    assert (recovered.began_at, len(recovered.refused)) == (0, 1)
    assert state_contents(recovered.connection) == before


def test_a_snapshot_that_is_ahead_of_the_log_is_passed_over(served: Served) -> None:
    newest = take_snapshot(served.file, served.snapshots, served.log.name)
    served.connection.close()
    served.file.unlink()
    served.log.high_watermark = newest.next_offset - 3

    recovered = served.open()

    assert len(recovered.refused) == 1
    assert next_offset(recovered.connection) == newest.next_offset - 3


def test_without_any_way_back_it_says_what_there_is(served: Served) -> None:
    served.connection.close()
    served.file.unlink()
    served.log.prune(6)

    with pytest.raises(Unrecoverable, match="the log begins at offset 6"):
        served.open()

    assert not served.file.exists()


def test_a_state_from_before_the_logs_beginning_is_made_from_a_snapshot(served: Served) -> None:
    served.connection.close()
    behind = served.file.read_bytes()
    served.open()
    for number in range(3):
        served.commit(f"c{number}", a_batch())
        take_snapshot(served.file, served.snapshots, served.log.name)
    before = state_contents(served.connection)
    prune(served.log, served.snapshots)
    served.connection.close()
    served.file.write_bytes(behind)

    recovered = served.open()

    assert len(recovered.refused) == 1
    assert state_contents(recovered.connection) == before


def test_from_every_prefix_of_the_log_and_from_every_snapshot_it_comes_to_the_same_state(tmp_path: Path) -> None:
    (tmp_path / "story").mkdir()
    with closing(Story(tmp_path / "story", seed=1)) as story:
        for step in (story.create_partitions, *[story.commit_file] * 12, story.delete_records, story.delete_topics):
            step()
        story.replicate()
        story.restart()
        expected, log = story.applied.contents(), story.log
    states = []
    for prefix in range(log.end_offset + 1):
        begun = MemoryLog(log.name, log.records[:prefix])
        file = tmp_path / f"{prefix}.sqlite"
        recover(file, begun, tmp_path / "none").connection.close()
        snapshot = take_snapshot(file, tmp_path / f"snapshots-{prefix}", log.name)
        file.with_name("restored").unlink(missing_ok=True)
        for state in (file, file.with_name("restored")):
            recovered = recover(state, MemoryLog(log.name, log.records), snapshot.file.parent)
            assert recovered.began_at == prefix
            states.append(state_contents(recovered.connection))
            recovered.connection.close()
    assert all(state == expected for state in states)


def _recovered(log: MemoryLog, folder: Path) -> object:
    """From the log alone."""
    return recover(folder / "again.sqlite", log, folder / "none")


def test_a_log_that_contradicts_itself_is_refused(served: Served, tmp_path: Path) -> None:
    log = served.log
    served.finished(served.coordinator.delete_records(DeleteRecords((DeletableRecords(TOPIC_ID, 1, 4),))))
    log.high_watermark = log.end_offset + 1
    records: dict[str, DisklessRecord] = {
        "a partition twice": PartitionCreated(topic_id=TOPIC_ID, topic="t", partition=0),
        "an unknown topic": TopicDeleted(topic_id="zzzzzzzzzzzzzzzzzzzzzw"),
        "beyond the end": RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=1_000),
        "before its beginning": RecordsDeleted(topic_id=TOPIC_ID, partition=1, log_start_offset=3),
        "an unknown partition": RecordsDeleted(topic_id=TOPIC_ID, partition=7, log_start_offset=0),
        "a file twice": FileCommitted(object_key="a", file_size=1, uploader_broker_id=0, owner_ids=(0,), batches=()),
    }
    for number, (name, record) in enumerate(records.items()):
        (tmp_path / str(number)).mkdir()
        log.records.append(LoggedRecord(log.end_offset, 0, record))

        with pytest.raises(Unrecoverable, match=f"offset {log.end_offset - 1} "):
            pytest.fail(f"{name}: {_recovered(log, tmp_path / str(number))}")
        log.records.pop()


def test_a_log_that_assigns_other_offsets_than_the_next_or_has_a_gap_is_refused(served: Served, tmp_path: Path) -> None:
    whole = list(served.log.records)
    commits = [number for number, logged in enumerate(whole) if isinstance(logged.record, FileCommitted)]
    renumbered = whole[: commits[3]] + whole[commits[3] + 1 :]
    renumbered = [logged._replace(offset=offset) for offset, logged in enumerate(renumbered)]
    served.log.high_watermark = len(renumbered)

    for fault, records in {"assigns": renumbered, "offset 5 does not follow 3": whole[:4] + whole[5:]}.items():
        served.log.records = records
        with pytest.raises(Unrecoverable, match=fault):
            _recovered(served.log, tmp_path)


def test_two_who_write_to_one_state_do_not_both_apply_a_record(served: Served) -> None:
    with closing(connect(served.file, served.log.name)) as connection:
        another = Applier(connection)
        served.commit("z", a_batch())
        before = state_contents(served.connection)
        deleted = RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=1)

        with pytest.raises(DoesNotFit, match="another process"):
            another.apply([LoggedRecord(another.next_offset, 0, deleted)])

    assert state_contents(served.connection) == before


def test_another_logs_state_and_snapshot_are_not_used(served: Served) -> None:
    (snapshot,) = snapshots(served.snapshots)

    with pytest.raises(StateUnusable, match="it is the state of"):
        connect(served.file, "another")
    with pytest.raises(StateUnusable, match="it is the state of"):
        check_snapshot(snapshot, "another")
