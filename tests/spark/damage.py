"""Copies of captured clusters with damaged objects in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.faults.cluster import captured
from tests.metadata_logs import write_events

REMOTE = "remote/kafka-tiered-storage"


def damaged(cluster: Path, folder: Path) -> Path:
    """A copy of a cluster of which eight segments are damaged, each in another way."""
    copy = Path(shutil.copytree(cluster, folder / cluster.name))
    logs = sorted((copy / REMOTE).rglob("*.log"), key=lambda path: (path.stat().st_size, path.name))[-8:]
    for number, log in enumerate(logs):
        _DAMAGE[number](log)
    return copy


def with_unknown_size(cluster: Path, folder: Path) -> Path:
    """A copy of a cluster whose metadata gives its largest segment, which is sound, a negative size."""
    copy = folder / "unknown"
    (copy / REMOTE).parent.mkdir(parents=True)
    (copy / REMOTE).symlink_to(cluster / REMOTE)
    known = captured(cluster)
    largest = max(known.finished(), key=lambda one: one.segment_size_in_bytes)
    write_events(copy / "data", *known.with_start_changed(largest, segment_size_in_bytes=-1).events)
    return copy


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


_DAMAGE = (
    lambda log: _flip(log, 7),  # the base offset
    lambda log: _flip(log, 16),  # magic
    lambda log: _flip(log, 80),  # a record
    lambda log: _cut(log, log.stat().st_size - 1),
    lambda log: log.unlink(),
    lambda log: _cut(log.with_suffix(".timeindex"), 5),
    lambda log: _flip(log.with_suffix(".snapshot"), 3),
    lambda log: log.with_suffix(".leader_epoch_checkpoint").write_text("no checkpoint"),
)
