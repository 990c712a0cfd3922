"""With read_committed, a transaction's marker decides; where damage hides it, the index, unless it is in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.faults.segments_made import transactions
from tests.records.captured_topics import captured_records
from tests.records.one_segment import OneSegment
from tieredctl.errors import ExitCode
from tieredctl.formats.record_batches import ControlType
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import exit_code_of
from tieredctl.ports.layout import Part
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.records.served_spans import ServedSpan
from tieredctl.rlmm.cache import NOTHING_DELETED
from tieredctl.storage.memory import MemoryStore

MADE = transactions()
SEGMENT = OneSegment(MADE.metadata, MADE.parts)
INDEX = MADE.parts[Part.TRANSACTION_INDEX]
FIRST, LAST = MADE.metadata.start_offset, MADE.metadata.end_offset
OF_71 = [FIRST, FIRST + 1, FIRST + 7, FIRST + 8]
"""The first transaction of a producer, whose marker at FIRST + 9 is an abort; another producer's began at FIRST + 2."""


def committed(end: int | None = None) -> RecordRequest:
    return RecordRequest(end=end, isolation=Isolation.READ_COMMITTED, on_damage=OnDamage.SKIP)


def offsets_of(records: PartitionRecords) -> list[int]:
    return [offset for batch in records for offset in batch.column("offset").to_pylist()]


WHOLE = offsets_of(SEGMENT.read(committed()))


def altered_indexes() -> Iterator[OneSegment]:
    yield SEGMENT.without_part(Part.TRANSACTION_INDEX)
    for data in (b"", bytes(len(INDEX)), INDEX[:-34], INDEX[34:]):
        yield SEGMENT.with_part(Part.TRANSACTION_INDEX, data)
    for at in range(2, len(INDEX), 3):
        yield SEGMENT.with_part(Part.TRANSACTION_INDEX, bytes([*INDEX[:at], INDEX[at] ^ 1, *INDEX[at + 1 :]]))


def test_no_index_speaks_against_a_marker_that_follows_what_is_asked_for() -> None:
    for number, segment in enumerate(altered_indexes()):
        for end in range(FIRST + 1, LAST + 2, 1 if number < 5 else 7):
            records = segment.read(committed(end))

            assert offsets_of(records) == [offset for offset in WHOLE if offset < end], (number, end)
            assert records.findings == []


def test_nor_where_much_waits_for_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl.records.committed.MOST_WAITING_BYTES", 0)
    monkeypatch.setattr("tieredctl.records.segment_log.PIECE_BYTES", 2_500)
    for segment in (SEGMENT, SEGMENT.without_part(Part.TRANSACTION_INDEX)):
        records = segment.read(committed())

        assert offsets_of(records) == WHOLE
        assert (records.findings, records.open_transaction_from) == ([], LAST)


def test_nothing_waits_for_an_end_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieredctl.records.committed.MOST_WAITING_BYTES", 0)
    monkeypatch.setattr("tieredctl.records.segment_log.PIECE_BYTES", 2_500)
    records = SEGMENT.without_part(Part.PRODUCER_SNAPSHOT).read(committed())

    assert (offsets_of(records), records.open_transaction_from) == (WHOLE, LAST)


def test_captured_records_that_were_aborted_stay_so_without_indexes(captures: Path) -> None:
    with captured_records(captures / "kafka-4.3.1", "orders7") as opened:
        partition = opened.partitions[1]
        spans = [span._replace(segment=replace(span.segment, txn_idx_empty=True)) for span in partition.spans]
        whole = offsets_of(opened.read(partition, committed()))
        assert 45 not in whole

        for start in range(partition.end_offset or 0):
            request = replace(committed(start + 1), start=start)
            found = offsets_of(opened.read(replace(partition, spans=spans), request))
            assert found == [offset for offset in whole if offset == start]


def hiding_the_marker_of_71(segment: OneSegment = SEGMENT, offset: int = FIRST + 9) -> OneSegment:
    log = bytearray(segment.parts[Part.LOG])
    (marker,) = [one for one in MADE.batches if one.header.base_offset == offset]
    log[marker.end - 1] ^= 1
    return segment.with_part(Part.LOG, bytes(log))


def test_where_damage_hides_a_marker_a_sound_index_decides() -> None:
    records = hiding_the_marker_of_71().read(committed())

    assert offsets_of(records) == WHOLE
    assert [finding.code for finding in records.findings] == [FindingCode.BATCH_CORRUPT]


def test_where_damage_hides_a_marker_and_the_index_is_in_doubt_records_are_lost() -> None:
    for number, segment in enumerate(altered_indexes()):
        if number == 4:
            continue  # without the very entry, all that is left agrees
        records = hiding_the_marker_of_71(segment).read(committed())

        found = offsets_of(records)
        assert set(found) <= set(WHOLE), number
        assert not set(found) & set(OF_71), number
        lost = {offset for one in records.findings for offset in _offsets(one.evidence.get("offsets"))}
        assert set(WHOLE) - set(found) <= lost, number
        if number < 3:
            codes = {finding.code for finding in records.findings}
            assert FindingCode.UNREADABLE in codes
            assert {*OF_71, FIRST + 2} <= lost


def test_an_index_that_may_be_cut_before_an_entry_calls_nothing_committed() -> None:
    last_of_71 = [FIRST + 24, FIRST + 25, FIRST + 31, FIRST + 32]
    hidden = hiding_the_marker_of_71(offset=FIRST + 33)
    assert offsets_of(hidden.read(committed())) == WHOLE

    records = hidden.with_part(Part.TRANSACTION_INDEX, INDEX[:-34]).read(committed())

    found = offsets_of(records)
    assert not set(found) & set(last_of_71)
    lost = {offset for one in records.findings for offset in _offsets(one.evidence.get("offsets"))}
    assert {*last_of_71, *WHOLE} - set(found) <= lost
    assert exit_code_of(records.findings) is ExitCode.CORRUPTION


def test_lost_offsets_are_those_that_are_asked_for() -> None:
    damaged = hiding_the_marker_of_71(SEGMENT.without_part(Part.TRANSACTION_INDEX))
    for start, end in ((FIRST + 1, FIRST + 10), (FIRST + 7, FIRST + 8), (FIRST + 8, FIRST + 10)):
        records = damaged.read(replace(committed(end), start=start))

        found = set(offsets_of(records))
        lost = {offset for one in records.findings for offset in _offsets(one.evidence.get("offsets"))}
        assert lost == set(range(start, end)) - found, start
        assert records.lost_offsets == len(lost)


def test_what_damage_beyond_the_range_leaves_unknown_makes_the_answer_incomplete() -> None:
    records = hiding_the_marker_of_71(SEGMENT.without_part(Part.TRANSACTION_INDEX)).read(committed(FIRST + 2))

    assert (offsets_of(records), records.lost_offsets) == ([], 2)
    assert exit_code_of(records.findings) is ExitCode.INCOMPLETE


def _offsets(stated: object) -> range:
    return range(stated[0], stated[1] + 1) if isinstance(stated, list) else range(0)


def _in_three_segments() -> list[WrittenSegment]:
    """A transaction from the first to the last, which is aborted there; another in the middle one."""
    first = SegmentWriter(0)
    first.append(first.data(2, producer=71))
    middle = SegmentWriter(first.next_offset)
    middle.know_producers_of(first)
    made = [first.close()]
    middle.append(middle.data(3), middle.data(2, producer=72), middle.marker(72, ControlType.ABORT), middle.data(1))
    last = SegmentWriter(middle.next_offset)
    last.know_producers_of(middle)
    made.append(middle.close())
    last.append(last.data(1), last.data(1, producer=71), last.marker(71, ControlType.ABORT), last.data(1))
    return [*made, last.close()]


def _read(made: list[WrittenSegment], without: set[Part]) -> PartitionRecords:
    """Of the segments, of which the middle one lacks some parts."""
    store = MemoryStore()
    for number, one in enumerate(made):
        kept = {part: data for part, data in one.parts.items() if number != 1 or part not in without}
        for key, data in OneSegment(one.metadata, kept).store()._objects.items():
            store._objects[key] = data
    spans = [ServedSpan(one.metadata, one.metadata.start_offset, one.metadata.end_offset) for one in made]
    remote = RemotePartition(made[0].metadata.topic_id_partition, spans, None, NOTHING_DELETED)
    return PartitionRecords(remote, store, LAYOUT, committed())


def test_a_marker_decides_past_a_lost_log_that_did_not_end_the_transaction() -> None:
    records = _read(_in_three_segments(), {Part.LOG, Part.TRANSACTION_INDEX})

    assert offsets_of(records) == [9, 12]
    assert [finding.code for finding in records.findings] == [FindingCode.OBJECT_MISSING]


def test_without_log_and_snapshot_nobody_knows_which_marker_it_was() -> None:
    records = _read(_in_three_segments(), {Part.LOG, Part.PRODUCER_SNAPSHOT, Part.TRANSACTION_INDEX})

    assert offsets_of(records) == [9, 12]
    assert FindingCode.UNREADABLE in {finding.code for finding in records.findings}
