"""What a store says once of a diskless object, and not a second time, makes no object lost or damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import TWO_PARTITIONS
from tests.rigs.inkless import Inkless
from tests.rigs.lies import half, zeros
from tieredctl.storage.file import FileStore
from tieredctl.storage.refusals import object_missing


def gone(_: bytes) -> bytes:
    raise object_missing("file:/", TWO_PARTITIONS)


INSPECT, EXPLAIN = ("inspect", TWO_PARTITIONS), ("explain", "orders:0@44")
CASES = [
    *((words, change) for words in (INSPECT, EXPLAIN) for change in (half, zeros, gone)),
    (("verify", "--level", "full"), gone),  # bytes that were altered on the way are a finding of it
]


@pytest.mark.parametrize(("words", "change"), CASES)
def test_one_answer_alone_makes_nothing_damaged_or_missing(
    tidy: Inkless,
    tieredctl: Tieredctl,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    change: Callable[[bytes], bytes],
) -> None:
    read, streamed, times = FileStore.read, FileStore.stream, count(1)

    def altered_once(store: FileStore, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = read(store, key, start, end)
        return change(data) if key == TWO_PARTITIONS and next(times) == 1 else data

    def stream_altered_once(store: FileStore, key: str, *where: int) -> Iterator[bytes]:
        data = b"".join(streamed(store, key, *where))
        yield change(data) if key == TWO_PARTITIONS and next(times) == 1 else data

    monkeypatch.setattr(FileStore, "read", altered_once)
    monkeypatch.setattr(FileStore, "stream", stream_altered_once)

    outcome = tieredctl("diskless", *words, *tidy.places, "-o", "json")

    assert next(times) == 3
    assert outcome.exit_code == 0
