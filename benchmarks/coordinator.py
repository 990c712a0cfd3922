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
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tieredctl_proposals.coordinator.file_log import FileLog
from tieredctl_proposals.coordinator.machine import Coordinator
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.coordinator.snapshots import take_snapshot
from tieredctl_proposals.model.diskless_requests import CreatablePartitions, CreatePartitions

from benchmarks.coordinator_load import BATCHES_IN_A_FILE, NOW_MS, PARTITIONS, TOPIC_ID, Committed, requests
from benchmarks.inkless_commits import commit_with_inkless
from benchmarks.naive_coordinator import NaiveCoordinator
from benchmarks.results import Row, table

BATCHES = 500_000
NAIVE_BATCHES = 500
PENDING_FILES = 8
"""How many commits are under way at once."""
_STATEMENTS = "plain SQLite, a transaction for each statement"
_FILES = "plain SQLite, a transaction for each file"
_OURS = "the coordinator, its log on the disk first"
_INKLESS = "Inkless's commit_file_v2 in PostgreSQL, unsynced"
LOG = "benchmark __diskless_metadata-0"


def commit(folder: Path, batches: int) -> Committed:
    """Through the coordinator: checked, appended to a log on the disk, synced, applied, answered."""
    with FileLog(LOG, folder / "log") as log:
        connection = recover(folder / "state", log, folder / "snapshots").connection
        coordinator = Coordinator(0, log, connection, lambda: NOW_MS)
        wall = cpu = 0.0

        def timed(work: Callable[[], object]) -> None:
            nonlocal wall, cpu
            began, began_cpu = time.perf_counter(), time.process_time()
            work()
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - began_cpu

        def settle() -> None:
            log.sync()
            coordinator.poll()

        created = CreatePartitions((CreatablePartitions(TOPIC_ID, "orders", PARTITIONS),))
        coordinator.create_partitions(created)
        settle()
        for number, request in enumerate(requests(batches), 1):
            timed(lambda request=request: coordinator.commit_file(request, 1))  # type: ignore[misc]
            if number % PENDING_FILES == 0:
                timed(settle)
        timed(settle)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return Committed(batches, wall, cpu, (folder / "state").stat().st_size)


def commit_naively(folder: Path, batches: int, *, in_transactions: bool) -> Committed:
    """The same checks and changes, a statement for each row."""
    file = folder / "naive"
    with closing(NaiveCoordinator(file, in_transactions=in_transactions)) as coordinator:
        coordinator.create_partitions(TOPIC_ID, PARTITIONS)
        wall = cpu = 0.0
        for request in requests(batches):
            began, began_cpu = time.perf_counter(), time.process_time()
            coordinator.commit_file(request, NOW_MS)
            wall, cpu = wall + time.perf_counter() - began, cpu + time.process_time() - began_cpu
    size = file.stat().st_size
    file.unlink()
    return Committed(batches, wall, cpu, size)


def coordinator_rows(folder: Path, batches: int, repetitions: int = 3, inkless: Path | None = None) -> list[Row]:
    """Rows of the suite; with a checkout of Inkless, of its control plane, too."""
    runs: dict[str, list[Committed]] = {
        _STATEMENTS: [commit_naively(folder, NAIVE_BATCHES, in_transactions=False) for _ in range(repetitions)],
        _FILES: [commit_naively(folder, NAIVE_BATCHES * 100, in_transactions=True) for _ in range(repetitions)],
        _OURS: [_commit_again(folder / "coordinator", batches) for _ in range(repetitions)],
    }
    if inkless is not None:
        runs[_INKLESS] = [commit_with_inkless(inkless, NAIVE_BATCHES * 100) for _ in range(repetitions)]
    rows = []
    for what, clock in (("a second", "wall"), ("a second of CPU", "cpu")):
        group = f"{batches:,} batches, {BATCHES_IN_A_FILE} in a file: committed {what}"
        rates = {name: [one.batches / getattr(one, clock) for one in each] for name, each in runs.items()}
        anchor = statistics.median(rates[_FILES])
        rows += [_row(group, name, values, "k/s", 1e-3, anchor) for name, values in rates.items()]
    group = f"{batches:,} batches: size of the state for each"
    rows += [_row(group, name, [one.bytes / one.batches for one in each], "B") for name, each in runs.items()]
    return rows + _state(folder / "coordinator", batches, repetitions)


def _commit_again(place: Path, batches: int) -> Committed:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return commit(place, batches)


def _state(place: Path, batches: int, repetitions: int) -> list[Row]:
    rows = []
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
    parser.add_argument(
        "--inkless", type=Path, metavar="DIR", help="a checkout of Inkless, to measure its control plane"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
        print(f"SQLite {sqlite3.sqlite_version}")
        print(table(coordinator_rows(Path(folder), options.batches, options.repetitions, options.inkless)))


if __name__ == "__main__":
    main()
