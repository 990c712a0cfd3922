"""Records whose bytes are altered on their way from the store once, or are not there once, are not lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing


def gone(_: bytes) -> bytes:
    raise object_missing("file:/", "log")


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
    read = FileStore.read

    def altered_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return change(data) if key.endswith(".log") and next(times) == 1 else data

    monkeypatch.setattr(FileStore, "read", altered_once)
    streamed = FileStore.stream

    def stream_altered_once(store: FileStore, key: str, *where: int) -> object:
        data = b"".join(streamed(store, key, *where))
        yield change(data) if key.endswith(".log") and next(times) == 1 else data

    monkeypatch.setattr(FileStore, "stream", stream_altered_once)

    done = tieredctl(*words)

    assert next(times) > 2
    assert (done.exit_code, done.out) == (0, before.out)
