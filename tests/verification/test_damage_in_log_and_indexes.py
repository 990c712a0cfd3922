"""A damaged batch hides no damage of the indexes next to the log.

Only an entry for the damaged batch itself may escape, as long as it lies between the entries around it: nothing else is
left to hold it against.
"""

from __future__ import annotations

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory, checked, made_of
from tests.faults.segment_writer import WrittenBatch, WrittenSegment
from tests.shares import divided
from tests.verification.test_altered_indexes import MISLEADS
from tieredctl.formats.record_batches import HEADER_BYTES
from tieredctl.formats.segment_parts import offset_index_entries, time_index_entries
from tieredctl.ops.healing.examination import Condition
from tieredctl.ops.healing.index_plan import plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.layout import Part

INTERVAL = 4_096
each_index = pytest.mark.parametrize("part", MISLEADS)


def hit_batches(segment: WrittenSegment) -> list[WrittenBatch]:
    count = len(segment.batches)
    return [segment.batches[row] for row in sorted({0, count // 3, 2 * count // 3, count - 1})]


def with_bad_batch(segment: WrittenSegment, batch: WrittenBatch) -> bytes:
    log = bytearray(segment.parts[Part.LOG])
    log[batch.position + HEADER_BYTES] ^= 1
    return bytes(log)


def found_parts(segment: WrittenSegment, batch: WrittenBatch, part: Part, index: bytes) -> list[str]:
    report = checked(segment, {Part.LOG: with_bad_batch(segment, batch), part: index})
    return sorted(str(finding.evidence["part"]) for finding in report.findings)


@each_index
def test_a_sound_index_of_a_damaged_log_is_sound(segment: WrittenSegment, part: Part) -> None:
    for batch in segment.batches:
        assert found_parts(segment, batch, part, segment.parts[part]) == ["log"]


def test_a_time_index_whose_end_is_missing(segment: WrittenSegment) -> None:
    index = segment.parts[Part.TIME_INDEX]
    for batch in segment.batches if len(segment.batches) > 1 else ():
        for size in range(0, len(index), 12):
            found = found_parts(segment, batch, Part.TIME_INDEX, index[:size])
            assert found == ["log", "time-index"], (batch.position, size)


@each_index
def test_an_entry_that_misleads_look_ups(segment: WrittenSegment, part: Part) -> None:
    escaped = judged = 0
    index, (entry_bytes, misleads) = segment.parts[part], MISLEADS[part]
    for batch in hit_batches(segment):
        for position in divided(range(len(index))):
            altered = bytearray(index)
            altered[position] ^= 1 << position % 8
            if not misleads(segment, bytes(altered)):
                continue
            judged += 1
            if found_parts(segment, batch, part, bytes(altered)) == ["log"]:
                escaped += 1
                assert names_batch(segment, batch, part, bytes(altered), position // entry_bytes), (batch, position)
            else:
                assert found_parts(segment, batch, part, bytes(altered)) == sorted(["log", part])
    assert escaped <= judged / 4


def names_batch(segment: WrittenSegment, batch: WrittenBatch, part: Part, index: bytes, row: int) -> bool:
    """Whether an entry is that of a batch, as it is or as it was."""
    header = batch.header
    rows = []
    for data in (index, segment.parts[part]):
        if part is Part.OFFSET_INDEX:
            offsets = offset_index_entries(data)
            rows.append((int(offsets.relative_offsets[row]), int(offsets.positions[row])))
        else:
            times = time_index_entries(data)
            rows.append((int(times.relative_offsets[row]), -1))
    start = segment.metadata.start_offset
    return any(
        header.base_offset <= start + offset <= header.last_offset or batch.position <= position < batch.end
        for offset, position in rows
    )


@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_recovery_calls_a_cut_time_index_damaged_though_the_log_is_too(
    long_segment: WrittenSegment, kept: float
) -> None:
    metadata, index = long_segment.metadata, long_segment.parts[Part.TIME_INDEX]
    cut = index[: int(len(index) // 12 * kept) * 12]
    log = with_bad_batch(long_segment, long_segment.batches[1])
    damaged = made_of([long_segment]).with_part(metadata, Part.LOG, log).with_part(metadata, Part.TIME_INDEX, cut)
    segment = SegmentsOnce.of(EventStream(EventsInMemory(damaged.events))).finished(metadata.segment_id)

    plan = plan_index_recovery(segment, damaged.store(), LAYOUT, INTERVAL)

    assert plan.log_damage is not None
    assert [one.found.part for one in plan.parts if one.found.condition is not Condition.SOUND] == [Part.TIME_INDEX]
