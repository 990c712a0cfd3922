"""What local retention deletes from a disk: as UnifiedLog.deleteOldSegments decides."""

from __future__ import annotations

from typing import Any

from tieredctl.model.local_log import LeaderLog, LocalSegment
from tieredctl.rlmm.remote_retention import DueSegments, LocalBreach, LocalSegments, Retention

NOW_MS = 1_000_000
SIZE = 100
UNLIMITED = Retention(-1, -1)
SEGMENTS = [LocalSegment(base, SIZE, NOW_MS - age) for base, age in ((0, 400), (10, 300), (20, 200), (30, 100))]
"""The last one is active; the log ends at 40."""


def due(
    retention: Retention, *, remote: int | None = 29, log_start: int = 0, segments: Any = None, **options: bool
) -> DueSegments:
    log = LeaderLog(log_start, log_start, 40, [(0, 0)])
    return LocalSegments(SEGMENTS if segments is None else segments, log, remote, **options).due(retention, NOW_MS)


def starts(found: Any) -> list[int]:
    return [one.segment.base_offset for one in found]


def test_without_a_limit_nothing_goes() -> None:
    assert due(UNLIMITED) == DueSegments([], [])


def test_the_oldest_go_while_more_than_the_limit_would_be_left() -> None:
    found = due(Retention(-1, 250))

    assert starts(found.now) == [0]
    assert found.now[0].breach is LocalBreach.LOCAL_RETENTION_BYTES
    assert found.now[0].end_offset == 9


def test_a_limit_that_is_met_exactly_is_kept_to() -> None:
    assert starts(due(Retention(-1, 200)).now) == [0, 10]


def test_by_time_those_go_that_are_older_than_the_limit() -> None:
    assert starts(due(Retention(300, -1)).now) == [0]  # one that is as old as the limit stays
    assert starts(due(Retention(299, -1)).now) == [0, 10]


def test_time_continues_where_size_stopped() -> None:
    found = due(Retention(199, 300))

    assert [one.breach.value for one in found.now] == [
        "local-retention-bytes",
        "local-retention-ms",
        "local-retention-ms",
    ]


def test_what_is_not_in_remote_storage_stays_and_is_reported_separately() -> None:
    found = due(Retention(199, -1), remote=9)

    assert starts(found.now) == [0]
    assert starts(found.once_tiered) == [10, 20]


def test_a_segment_that_is_remote_but_for_its_last_offset_stays() -> None:
    assert starts(due(Retention(199, -1), remote=18).now) == [0]


def test_nothing_goes_where_nothing_is_remote() -> None:
    assert starts(due(Retention(1, -1), remote=None).now) == []


def test_the_active_segment_goes_after_its_copy() -> None:
    found = due(Retention(99, -1))

    assert starts(found.now) == [0, 10, 20]
    assert starts(found.once_tiered) == [30]


def test_an_empty_active_segment_stays() -> None:
    segments = [*SEGMENTS, LocalSegment(40, 0, 0)]

    found = due(Retention(1, -1), remote=39, segments=segments)

    assert starts(found.now) == [0, 10, 20, 30]
    assert starts(found.once_tiered) == []


def test_what_lies_below_the_log_start_goes_though_it_is_not_remote() -> None:
    found = due(UNLIMITED, remote=None, log_start=25)

    assert starts(found.now) == [0, 10]
    assert {one.breach for one in found.now} == {LocalBreach.LOG_START_OFFSET}


def test_without_copies_nothing_waits_for_them() -> None:
    assert starts(due(Retention(199, -1), remote=None, waits_for_copies=False).now) == [0, 10, 20]
