"""Reading the events in a store: what anybody may have put there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from tieredctl_proposals.formats.wal_records import encode_wal_event
from tieredctl_proposals.model.wal_events import WAL_METADATA_TOPIC
from tieredctl_proposals.ops.wal import event_log
from tieredctl_proposals.ops.wal.contents import read_events
from tieredctl_proposals.ops.wal.event_log import EVENT_FOLDER, read_event_log
from tieredctl_proposals.wal.events import WalEvents

from tests.rigs.unfolding import bytes_at_peak
from tests.wal_histories import wal_started
from tieredctl.formats.compression import Codec
from tieredctl.formats.record_batches import Attributes, Record, encode_batch
from tieredctl.storage.memory import MemoryStore

BATCHES, BATCH_BYTES = 40, 1 << 23
MOST_BYTES = BATCHES * BATCH_BYTES // 2


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
    contents = read_event_log(store, WalEvents())

    assert read == [size if size <= 100 else 0 for size in sizes]
    assert max(rounds) <= 100
    assert contents.findings


def key_of(offset: int) -> str:
    return f"{EVENT_FOLDER}0/{offset:020d}.log"


def events_of(first: int, last: int, **batch: Any) -> bytes:
    """A batch of events, each about a segment of its own."""
    numbers = range(first, last + 1)
    return encode_batch([Record(n, 0, None, encode_wal_event(wal_started(n, n, n))) for n in numbers], **batch)


@pytest.mark.parametrize("in_one_file", [False, True], ids=["files", "one file"])
def test_memory_follows_the_largest_batch_not_how_far_all_of_them_unfold(in_one_file: bool) -> None:
    value, store, files = bytes(BATCH_BYTES // 8), MemoryStore(), list[bytes]()
    for first in range(0, 8 * BATCHES, 8):
        records = [Record(offset, 0, None, value) for offset in range(first, first + 8)]
        files.append(encode_batch(records, codec=Codec.SNAPPY))
    if in_one_file:
        store.put(key_of(0), b"".join(files))
    else:
        for number, data in enumerate(files):
            store.put(key_of(8 * number), data)

    with bytes_at_peak() as peak:
        known = read_events(store)

    assert peak() < MOST_BYTES
    assert known.log.end_offsets == {0: 8 * BATCHES}
    assert len(known.findings) == 8 * BATCHES


def test_millions_of_records_without_an_event_are_counted_not_kept() -> None:
    store, count = MemoryStore(), 200_000
    store.put(key_of(0), encode_batch([Record(number, 0, None, b"") for number in range(count)], codec=Codec.SNAPPY))

    *named, rest = read_events(store).findings

    assert rest.subject == WAL_METADATA_TOPIC
    assert rest.evidence == {"records": count - len(named)}
    assert 0 < len(named) < count


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_files_of_several_partitions_and_sizes_are_read_as_one_log_each(codec: Codec) -> None:
    store, ends = MemoryStore(), [0, 1, 2, 7, 40, 41, 3_000]
    for partition in (0, 1, 10):
        for first, end in pairwise(ends):
            key = f"{EVENT_FOLDER}{partition}/{first:020d}.log"
            store.put(key, events_of(first, end - 1, codec=codec))

    known = read_events(store)

    assert known.findings == []
    assert known.log.end_offsets == dict.fromkeys((0, 1, 10), 3_000)
    assert len(known.segments()) == 3_000


def test_what_does_not_continue_the_log_is_a_finding_and_is_taken_once() -> None:
    highest = Record((1 << 63) - 1, 0, None, encode_wal_event(wal_started(1, 1, 1)))
    cases = {
        "a gap": ([events_of(0, 4), events_of(6, 9)], 9, 10),
        "written twice": ([events_of(0, 4), events_of(3, 9)], 10, 10),
        "a control batch": ([events_of(0, 4), events_of(5, 9, attributes=Attributes.CONTROL)], 5, 10),
        "the highest offset": ([encode_batch([highest])], 1, 1 << 63),
    }
    for name, (batches, segments, end) in cases.items():
        store = MemoryStore()
        store.put(key_of(0), b"".join(batches))

        known = read_events(store)

        assert known.findings, name
        assert (len(known.segments()), known.log.end_offsets) == (segments, {0: end}), name
