"""The suite `coordinator`: a KIP-1164 coordinator's commits, state, snapshots and recovery, against plain SQLite.

`python -m benchmarks.coordinator --batches 10000000` measures more of it than the suite does.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.naive_coordinator import NaiveCoordinator
from benchmarks.results import Row, table
from tieredctl.coordinator.file_log import FileLog
from tieredctl.coordinator.machine import Coordinator
from tieredctl.coordinator.recovery import recover
from tieredctl.coordinator.snapshots import take_snapshot
from tieredctl.model.diskless_requests import CommitBatch, CommitFile, CreatablePartitions, CreatePartitions
from tieredctl.model.ids import uuid_text

BATCHES = 500_000
NAIVE_BATCHES = 500
BATCHES_IN_A_FILE = 500
"""A broker uploads a file after 250 ms or 8 MiB."""
PARTITIONS = 1_000
PENDING_FILES = 8
"""How many commits are under way at once."""
LOG = "benchmark __diskless_metadata-0"
_TOPIC_ID = uuid_text(b"\1" * 16)
_NOW_MS = 1_700_000_000_000


@dataclass
class Committed:
    """What committing took, in seconds, generating the requests not counted; and the state's size in bytes."""

    wall: float
    cpu: float
    bytes: int


def requests(batches: int) -> Iterator[CommitFile]:
    """Files of batches of 10 records; half of them have idempotent producers, one for each partition."""
    sequences = [0] * PARTITIONS
    for number in range(batches // BATCHES_IN_A_FILE):
        first = number * BATCHES_IN_A_FILE
        in_file = []
        for at in range(BATCHES_IN_A_FILE):
            partition = (first + at * 7) % PARTITIONS
            batch = CommitBatch(_TOPIC_ID, partition, at * 1000, 1000, 0, 9, _NOW_MS - at)
            if partition % 2:
                sequence = sequences[partition]
                sequences[partition] += 10
                batch = batch._replace(
                    producer_id=partition, producer_epoch=0, base_sequence=sequence, last_sequence=sequence + 9
                )
            in_file.append(batch)
        yield CommitFile(f"objects/{number:022}", BATCHES_IN_A_FILE * 1000, (0,), tuple(in_file))


def commit(folder: Path, batches: int) -> Committed:
    """Through the coordinator: checked, appended to a log on the disk, synced, applied, answered."""
    with FileLog(LOG, folder / "log") as log:
        connection = recover(folder / "state", log, folder / "snapshots").connection
        coordinator = Coordinator(0, log, connection, lambda: _NOW_MS)
        wall = cpu = 0.0

        def timed(work: Callable[[], object]) -> None:
            nonlocal wall, cpu
            began, began_cpu = time.perf_counter(), time.process_time()
            work()
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - began_cpu

        def settle() -> None:
            log.sync()
            coordinator.poll()

        created = CreatePartitions((CreatablePartitions(_TOPIC_ID, "orders", PARTITIONS),))
        coordinator.create_partitions(created)
        settle()
        for number, request in enumerate(requests(batches), 1):
            timed(lambda request=request: coordinator.commit_file(request, 1))  # type: ignore[misc]
            if number % PENDING_FILES == 0:
                timed(settle)
        timed(settle)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return Committed(wall, cpu, (folder / "state").stat().st_size)


def commit_naively(folder: Path, batches: int, *, in_transactions: bool) -> Committed:
    """The same checks and changes, a statement for each row."""
    file = folder / "naive"
    with closing(NaiveCoordinator(file, in_transactions=in_transactions)) as coordinator:
        coordinator.create_partitions(_TOPIC_ID, PARTITIONS)
        wall = cpu = 0.0
        for request in requests(batches):
            began, began_cpu = time.perf_counter(), time.process_time()
            coordinator.commit_file(request, _NOW_MS)
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - began_cpu
    size = file.stat().st_size
    file.unlink()
    return Committed(wall, cpu, size)


def coordinator_rows(folder: Path, batches: int, repetitions: int = 3) -> list[Row]:
    """Rows of the suite."""
    naive_batches = min(NAIVE_BATCHES, batches)
    naive = [commit_naively(folder, naive_batches, in_transactions=False) for _ in range(repetitions)]
    by_file = [commit_naively(folder, naive_batches * 100, in_transactions=True) for _ in range(repetitions)]
    ours = []
    for _ in range(repetitions):
        shutil.rmtree(folder / "coordinator", ignore_errors=True)
        (folder / "coordinator").mkdir()
        ours.append(commit(folder / "coordinator", batches))
    names = (
        "plain SQLite, a transaction for each statement",
        "plain SQLite, a transaction for each file",
        "the coordinator, its log on the disk first",
    )
    measured = list(zip(names, (naive_batches, naive_batches * 100, batches), (naive, by_file, ours), strict=True))
    rows = []
    for what, clock in (("a second", "wall"), ("a second of CPU", "cpu")):
        group = f"{batches:,} batches, {BATCHES_IN_A_FILE} in a file: committed {what}"
        rates = {name: [number / getattr(one, clock) for one in runs] for name, number, runs in measured}
        anchor = statistics.median(rates[names[1]])
        rows += [_row(group, name, values, "k/s", 1e-3, anchor) for name, values in rates.items()]
    rows += _state(folder, batches, ours, by_file, naive_batches * 100, repetitions)
    return rows


def _state(
    folder: Path, batches: int, ours: list[Committed], naive: list[Committed], naive_batches: int, repetitions: int
) -> list[Row]:
    place = folder / "coordinator"
    sizes = {
        "plain SQLite": [one.bytes / naive_batches for one in naive],
        "the coordinator": [one.bytes / batches for one in ours],
    }
    rows = [_row(f"{batches:,} batches: size of the state for each", *each, "B") for each in sizes.items()]
    group = f"{batches:,} batches: seconds"
    rows.append(_row(group, "a snapshot, checked", _seconds(repetitions, lambda: _snapshot(place)), "s"))
    rows.append(_row(group, "opening the state", _seconds(repetitions, lambda: _recover(place, place / "state")), "s"))
    again = place / "again"
    for name, snapshots in (("recovery from a snapshot", place / "snapshots"), ("recovery from the log", place / "no")):

        def recovered(snapshots: Path = snapshots) -> None:
            again.unlink(missing_ok=True)
            _recover(place, again, snapshots)

        rows.append(_row(group, name, _seconds(repetitions, recovered), "s"))
    log_bytes = sum(file.stat().st_size for file in (place / "log").iterdir())
    rows.append(_row(f"{batches:,} batches: size of the log for each", "the log", [log_bytes / batches], "B"))
    return rows


def _snapshot(place: Path) -> None:
    shutil.rmtree(place / "snapshots", ignore_errors=True)
    take_snapshot(place / "state", place / "snapshots", LOG)


def _recover(place: Path, state: Path, snapshots: Path | None = None) -> None:
    with FileLog(LOG, place / "log") as log:
        recovered = recover(state, log, snapshots or place / "no")
        if recovered.refused:
            raise RuntimeError(f"refused: {recovered.refused}")
        recovered.connection.close()


def _seconds(repetitions: int, work: Callable[[], object]) -> list[float]:
    taken = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


def _row(group: str, name: str, values: list[float], unit: str, scale: float = 1.0, anchor: float | None = None) -> Row:
    median = statistics.median(values)
    ratio = None if anchor in (None, median) else median / anchor
    print(f"  {group}: {name}: {median * scale:.3f} {unit}", file=sys.stderr, flush=True)
    return Row(group, name, "wall", median * scale, min(values) * scale, max(values) * scale, unit, ratio, None)


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coordinator", description=__doc__)
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"how many to commit, {BATCHES} by default")
    parser.add_argument("--repetitions", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
        print(f"SQLite {sqlite3.sqlite_version}")
        print(table(coordinator_rows(Path(folder), options.batches, options.repetitions)))


if __name__ == "__main__":
    main()
