"""What no segment holds: a gap while the disk may have it, missing where it has not; and all of it as `verify` says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import DELETED, DELETING, PARTITION, copied, started, updated
from tieredctl.drawing.timeline import Part, Timeline
from tieredctl.model.events import MetadataEvent
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.findings import Severity
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.timeline.partition_timeline import KnownLog, partition_timeline
from tieredctl.ops.verification.lineage_check import EpochRanges, check_lineage
from tieredctl.rlmm.cache import DeletedOffsets
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

OFFSETS = st.integers(0, 40)
SEGMENTS = st.lists(st.tuples(OFFSETS, OFFSETS, st.integers(0, 2)), max_size=8)
"""First and last offset, and leader epoch."""


def metadata_of(events: Sequence[MetadataEvent]) -> ReplayedMetadata:
    return replayed(EventStream(EventsInMemory(events)))


def drawn(events: Sequence[MetadataEvent], log: KnownLog | None = None) -> Timeline:
    return partition_timeline(metadata_of(events), PARTITION, log).timeline


def log_of(local_start: int, *, start: int | None = 0, end: int = 100) -> KnownLog:
    return KnownLog(((0, 0),), local_start, start, end)


def offsets(timeline: Timeline, *parts: Part) -> set[int]:
    pairs = (pair for part in parts for pair in timeline.of(part).pairs())
    return {offset for first, last in pairs for offset in range(first, last + 1)}


HOLED = [*copied(1, 0, 9), *copied(2, 20, 29)]


DELETION = [updated(1, DELETING), updated(1, DELETED)]


def test_what_no_segment_holds_is_a_gap_while_the_disk_may_have_it_and_missing_where_it_has_not() -> None:
    deleted = [*copied(1, 0, 9), *DELETION, *copied(2, 10, 19)]
    failed = [started(1, 0, 9), *DELETION, *copied(2, 10, 19)]
    cases: dict[str, tuple[Timeline, dict[Part, list[tuple[int, int]]]]] = {
        "between copies": (drawn(HOLED), {Part.GAP: [(10, 19)]}),
        "below what the disk has": (drawn(HOLED, log_of(15)), {Part.MISSING: [(10, 14)], Part.GAP: [(15, 19)]}),
        "between the last copy and the disk": (drawn(HOLED, log_of(35, start=20)), {Part.MISSING: [(30, 34)]}),
        "below the log start": (drawn(HOLED, log_of(30, start=20)), {}),
        "deleted while the log start lags": (drawn(deleted, log_of(20)), {}),
        "a failed copy that was removed excuses nothing": (drawn(failed, log_of(20)), {Part.MISSING: [(0, 9)]}),
    }
    for name, (timeline, amiss) in cases.items():
        found = {part: timeline.of(part).pairs() for part in (Part.MISSING, Part.GAP) if part in timeline.parts}
        assert found == amiss, name
    assert drawn(HOLED, log_of(15)).of(Part.LOCAL).pairs() == [(15, 99)]


def test_metadata_that_was_not_all_read_has_unknown_offsets_and_no_gap() -> None:
    timeline = partition_timeline(metadata_of(HOLED), PARTITION, log_of(15), is_complete=False).timeline

    assert timeline.of(Part.UNKNOWN).pairs() == [(10, 14), (15, 19)]
    assert Part.GAP not in timeline.parts
    assert Part.MISSING not in timeline.parts


def test_copies_of_another_line_of_leaders_are_not_reached() -> None:
    timeline = drawn([*copied(1, 0, 9), *copied(2, 10, 19, {1: 10})], KnownLog(((0, 0), (2, 10)), 10, 0, 20))

    assert timeline.of(Part.COPIED).pairs() == [(0, 9)]
    assert timeline.of(Part.UNREACHED).pairs() == [(10, 19)]


def test_a_copy_that_never_ended_is_seen_over_the_one_that_did() -> None:
    timeline = drawn([*copied(1, 0, 9), started(2, 0, 9)])

    assert timeline.parts[Part.COPYING].segments == 1
    assert Part.OVERLAP not in timeline.parts


@settings(max_examples=examples(50))
@given(SEGMENTS, OFFSETS, st.one_of(st.none(), OFFSETS), st.booleans())
def test_gaps_and_overlaps_are_those_that_verify_reports(
    segments: list[tuple[int, int, int]], local_start: int, log_start: int | None, is_log_known: bool
) -> None:
    events = []
    for number, (one, other, epoch) in enumerate(segments, 1):
        first, last = sorted((one, other))
        events += copied(number, first, last, {epoch: first})
    metadata = metadata_of(events)
    rows = metadata.rows_of(PARTITION)
    ranges = EpochRanges.of(metadata, rows)
    lineage = ranges.joined()
    start = None if log_start is None else min(log_start, local_start)
    log = KnownLog(lineage, local_start, start, 50) if is_log_known else None
    local = LocalLog(lineage, local_start, start) if is_log_known else None

    timeline = partition_timeline(metadata, PARTITION, log).timeline

    reached = max((max(one, other) for one, other, _ in segments), default=None)
    found = check_lineage(PARTITION, ranges, lineage, local, copied=lambda: reached, deleted=DeletedOffsets)
    said = defaultdict[AnyFindingCode, set[int]](set)
    for finding in found:
        offsets_amiss = finding.evidence["offsets"]
        if finding.code is FindingCode.OFFSET_OVERLAP or finding.severity is not Severity.INFO:
            assert isinstance(offsets_amiss, list)
            first, last = offsets_amiss
            said[finding.code] |= set(range(first, last + 1))
    assert offsets(timeline, Part.GAP, Part.MISSING) == (
        said[FindingCode.OFFSET_GAP] | said[FindingCode.LOCAL_REMOTE_GAP]
    )
    assert bool(offsets(timeline, Part.OVERLAP)) == bool(said[FindingCode.OFFSET_OVERLAP])
    assert said[FindingCode.OFFSET_OVERLAP] <= offsets(timeline, Part.OVERLAP)
