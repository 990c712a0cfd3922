"""Records whose bytes are altered on their way from the store once, or are not there once, are not lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.records import time_lookup
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing

TIME = "2026-11-21T09:14:05.609Z"
"""A time within a segment of orders7-0."""


def gone(_: bytes) -> bytes:
    raise object_missing("file:/", "log")


def alter_first(
    monkeypatch: pytest.MonkeyPatch, suffix: str, change: Callable[[bytes], bytes], times: Iterator[int]
) -> None:
    """The first answer about an object whose key ends so is altered; `times` counts them."""
    read, streamed = FileStore.read, FileStore.stream

    def altered_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return change(data) if key.endswith(suffix) and next(times) == 1 else data

    def stream_altered_once(store: FileStore, key: str, *where: int) -> object:
        data = b"".join(streamed(store, key, *where))
        yield change(data) if key.endswith(suffix) and next(times) == 1 else data

    monkeypatch.setattr(FileStore, "read", altered_once)
    monkeypatch.setattr(FileStore, "stream", stream_altered_once)


@pytest.mark.parametrize("change", [half, one_bit_flipped, zeros, gone])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_what_looks_lost_is_read_again_and_each_record_is_told_once(
    captures: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[bytes], bytes],
    isolation: str,
) -> None:
    cluster, times = captures / "kafka-4.3.1", count(1)
    at = ["--log-dir", cluster / "data", "--store", f"file:{cluster / 'remote/kafka-tiered-storage'}"]
    words = ["remote", "records", "slow7", "-o", "jsonl", "--isolation", isolation, *at]
    before = tieredctl(*words)
    alter_first(monkeypatch, ".log", change, times)

    done = tieredctl(*words)

    assert next(times) > 2
    assert (done.exit_code, done.out) == (0, before.out)


@pytest.mark.parametrize("change", [half, gone])
@pytest.mark.parametrize("suffix", [".log", ".timeindex", ".snapshot", ".leader_epoch_checkpoint"])
def test_where_reading_begins_and_ends_is_looked_up_again(
    captures: Path,
    tmp_path: Path,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
    change: Callable[[bytes], bytes],
) -> None:
    monkeypatch.setattr(time_lookup, "INDEXED_FROM_BYTES", 0)
    cluster, times = captures / "kafka-4.3.1", count(1)
    shutil.copytree(cluster / "data", tmp_path / "data", ignore=shutil.ignore_patterns("orders7-*"))
    at = ["--log-dir", tmp_path / "data", "--store", f"file:{cluster / 'remote/kafka-tiered-storage'}"]
    words = ["remote", "records", "orders7:0", "-o", "jsonl", "--isolation", "read_committed", "--from", TIME, *at]
    before = tieredctl(*words)
    alter_first(monkeypatch, suffix, change, times)

    done = tieredctl(*words)

    assert next(times) > 2
    assert (before.exit_code, done.exit_code, done.out) == (0, 0, before.out)
