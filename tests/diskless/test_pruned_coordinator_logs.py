"""Logs that coordinators pruned: with a sound snapshot nothing is unknown, and without one everything that may be."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_proposals.coordinator.snapshots import snapshots
from tieredctl_proposals.model.diskless_records import DISKLESS_METADATA_TOPIC, DisklessRecord
from tieredctl_proposals.ops.diskless.coordinator_files import CoordinatorFiles, read_files
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs
from tieredctl_proposals.ops.diskless.coordinator_snapshots import listed_snapshots

from tests.cli.command_line import Tieredctl
from tests.conftest import examples
from tests.diskless.coordinator_logs import HOUR_MS, NOON_MS, committed, created, write_log, write_pruned_log
from tests.diskless.scanned_coordinators import LOGS_BEGIN, RECORDS, UNKNOWN, Cluster, statuses
from tests.diskless.test_coordinator_scan import histories
from tieredctl.kafka.log_directory import LogDirectories

EARLY = [RECORDS[0][0], (LOGS_BEGIN, committed(3, 0, 9)), *RECORDS[0][2:]]
"""A log whose first file was committed before anything that is in the bucket."""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def _folder(cluster: Cluster) -> Path:
    return cluster.logs / f"{DISKLESS_METADATA_TOPIC}-0"


def _prune(cluster: Cluster, *snapshots_after: int) -> None:
    shutil.rmtree(_folder(cluster))
    write_pruned_log(cluster.logs, 0, EARLY, snapshots_after)


def test_a_scan_of_pruned_logs_says_what_it_said_before(cluster: Cluster, tieredctl: Tieredctl) -> None:
    before = cluster.scan(tieredctl)

    for snapshots_after in ((2, 3), (2, 4), (3, 4)):
        _prune(cluster, *snapshots_after)
        outcome = cluster.scan(tieredctl)

        assert outcome.exit_code == 3, snapshots_after
        assert statuses(outcome) == statuses(before), snapshots_after
        assert not [*_folder(cluster).glob("*.sqlite-*")], "a scan writes nothing beside the log"


def test_a_log_all_of_which_is_in_its_snapshot_is_whole(cluster: Cluster, tieredctl: Tieredctl) -> None:
    _prune(cluster, 3, 4)
    for segment in sorted(_folder(cluster).glob("*.log")):
        segment.unlink()
    (_folder(cluster) / f"{4:020d}.log").touch()

    outcome = cluster.scan(tieredctl)

    assert outcome.exit_code == 3
    assert statuses(outcome)[UNKNOWN] == "orphan"


def _newest(cluster: Cluster) -> Path:
    return snapshots(_folder(cluster))[0].file


def _oldest(cluster: Cluster) -> Path:
    return snapshots(_folder(cluster))[-1].file


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:4096])


def _remove_all(cluster: Cluster) -> None:
    for snapshot in snapshots(_folder(cluster)):
        snapshot.file.unlink()


def _without_what_follows_them(cluster: Cluster) -> None:
    """The log begins after the newest snapshot."""
    for offset in (2, 3):
        (_folder(cluster) / f"{offset:020d}.log").unlink()
    (_folder(cluster) / f"{4:020d}.log").touch()


def _without_the_end(cluster: Cluster) -> None:
    """The log ends before the newest snapshot."""
    (_folder(cluster) / f"{3:020d}.log").unlink()
    (_folder(cluster) / f"{2:020d}.log").write_bytes(b"")


def _of_another_coordinator(cluster: Cluster) -> None:
    other = cluster.logs.parent / "other"
    later = NOON_MS + 3 * HOUR_MS
    records = [*RECORDS[1], *((later, created(number)) for number in (2, 3))]
    theirs = write_pruned_log(other, 1, records, (2, 3))
    _remove_all(cluster)
    for snapshot in snapshots(theirs):
        shutil.copy(snapshot.file, _folder(cluster))


def _of_another_history(cluster: Cluster) -> None:
    """A log of the same name, as of another cluster."""
    other = cluster.logs.parent / "other"
    records = [(LOGS_BEGIN, created(number)) for number in (0, 1, 2)]
    theirs = write_pruned_log(other, 0, records, (2, 3))
    _remove_all(cluster)
    for snapshot in snapshots(theirs):
        shutil.copy(snapshot.file, _folder(cluster))


def _alter(file: Path, statement: str) -> None:
    """Another state under a name that says it is what was written."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    file.rename(file.with_name(f"{file.name[:20]}-{sha256}.sqlite"))


DOUBTS: dict[str, tuple[Callable[[Cluster], object], str]] = {
    "no snapshot": (_remove_all, "begins at offset 2"),
    "newest snapshot damaged": (lambda one: _flip(_newest(one)), "snapshot 3 cannot be used"),
    "newest snapshot cut": (lambda one: _cut(_newest(one)), "snapshot 3 cannot be used"),
    "newest snapshot empty": (lambda one: _newest(one).write_bytes(b""), "snapshot 3 cannot be used"),
    "older snapshot damaged": (lambda one: _flip(_oldest(one)), "snapshot 2 cannot be used"),
    "batches of a file that is not there": (
        lambda one: _alter(_newest(one), "UPDATE batches SET file = 99"),
        "snapshot 3 cannot be used",
    ),
    "files that were forgotten": (
        lambda one: _alter(_newest(one), "DELETE FROM files"),
        "batches are of no file",
    ),
    "owners that are no numbers": (
        lambda one: _alter(_newest(one), "UPDATE files SET owner_ids = 'x'"),
        "snapshot 3 cannot be used",
    ),
    "batches that do not follow one another": (
        lambda one: _alter(_newest(one), "UPDATE batches SET base_offset = base_offset + 1"),
        "snapshot 3 cannot be used",
    ),
    "text where a number belongs": (
        lambda one: _alter(_newest(one), "UPDATE batches SET batch_max_timestamp = 'x'"),
        "batches have values of other types",
    ),
    "text that is not UTF-8": (
        lambda one: _alter(_newest(one), "UPDATE partitions SET name = CAST(x'ff' AS TEXT)"),
        "snapshot 3 cannot be used",
    ),
    "other tables": (lambda one: _alter(_newest(one), "CREATE TABLE other (x)"), "it has other tables"),
    "log begins after the snapshots": (_without_what_follows_them, "newest snapshot ends at offset 3"),
    "log ends before a snapshot": (_without_the_end, "up to offset 3"),
    "snapshots of another coordinator": (_of_another_coordinator, "it is the state of __diskless_metadata-1"),
    "snapshots of another log": (_of_another_history, "another record than the log"),
}


def test_a_snapshot_that_does_not_lead_to_the_log_leaves_nothing_orphaned(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    for name, (break_it, message) in DOUBTS.items():
        _prune(cluster, 2, 3)
        break_it(cluster)

        outcome = cluster.scan(tieredctl, "-o", "json")

        document = outcome.document()
        assert outcome.exit_code == 5, name
        assert not document["summary"]["complete"], name
        assert {item["status"] for item in document["items"]} <= {"owned", "unknown"}, name
        found = [one["message"] for one in document["summary"]["findings"]]
        assert any(message in one for one in found), (name, found)


def test_a_log_from_its_beginning_that_lost_what_a_snapshot_has_leaves_nothing_orphaned(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    _prune(cluster, 2, 3)
    kept = {snapshot.file.name: snapshot.file.read_bytes() for snapshot in snapshots(_folder(cluster))}
    shutil.rmtree(_folder(cluster))
    write_log(cluster.logs, 0, EARLY[:2])
    for name, data in kept.items():
        (_folder(cluster) / name).write_bytes(data)

    outcome = cluster.scan(tieredctl)

    assert outcome.exit_code == 5
    assert "orphan" not in statuses(outcome).values()


def test_a_snapshot_of_another_cluster_is_not_believed(cluster: Cluster, tieredctl: Tieredctl) -> None:
    _prune(cluster, 2, 3)
    (cluster.logs / "meta.properties").write_text("version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=0\n")
    assert cluster.scan(tieredctl).exit_code == 3  # the name has no cluster: the log proves that it is its own

    _remove_all(cluster)
    theirs = write_pruned_log(cluster.logs.parent / "theirs", 0, EARLY, (2, 3), cluster_id="AAAAAAAAAAAAAAAAAAAAAw")
    for snapshot in snapshots(theirs):
        shutil.copy(snapshot.file, _folder(cluster))
    outcome = cluster.scan(tieredctl)

    assert outcome.exit_code == 5
    assert "orphan" not in statuses(outcome).values()


def test_an_orphan_older_than_the_first_file_of_a_snapshot_is_unknown(cluster: Cluster, tieredctl: Tieredctl) -> None:
    """A pruned log does not say when it began: only since its first file is it known what it would name."""
    shutil.rmtree(_folder(cluster))
    write_pruned_log(cluster.logs, 0, RECORDS[0], (2, 3))

    assert statuses(cluster.scan(tieredctl))[UNKNOWN] == "unknown"


def _read(log_dir: Path) -> CoordinatorFiles:
    listed = listed_snapshots([log_dir])
    logs = CoordinatorLogs(LogDirectories([log_dir], DISKLESS_METADATA_TOPIC), 1, listed)
    found = read_files(logs)
    assert not logs.findings
    return found


@settings(max_examples=examples(15), deadline=None)
@given(history=histories(), data=st.data())
def test_wherever_a_log_is_pruned_the_same_files_are_live(
    history: list[DisklessRecord], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole, pruned = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("pruned")
    records = [(NOON_MS + number, record) for number, record in enumerate(history)]
    last = data.draw(st.integers(2, len(records)))
    first = data.draw(st.integers(1, last - 1))
    write_log(whole, 0, records)
    write_pruned_log(pruned, 0, records, (first, last))

    expected, found = _read(whole), _read(pruned)

    def files(read: CoordinatorFiles) -> dict[str, tuple[bool, int]]:
        """Whether each is live, and if so since when: of others, a snapshot has no times of batches."""
        assert (read.live == read.surely_live).all()
        columns = zip(read.live, read.committed_ms * read.live, strict=True)
        return {read.keys[number]: (bool(is_live), int(ms)) for number, (is_live, ms) in enumerate(columns)}

    assert files(found) == files(expected)
    assert found.oldest_ms <= expected.oldest_ms
    assert found.begin_ms >= expected.begin_ms
