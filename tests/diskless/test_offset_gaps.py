"""Which offsets are lost is told exactly, whichever batches of whichever partitions are lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_inkless.diskless.control_plane import BATCHES, FILES, LOGS, PRODUCERS, ControlPlaneTables
from tieredctl_inkless.ops.diskless.batch_rows import numbered
from tieredctl_inkless.ops.diskless.offset_check import check_offsets

BYTES = 100


def topic_id(number: int) -> bytes:
    # The first bit is that of a sign in Java, and is not in PostgreSQL.
    return bytes([number % 2 << 7, *bytes(14), number])


@st.composite
def partitions(draw: st.DrawFn) -> list[tuple[int, int, list[tuple[int, int, bool]]]]:
    """Log starts, diskless starts, and batches from there on, each with whether it is still there."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, 50))
        lengths = draw(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=8))
        first_inside = draw(st.integers(0, lengths[0][0] - 1)) if lengths else 0
        batches, base = [], start
        for length, is_there in lengths:
            batches.append((base, base + length - 1, is_there))
            base += length
        found.append((start + first_inside, draw(st.integers(0, start)), batches))
    return found


def tables(made: list[tuple[int, int, list[tuple[int, int, bool]]]]) -> ControlPlaneTables:
    logs: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for number, (log_start, diskless_start, spans) in enumerate(made):
        there = [(base, last) for base, last, is_there in spans if is_there]
        place: dict[str, Any] = {"topicId": topic_id(number // 2), "partition": number % 2}
        end = spans[-1][1] + 1 if spans else log_start
        log = {"logStartOffset": log_start, "highWatermark": end, "byteSize": BYTES * len(there)}
        logs.append({**place, **log, "topic": f"t{number}", "disklessStartOffset": diskless_start})
        for base, last in there:
            span = {"baseOffset": base, "lastOffset": last, "byteOffset": 0, "byteSize": BYTES}
            rows.append({**place, **span, "batchId": len(rows), "fileId": 1, "magic": 2, "timestampType": 0})
    rows.sort(key=lambda row: (row["topicId"], row["partition"], row["lastOffset"]))
    logs.sort(key=lambda log: (log["topicId"], log["partition"]))
    for row in rows:
        row |= {"logAppendTimestamp": 0, "batchMaxTimestamp": 0}
    batches, partitions = pa.Table.from_pylist(rows, BATCHES), pa.Table.from_pylist(logs, LOGS)
    return ControlPlaneTables(27, 0, FILES.empty_table(), batches, partitions, PRODUCERS.empty_table())


@given(partitions())
def test_exactly_the_lost_offsets_are_reported(made: list[tuple[int, int, list[tuple[int, int, bool]]]]) -> None:
    read = tables(made)
    numbers, rows, _ = numbered(read)

    findings = list(check_offsets(read, rows, numbers, rows.ids[:0]))

    reported = {(f.evidence["topic"], at) for f in findings for at in range(*_half_open(f.evidence["offsets"]))}
    lost = {
        (f"t{number}", at)
        for number, (log_start, _, batches) in enumerate(made)
        for base, last, is_there in batches
        if not is_there
        for at in range(max(base, log_start), last + 1)
    }
    assert {str(finding.code) for finding in findings} <= {"offset-gap"}
    assert reported == lost


def _half_open(offsets: object) -> tuple[int, int]:
    assert isinstance(offsets, list)
    return offsets[0], offsets[1] + 1
