"""A log with damage everywhere gets the same findings as one whose stretches are checked one by one, in short."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.metadata_logs import started
from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.record_batches import CRC_FROM, LENGTH_AT, Record, encode_batch
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.verification.index_check import OffsetIndexCheck, TimeIndexCheck, UnindexedTail
from tieredctl.ops.verification.log_check import LogCheck
from tieredctl.ops.verification.log_findings import report_log
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.small_parts import ProducersCheck

MANY = 3_000
FIRST_OFFSET = 5


def batch(offset: int, producer: int = 1) -> bytes:
    record = Record(offset, 1_000 + offset, None, b"value")
    return encode_batch([record], partition_leader_epoch=0, producer_id=producer, producer_epoch=0)


def flipped(made: bytes, at: int = CRC_FROM + 5) -> bytes:
    return made[:at] + bytes([made[at] ^ 0x10]) + made[at + 1 :]


FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda made: made,
    "a flipped byte": flipped,
    "an impossible length": lambda made: flipped(made, LENGTH_AT),
    "its end cut off": lambda made: made[: len(made) // 2],
    "another base offset": lambda made: flipped(made, 7),
    "twice": lambda made: made + made,
}


def metadata_of(batches: int, size: int) -> RemoteLogSegmentMetadata:
    end = FIRST_OFFSET + batches - 1
    return started(1, FIRST_OFFSET, end, max_timestamp_ms=1_000 + end, segment_size_in_bytes=size)


def test_a_base_offset_altered_into_another_batch_accuses_no_time_index() -> None:
    def batch_of(offset: int, records: int) -> bytes:
        made = [Record(one, 1_000 + offset, None, b"value") for one in range(offset, offset + records)]
        return encode_batch(made, partition_leader_epoch=0, producer_id=1, producer_epoch=0)

    lost = batch_of(11, 1)
    log = batch_of(5, 3) + batch_of(8, 3) + (6).to_bytes(8, "big") + lost[8:] + batch_of(12, 1)
    lasts, firsts = np.array([7, 10, 11, 12]), np.array([5, 8, 11, 12])
    index = TimeIndexCheck(TimeIndexColumns(firsts + 1_000, lasts - FIRST_OFFSET), FIRST_OFFSET)

    found = LogCheck(metadata_of(8, len(log)), None, index).run([log], len(log))

    assert found.misplaced
    assert index.finish(found.exemptions).altered is None


def told_of(log: bytes, whole: list[bytes], cuts: list[int]) -> list[Any]:
    """All that a check of the log knows, and the verdicts on the indexes that the whole log has."""
    metadata = metadata_of(len(whole), sum(map(len, whole)))
    relative, positions = np.arange(len(whole)), np.cumsum([0, *map(len, whole)])[:-1]
    offset_index = OffsetIndexCheck(OffsetIndexColumns(relative[1::2], positions[1::2]), FIRST_OFFSET)
    time_index = TimeIndexCheck(TimeIndexColumns(relative + 1_000 + FIRST_OFFSET, relative), FIRST_OFFSET)
    tail = UnindexedTail(offset_index.last_position // 2, FIRST_OFFSET + len(whole) // 2, 100)
    producers = ProducersCheck(metadata.start_offset, metadata.end_offset)
    check = LogCheck(metadata, offset_index, time_index, tail, producers=producers)
    bounds = [0, *sorted({cut for cut in cuts if cut < len(log)}), len(log)]
    facts = check.run([log[first:end] for first, end in pairwise(bounds)], len(log))
    verdicts = [offset_index.finish(facts.exemptions), time_index.finish(facts.exemptions)]
    facts.exemptions.positions.sort()
    facts.exemptions.offsets.sort()
    return [facts, *verdicts, tail.latest_at, tail.unindexed_bytes, producers.first_wrong([], 1 << 50)]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from(list(FAULTS)), min_size=1, max_size=20), st.lists(st.integers(1, 3_000), max_size=5))
def test_the_same_as_stretch_by_stretch(faults: list[str], cuts: list[int]) -> None:
    whole = [batch(FIRST_OFFSET + number, number % 2) for number in range(len(faults))]
    log = b"".join(FAULTS[fault](made) for fault, made in zip(faults, whole, strict=True))

    together = told_of(log, whole, cuts)
    with patch("tieredctl.ops.verification.log_check._BATCHES_AT_ONCE", 1):
        stretch_by_stretch = told_of(log, whole, cuts)

    assert together == stretch_by_stretch


def test_each_damage_has_the_offsets_that_its_neighbours_leave() -> None:
    whole = [batch(FIRST_OFFSET + number) for number in range(7)]
    damaged = {0, 2, 3, 6}
    log = b"".join(flipped(made) if number in damaged else made for number, made in enumerate(whole))

    facts = LogCheck(metadata_of(len(whole), len(log))).run([log], len(log))

    offsets = [(one.first_offset - FIRST_OFFSET, one.last_offset - FIRST_OFFSET) for one in facts.corrupt]
    assert offsets == [(0, 0), (2, 3), (6, 6)]


def test_what_is_reported_of_very_many_damages_is_short() -> None:
    whole = [batch(FIRST_OFFSET + number) for number in range(MANY)]
    log = b"".join(flipped(made) if number % 2 else made for number, made in enumerate(whole))
    metadata = metadata_of(len(whole), len(log))
    facts = LogCheck(metadata).run([log], len(log))
    findings = SegmentFindings(metadata, {})

    report_log(len(log), facts, findings)

    assert len(facts.corrupt) == MANY // 2
    assert {finding.code for finding in findings.found} == {FindingCode.BATCH_CORRUPT}
    assert len(findings.found) == 20
    assert f"{MANY // 2 - 20} more stretches are damaged" in findings.found[-1].message
