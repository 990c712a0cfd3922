"""Ranges of offsets and times: the same records as of the whole log, of no more bytes than are needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import inputs
from tests.faults.segments_made import all_shapes
from tests.records.kafka_records import rows_of
from tests.records.one_segment import OneSegment, of_log
from tests.records.test_damage import altered, missing
from tests.shares import divided
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.ports.layout import Part
from tieredctl.records.request import GREATEST_OFFSET, Isolation, Moment, OnDamage, RecordRequest, record_place
from tieredctl.storage.memory import MemoryStore

SEGMENTS = {name: OneSegment(made.metadata, made.parts) for name, made in all_shapes().items()}
INDEX_INTERVAL_BYTES = 4_096
MUTANTS = 3_000
Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def indexes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of logs of any size, and little is read at once."""
    for module in ("segment_log", "time_lookup"):
        monkeypatch.setattr(f"tieredctl.records.{module}.INDEXED_FROM_BYTES", 0)
    monkeypatch.setattr("tieredctl.records.segment_log.PIECE_BYTES", 8_192)


class CountingStore(MemoryStore):
    """Counts what is asked for."""

    def __init__(self, segment: OneSegment) -> None:
        super().__init__()
        self.requests: list[tuple[str, int]] = []
        for key in (stored := segment.store())._objects:
            self.put(key, stored.read(key))

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        self.requests.append((key.rpartition(".")[2], len(data)))
        return data

    def stream(self, key: str, start: int = 0, chunk_size: int = 1 << 20) -> Iterator[bytes]:
        self.requests.append((key.rpartition(".")[2], 0))
        return super().stream(key, start, chunk_size)


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize("name", SEGMENTS)
def test_any_range_of_offsets(name: str, isolation: Isolation) -> None:
    segment = SEGMENTS[name]
    whole = rows_of(segment.read(RecordRequest(isolation=isolation)))
    first, last = segment.metadata.start_offset, segment.metadata.end_offset
    for number in divided(range(inputs(40))):
        draw = random.Random(f"{name} {number}")
        start, end = sorted(draw.randint(first - 2, last + 3) for _ in range(2))

        records = segment.read(RecordRequest(start, end, isolation))

        assert rows_of(records) == [row for row in whole if start <= row[0] < end], (start, end)
        assert records.findings == []


@pytest.mark.parametrize("name", SEGMENTS)
def test_any_range_of_times(name: str) -> None:
    segment = SEGMENTS[name]
    whole = rows_of(segment.read())
    times = sorted(row[1] for row in whole)
    for number in divided(range(inputs(30))):
        draw = random.Random(f"{name} {number}")
        start, end = sorted(draw.randint(times[0] - 2, times[-1] + 3) for _ in range(2))

        records = segment.read(RecordRequest(Moment(start), Moment(end)))

        begin = next((row[0] for row in whole if row[1] >= start), 1 << 62)
        until = next((row[0] for row in whole if row[1] >= end), 1 << 62)
        assert rows_of(records) == [row for row in whole if begin <= row[0] < until], (start, end)
        assert records.findings == []


def test_one_offset_takes_two_requests_and_two_index_intervals() -> None:
    segment = SEGMENTS["indexed_by_batch"]
    largest = 2_000
    for offset in range(segment.metadata.start_offset, segment.metadata.end_offset + 1, 7):
        store = CountingStore(segment)

        rows = rows_of(segment.read(RecordRequest(offset, offset + 1), store))

        assert [row[0] for row in rows] == [offset]
        assert len(store.requests) <= 3, store.requests
        read = sum(size for part, size in store.requests if part == "log")
        assert read <= 2 * (INDEX_INTERVAL_BYTES + largest), (offset, store.requests)


@pytest.mark.parametrize("name", SEGMENTS)
def test_altered_parts_lose_nothing_of_a_range_in_silence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl.records.segment_log.PIECE_BYTES", 1 << 16)  # of each piece, the same work is done
    segment = SEGMENTS[name]
    whole = rows_of(segment.read())
    parts = [part for part in (Part.LOG, Part.OFFSET_INDEX, Part.TIME_INDEX) if segment.parts.get(part)]
    for number in divided(range(inputs(MUTANTS // len(SEGMENTS)))):
        draw = random.Random(f"{name} {number}")
        part = draw.choice(parts)
        mutant = segment.with_part(part, altered(segment.parts[part], draw))
        start, end = sorted(draw.choice(whole)[:2] for _ in range(2))
        by_time = draw.random() < 0.4
        places = (Moment(start[1]), None) if by_time else (start[0], end[0] + 1)
        begin = next(row[0] for row in whole if row[1] >= start[1]) if by_time else start[0]
        expected = [row for row in whole if begin <= row[0] and (by_time or row[0] <= end[0])]

        records = mutant.read(RecordRequest(places[0], places[1], on_damage=OnDamage.SKIP))

        got = set(rows_of(records))
        assert got <= set(whole if by_time else expected), (part, number)
        lost = {row[0] for row in expected} - {row[0] for row in got}
        assert lost <= missing(records), (part, number, places)


def test_the_greatest_offset_there_can_be_is_an_offset() -> None:
    offsets = [GREATEST_OFFSET - 1, GREATEST_OFFSET]
    log = encode_batch([Record(offset, 0, None, b"v") for offset in offsets], partition_leader_epoch=3)
    segment = of_log(log, *offsets)

    for isolation in Isolation:
        assert [row[0] for row in rows_of(segment.read(RecordRequest(isolation=isolation)))] == offsets
        (row,) = rows_of(segment.read(RecordRequest(GREATEST_OFFSET, isolation=isolation)))
        assert row[0] == GREATEST_OFFSET
        places = record_place("--from", "earliest"), record_place("--to", "latest")
        assert [row[0] for row in rows_of(segment.read(RecordRequest(*places, isolation)))] == offsets


def test_a_segment_of_another_time_is_not_read() -> None:
    segment = SEGMENTS["single_batch"]
    store = CountingStore(segment)

    rows = rows_of(segment.read(RecordRequest(Moment(segment.metadata.max_timestamp_ms + 1)), store))

    assert (rows, store.requests) == ([], [])
