"""Brokers' active segments in a store of combined objects, and what may happen to its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tieredctl_proposals.ops.wal.event_log import EventLog
from tieredctl_proposals.wal.sections import QueueItem
from tieredctl_proposals.wal.steps import Publish, PutObject
from tieredctl_proposals.wal.upload import upload_steps

from tests.cli.command_line import Tieredctl
from tests.wal.local_partitions import CLUSTER_ID, ORDERS, batch
from tieredctl.storage.file import FileStore

FIRST = [batch(offset, epoch=offset // 3) for offset in range(6)]
SECOND = [batch(offset, size=300) for offset in range(10, 14)]
CONFIRMED = ("--yes", "--cluster-id", CLUSTER_ID)
EVENTS = "__remote_wal_log_metadata-0"


def upload_words(log_dir: Path, store: Path) -> tuple[str | Path, ...]:
    return "wal", "upload", "--log-dir", log_dir, "--store", f"file:{store}"


def objects(store: Path) -> list[Path]:
    return sorted(store.glob("*.wal"))


def restored(tieredctl: Tieredctl, store: Path, to: Path, *words: str) -> int:
    """The exit code. `other` begins above offset 0."""
    given = ("--store", f"file:{store}", "--to", to, "--untiered-topic", "other")
    return tieredctl("wal", "restore", *given, *words).exit_code


def logs_in(folder: Path) -> dict[str, bytes]:
    """What each partition's log holds."""
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.glob("*/*.log")}


def cut_at(writes: int) -> list[object]:
    """A test's parameters: the run that nothing stops and two that are killed early and late run always."""
    always = {writes // 3, writes - 1, writes}
    return [one if one in always else pytest.param(one, marks=pytest.mark.exhaustive) for one in range(writes + 1)]


def remove(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip_last(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def store_upload(store: Path, *items: QueueItem) -> None:
    """One combined object with its events, as any broker may have uploaded it."""
    steps = list(upload_steps(items, ORDERS[0].topic_id, broker_id=1, metadata_partitions=1, clock_ms=lambda: 1))
    EventLog(FileStore(str(store)), {}, lambda: 1).append([step for step in steps if isinstance(step, Publish)])
    (put,) = (step for step in steps if isinstance(step, PutObject))
    (store / put.key).write_bytes(put.data)
