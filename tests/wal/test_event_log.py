"""Reading the events in a store: what anybody may have put there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from tieredctl_proposals.ops.wal import event_log
from tieredctl_proposals.ops.wal.event_log import EVENT_FOLDER, read_event_log

from tieredctl.storage.memory import MemoryStore


@pytest.mark.parametrize("sizes", [[100] * 20, [60, 60, 10], [1, 100, 1], [500, 1, 500, 1], [0] * 9])
def test_no_more_bytes_are_read_at_once_than_the_largest_file_may_have(
    sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read, rounds = MemoryStore(), list[int](), list[int]()
    for number, size in enumerate(sizes):
        store.put(f"{EVENT_FOLDER}0/{number:020d}.log", b"?" * size)

    def one_by_one(_store: Any, do: Callable[[Any], Any], some: Iterable[Any]) -> list[Any]:
        done = [do(one) for one in some]
        read.extend(0 if data is None else len(data) for data in done)
        rounds.append(sum(len(data or b"") for data in done))
        return done

    monkeypatch.setattr(event_log, "_LARGEST_FILE", 100)
    monkeypatch.setattr(event_log, "in_parallel", one_by_one)
    contents = read_event_log(store)

    assert read == [size if size <= 100 else 0 for size in sizes]
    assert max(rounds) <= 100
    assert contents.findings
