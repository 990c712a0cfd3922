"""KIP-1176, `RemoteWalStorageManager.fetchLogSegment`: batches are read back in ranges, as they were written."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.reading import fetch_from_offset, fetch_log_segment, read_object_index
from tieredctl_proposals.wal.recovery import recovered_events
from tieredctl_proposals.wal.replayed import KnownWalSegment
from tieredctl_proposals.wal.sections import queue_item

from tests.metadata_logs import PARTITION, segment_id
from tests.refusals import refused_with
from tests.wal.model_wal import METADATA_PARTITIONS, ModelWal, batch, item, uploading
from tests.wal_histories import OTHER
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.storage.counting import CountingStore
from tieredctl.storage.memory import MemoryStore

BATCHES = [batch(0, 4), batch(5, 5, size=90_000), batch(10, 12), batch(13, 13)]
RECORDS = b"".join(BATCHES)


def uploaded(records: bytes = RECORDS) -> tuple[ModelWal, KnownWalSegment]:
    wal = ModelWal()
    items = [item(1, OTHER, 0, 9), item(2, PARTITION, 0, 0, records=records), item(3, OTHER, 10, 11)]
    wal.do(uploading(wal, items, 100))
    return wal, next(one for one in wal.replayed().segments_in(segment_id(100)) if one.segment_id == segment_id(2))


def test_both_positions_are_inclusive_and_counted_in_the_segment() -> None:
    wal, segment = uploaded()

    assert fetch_log_segment(wal.store, segment, 0, 0) == RECORDS[:1]
    assert fetch_log_segment(wal.store, segment, 10, 19) == RECORDS[10:20]
    assert fetch_log_segment(wal.store, segment) == RECORDS


def test_the_stream_ends_at_the_smaller_of_end_position_and_the_end_of_the_segment() -> None:
    wal, segment = uploaded()

    assert fetch_log_segment(wal.store, segment, len(RECORDS) - 3, len(RECORDS) + 50) == RECORDS[-3:]
    assert fetch_log_segment(wal.store, segment, len(RECORDS), len(RECORDS) + 50) == b""


def test_remote_resource_not_found() -> None:
    _, segment = uploaded()

    with refused_with(ErrorCode.OBJECT_MISSING):
        fetch_log_segment(MemoryStore(), segment)


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (4, 0), (5, 1), (6, 2), (9, 2), (10, 2), (12, 2), (13, 3)])
def test_an_offset_is_served_from_the_batch_that_has_it_or_the_next_one(offset: int, first: int) -> None:
    wal, segment = uploaded()

    found = fetch_from_offset(wal.store, segment, offset, 1)

    assert found.data == BATCHES[first]
    position = sum(map(len, BATCHES[:first]))
    assert (found.key, found.position) == (object_key(segment_id(100)), segment.start_file_position + position)


def test_further_batches_come_up_to_the_limit_and_never_another_partitions() -> None:
    wal, segment = uploaded()

    assert fetch_from_offset(wal.store, segment, 10, len(BATCHES[2]) + len(BATCHES[3]) - 1).data == BATCHES[2]
    assert fetch_from_offset(wal.store, segment, 10, 1 << 30).data == BATCHES[2] + BATCHES[3]
    assert fetch_from_offset(wal.store, segment, 0, 1 << 30).data == RECORDS


def test_a_segment_of_the_size_that_the_proposal_envisions_takes_few_ranged_reads() -> None:
    batches = [batch(number, number, size=1_000) for number in range(500)]
    wal, segment = uploaded(b"".join(batches))
    store = CountingStore(wal.store)

    found = fetch_from_offset(store, segment, 499, 1)

    assert found.data == batches[-1]
    assert store.requests["read"] <= 10


def test_an_offset_beyond_the_segment_is_an_error_not_an_empty_answer() -> None:
    wal, segment = uploaded()

    with pytest.raises(TieredctlError, match="no record from offset 14 on"):
        fetch_from_offset(wal.store, segment, 14, 1)


@pytest.mark.parametrize("position", [0, 8, 12, 16, 17, 21, 70, len(BATCHES[0]) - 1])
def test_damage_is_told_and_not_served(position: int) -> None:
    wal, segment = uploaded()
    key = object_key(segment.combined_segment_id)
    data = bytearray(wal.store.read(key))
    data[segment.start_file_position + position] ^= 0x40
    wal.store.put(key, bytes(data))

    if position == 0:  # the base offset, outside the CRC: another offset is found, or none
        with pytest.raises(TieredctlError):
            fetch_from_offset(wal.store, segment, 4, 1 << 30)
        return
    with refused_with(ErrorCode.UNDECODABLE):
        fetch_from_offset(wal.store, segment, 0, 1)


def test_an_object_that_is_shorter_than_its_events_say_is_told() -> None:
    wal, segment = uploaded()
    key = object_key(segment.combined_segment_id)
    wal.store.put(key, wal.store.read(key)[: segment.end_file_position])

    with pytest.raises(TieredctlError, match=f"ends at {segment.end_file_position}, inside segment"):
        fetch_log_segment(wal.store, segment)


def test_events_that_do_not_say_where_a_segment_is_are_not_guessed_at() -> None:
    wal, segment = uploaded()

    with pytest.raises(TieredctlError, match="do not say where it is"):
        fetch_log_segment(wal.store, replace(segment, end_file_position=segment.end_file_position + 1))


SHAPES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3_000)), min_size=1, max_size=20)
"""Of batches: how many records, how many offsets before them that compaction took, and the size of a record."""


@given(SHAPES, st.data())
def test_any_offset_of_any_batches_is_found(shapes: list[tuple[int, int, int]], data: st.DataObject) -> None:
    ends = list(accumulate(records + gap for records, gap, _ in shapes))
    batches = [batch(end - records, end - 1, size=size) for end, (records, _, size) in zip(ends, shapes, strict=True)]
    wal, segment = uploaded(b"".join(batches))
    offset = data.draw(st.integers(ends[0] - shapes[0][0], ends[-1] - 1))

    found = fetch_from_offset(wal.store, segment, offset, data.draw(st.integers(0, 10_000)))

    first = next(number for number, end in enumerate(ends) if end > offset)
    assert b"".join(batches[first:]).startswith(found.data)
    assert len(found.data) >= len(batches[first])


def test_an_objects_index_is_read_in_one_request_and_must_fit_the_object() -> None:
    wal, segment = uploaded()
    stored = wal.store.head(object_key(segment.combined_segment_id))
    assert stored is not None
    store = CountingStore(wal.store)

    found = read_object_index(store, stored)

    assert found is not None
    assert [one.segment_id for one in found.entries] == [segment_id(1), segment_id(2), segment_id(3)]
    assert store.requests == {"read": 1}
    with pytest.raises(DecodeError, match="segments end at"):
        read_object_index(wal.store, stored._replace(size=stored.size + 1))
    renamed = wal.store.put(object_key(segment_id(5)), wal.store.read(stored.key))
    with pytest.raises(DecodeError, match="the index is that of object"):
        read_object_index(wal.store, renamed)


def test_an_object_of_the_proposals_own_form_cannot_be_told_apart_without_its_metadata() -> None:
    store = MemoryStore()
    stored = store.put(object_key(segment_id(1)), RECORDS)

    assert read_object_index(store, stored) is None
    with pytest.raises(DecodeError, match="do not tell whose they are"):
        list(recovered_events(store, stored, METADATA_PARTITIONS))


def test_the_batches_of_a_real_broker_come_back_byte_for_byte(captures: Path) -> None:
    """Every log with records of a capture, combined and read back by offset."""
    wal, logs = ModelWal(), sorted((captures / "kafka-4.3.1").rglob("*.log"))
    items, contents = [], {}
    for number, log in enumerate(one for one in logs if one.stat().st_size):
        records = log.read_bytes()
        try:
            queued = queue_item(
                PARTITION, segment_id(number), records, broker_id=1, leader_epoch=0, event_timestamp_ms=wal.now_ms
            )
        except DecodeError:
            continue  # such as a log that was preallocated, or copied while it was written
        items.append(queued)
        contents[segment_id(number)] = records
    assert len(items) > 3
    wal.do(uploading(wal, items, 5_000))

    for segment in wal.replayed().segments_in(segment_id(5_000)):
        found = fetch_from_offset(wal.store, segment, segment.metadata.start_offset, 1 << 30)
        assert found.data == contents[segment.segment_id]
        last = fetch_from_offset(wal.store, segment, segment.metadata.end_offset, 1)
        assert contents[segment.segment_id].endswith(last.data)
