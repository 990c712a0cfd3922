"""From stores that keep a reader waiting, what follows is asked for ahead: within limits, and with the same outcome."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.keys import PrivateKeys

from tests.conftest import inputs
from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tests.faults.cluster import LAYOUT, key_of
from tests.faults.segments_made import all_shapes, large_batches
from tests.metadata_logs import segment_id
from tests.records.kafka_records import rows_of
from tests.records.one_segment import OneSegment, of_log
from tests.records.test_damage import altered
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.ops.remote.log_bytes import LogBytes
from tieredctl.ports.layout import Part, SegmentReader
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import ALL_RECORDS, OnDamage, RecordRequest
from tieredctl.records.served_spans import ServedSpan
from tieredctl.records.topic_reading import TopicReading
from tieredctl.rlmm.cache import NOTHING_DELETED
from tieredctl.storage.memory import MemoryStore

PIECE_BYTES = 8_192
MOST_PIECES = 4
SECONDS = 60
MUTANTS = 300
SHAPES = {name: OneSegment(made.metadata, made.parts) for name, made in all_shapes().items()}


@pytest.fixture(autouse=True)
def little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl.ops.remote.log_bytes.MOST_BYTES_IN_FLIGHT", MOST_PIECES * PIECE_BYTES)
    monkeypatch.setattr("tieredctl.records.segment_log.PIECE_BYTES", PIECE_BYTES)


class DistantStore(MemoryStore):
    """Is best read by many at once, and keeps account of the ranges of logs that it is asked for."""

    parallel_reads = 8

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, int]] = []
        self.requests = 0
        self._asking = threading.Lock()

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        with self._asking:
            self.requests += 1
            if key.endswith(".log"):
                self.asked.append((start, start + len(data)))
        return data

    @property
    def asked_bytes(self) -> int:
        return sum(end - start for start, end in self.asked)


def filled(store: DistantStore, segment: OneSegment) -> DistantStore:
    for part, data in segment.parts.items():
        store.put(key_of(segment.metadata, part), data)
    return store


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("in-turn")]


def log_of(size: int, store: DistantStore) -> tuple[bytes, SegmentReader]:
    segment = of_log(random.Random(size).randbytes(size), 0, 1)
    return segment.parts[Part.LOG], LAYOUT.open_segment(filled(store, segment), segment.metadata)


def test_ranges_are_in_flight_together_up_to_the_limit() -> None:
    class Together(DistantStore):
        """Answers from the third range on only when as many wait for their answers as may."""

        def __init__(self) -> None:
            super().__init__()
            self._waiting = threading.Barrier(MOST_PIECES)

        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            data = super().read(key, start, end)
            if 3 <= start // PIECE_BYTES < 3 + MOST_PIECES:
                self._waiting.wait(SECONDS)
            return data

    store = Together()
    data, reader = log_of(20 * PIECE_BYTES + 5, store)
    log = LogBytes(reader, store.parallel_reads)

    pieces = []
    for piece in log.whole(len(data), PIECE_BYTES):
        assert store.asked_bytes - log.bytes_read <= (MOST_PIECES - 1) * PIECE_BYTES
        pieces.append(piece)

    assert b"".join(pieces) == data
    assert sorted(store.asked) == [(at, min(at + PIECE_BYTES, len(data))) for at in range(0, len(data), PIECE_BYTES)]


def test_no_more_is_asked_for_ahead_than_was_handed_out() -> None:
    for wanted in range(1, 8):
        store = DistantStore()
        data, reader = log_of(20 * PIECE_BYTES, store)

        list(islice(LogBytes(reader, store.parallel_reads).whole(len(data), PIECE_BYTES), wanted))

        assert store.asked_bytes <= (2 * wanted - 1) * PIECE_BYTES


def test_the_first_records_take_one_request() -> None:
    segment = of_log(b"".join(batch(number) for number in range(100)), 0, 99)
    store = filled(DistantStore(), segment)
    span = ServedSpan(segment.metadata, 0, 99)
    remote = RemotePartition(segment.metadata.topic_id_partition, [span], None, NOTHING_DELETED)

    batches = list(TopicReading([remote], store, LAYOUT, RecordRequest(), most=2).batches())

    assert [row[0] for row in rows_of(batches)] == [0, 1]
    assert (store.requests, store.asked) == (1, [(0, PIECE_BYTES)])


@pytest.mark.parametrize(("bytes_in_flight", "pieces"), [(None, MOST_PIECES), (2 * PIECE_BYTES, 2)])
def test_a_request_may_have_less_asked_for_ahead(bytes_in_flight: int | None, pieces: int) -> None:
    records = 600
    segment = of_log(b"".join(batch(number) for number in range(records)), 0, records - 1)
    store, span = filled(DistantStore(), segment), ServedSpan(segment.metadata, 0, records - 1)
    remote = RemotePartition(segment.metadata.topic_id_partition, [span], None, NOTHING_DELETED)
    request = RecordRequest(bytes_in_flight=bytes_in_flight)

    most = 0
    for read in PartitionRecords(remote, store, LAYOUT, request):
        seen = int(read.column("offset")[-1].as_py()) + 3  # the last two wait for what follows
        most = max(most, store.asked_bytes - seen * len(batch(0)))

    assert pieces - 1 < most / PIECE_BYTES <= pieces


def of_small_segments(
    store: MemoryStore, request: RecordRequest = ALL_RECORDS, logs: Mapping[int, bytes | None] | None = None
) -> tuple[RemotePartition, PartitionRecords]:
    """Many segments of a batch each, with other logs for some of them, or none."""
    spans = []
    for number in range(20):
        made = of_log(batch(number), number, number)
        metadata = replace(made.metadata, segment_id=segment_id(number))
        log = made.parts[Part.LOG] if logs is None else logs.get(number, made.parts[Part.LOG])
        if log is not None:
            store.put(key_of(metadata, Part.LOG), log)
        spans.append(ServedSpan(metadata, number, number))
    remote = RemotePartition(spans[0].segment.topic_id_partition, spans, None, NOTHING_DELETED)
    return remote, PartitionRecords(remote, store, LAYOUT, request)


def test_small_segments_are_in_flight_together() -> None:
    class Together(DistantStore):
        """Answers for the eighth log and those after it only when as many wait as may."""

        def __init__(self) -> None:
            super().__init__()
            self._waiting = threading.Barrier(self.parallel_reads)

        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            if any(segment_id(number) in key for number in range(7, 7 + self.parallel_reads)):
                self._waiting.wait(SECONDS)
            return super().read(key, start, end)

    store = Together()
    _, records = of_small_segments(store)

    assert [row[0] for row in rows_of(records)] == list(range(20))
    assert len(store.asked) == 20
    assert threads() == []


def test_of_small_segments_no_more_are_asked_for_ahead_than_were_handed_out() -> None:
    for wanted in range(1, 6):
        remote, _ = of_small_segments(store := DistantStore())

        list(TopicReading([remote], store, LAYOUT, RecordRequest(), most=wanted).batches())

        assert len(store.asked) <= 2 * wanted - 1
        assert threads() == []


def test_small_segments_that_cannot_be_read_are_found_at_their_places() -> None:
    logs = {3: None, 16: bytes(100)}
    request = RecordRequest(on_damage=OnDamage.SKIP)
    _, ahead = of_small_segments(DistantStore(), request, logs)
    _, plain = of_small_segments(MemoryStore(), request, logs)

    assert rows_of(ahead) == rows_of(plain)
    assert ahead.findings == plain.findings
    assert len(plain.findings) >= 2


def batch(offset: int) -> bytes:
    return encode_batch([Record(offset, 0, None, bytes(500))], partition_leader_epoch=3)


def test_threads_end_with_whoever_reads() -> None:
    def closed(pieces: Iterator[bytes]) -> None:
        pieces.close()  # type: ignore[attr-defined]

    def abandoned(pieces: Iterator[bytes]) -> None:
        del pieces

    def read_to_the_end(pieces: Iterator[bytes]) -> None:
        assert sum(map(len, pieces))

    for ending in (closed, abandoned, read_to_the_end):
        store = DistantStore()
        data, reader = log_of(20 * PIECE_BYTES, store)
        pieces = LogBytes(reader, store.parallel_reads).whole(len(data), PIECE_BYTES)
        assert len(list(islice(pieces, 3))) == 3
        assert threads()

        ending(pieces)
        del pieces

        assert threads() == [], ending


def test_an_error_has_the_place_of_its_range() -> None:
    class Failing(DistantStore):
        def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
            if start // PIECE_BYTES == 5:
                raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "down")
            return super().read(key, start, end)

    store = Failing()
    segment = of_log(b"".join(batch(number) for number in range(100)), 0, 99)
    rows: list[int] = []

    with pytest.raises(TieredctlError) as raised:
        rows.extend(row[0] for found in segment.read(store=filled(store, segment)) for row in rows_of([found]))

    assert raised.value.code == ErrorCode.STORE_UNREACHABLE
    assert rows == list(range(5 * PIECE_BYTES // len(batch(0)) - 2))  # the last two wait for what follows
    assert threads() == []


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_altered_is_found_as_without(name: str) -> None:
    segment = SHAPES[name]
    for number in divided(range(inputs(MUTANTS // len(SHAPES)))):
        mutant = segment.with_part(Part.LOG, altered(segment.parts[Part.LOG], random.Random(number)))

        ahead, plain = (
            mutant.read(RecordRequest(on_damage=OnDamage.SKIP), store)
            for store in (filled(DistantStore(), mutant), mutant.store())
        )

        assert rows_of(ahead) == rows_of(plain), number
        assert ahead.findings == plain.findings, number


@pytest.mark.parametrize("chunk", [1_000, 4_096, 5_000, 20_000])
def test_no_chunk_is_read_twice(chunk: int) -> None:
    made = large_batches()
    store, layout = DistantStore(), AivenLayout(keys=PrivateKeys((private_key(),)))
    AivenStorageManager(chunk, compression=True, encryption=True).copy_segment(store, layout, made.metadata, made.parts)
    reader = layout.open_segment(store, made.metadata)
    log = made.parts[Part.LOG]

    for start in (0, 1, chunk // 2, len(log) // 2):
        store.asked.clear()
        assert b"".join(LogBytes(reader, 8).pieces(start, len(log), PIECE_BYTES)) == log[start:]
        asked = sorted(store.asked)
        assert all(end == following for (_, end), (following, _) in pairwise(asked)), asked


GIBIBYTE, INTERVAL = 1 << 30, 4_096


class GeneratedSegment(DistantStore):
    """A log of 1 GiB, made where it is read: batches of an index interval, each with an entry."""

    def __init__(self) -> None:
        super().__init__()
        empty = len(encode_batch([Record(0, 0, None, b"")], partition_leader_epoch=3))
        value = bytes(INTERVAL - empty - 2)  # the two lengths before it take a byte more each
        self._batch = encode_batch([Record(0, 0, None, value)], partition_leader_epoch=3)[8:]
        assert len(self._batch) + 8 == INTERVAL
        self.batches = GIBIBYTE // INTERVAL
        entries = np.stack((np.arange(1, self.batches), np.arange(1, self.batches) * INTERVAL), axis=1)
        self._index = entries.astype(">i4").tobytes()

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self.requests += 1
        if key.endswith(".index"):
            return self._index[start:end]
        end = GIBIBYTE if end is None else min(end, GIBIBYTE)
        self.asked.append((start, end))
        numbers = range(start // INTERVAL, -(-end // INTERVAL))
        data = b"".join(number.to_bytes(8) + self._batch for number in numbers)
        return data[start - numbers.start * INTERVAL :][: end - start]


def test_one_offset_of_a_gibibyte_takes_two_requests_and_two_index_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()  # the limits that users have
    store = GeneratedSegment()
    metadata = replace(of_log(b"", 0, store.batches - 1).metadata, segment_size_in_bytes=GIBIBYTE)
    for offset in (0, 1, 77_777, store.batches - 1):
        store.requests = 0
        store.asked.clear()
        span = ServedSpan(metadata, 0, store.batches - 1)
        remote = RemotePartition(metadata.topic_id_partition, [span], None, NOTHING_DELETED)

        rows = rows_of(PartitionRecords(remote, store, LAYOUT, RecordRequest(offset, offset + 1)))

        assert [row[0] for row in rows] == [offset]
        assert store.requests <= 3
        assert store.asked_bytes <= 2 * INTERVAL + 61
