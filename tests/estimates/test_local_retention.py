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


def test_what_is_due_by_the_limits_and_by_what_is_remote() -> None:
    none = Retention(1, -1)
    by_time, with_empty_active = Retention(199, -1), [*SEGMENTS, LocalSegment(40, 0, 0)]
    cases = {
        "without a limit nothing goes": (due(UNLIMITED), [], []),
        "the oldest go while more than the limit would be left": (due(Retention(-1, 250)), [0], []),
        "a limit that is met exactly is kept to": (due(Retention(-1, 200)), [0, 10], []),
        "one that is as old as the limit stays": (due(Retention(300, -1)), [0], []),
        "those go that are older than the limit": (due(Retention(299, -1)), [0, 10], []),
        "what is not remote stays and is reported separately": (due(by_time, remote=9), [0], [10, 20]),
        "remote but for its last offset": (due(by_time, remote=18), [0], [10, 20]),
        "nothing goes where nothing is remote": (due(none, remote=None), [], [0, 10, 20, 30]),
        "the active segment goes after its copy": (due(Retention(99, -1)), [0, 10, 20], [30]),
        "an empty active one stays": (due(none, remote=39, segments=with_empty_active), [0, 10, 20, 30], []),
        "without copies nothing waits": (due(by_time, remote=None, waits_for_copies=False), [0, 10, 20], []),
    }
    for name, (found, now, once_tiered) in cases.items():
        assert (starts(found.now), starts(found.once_tiered)) == (now, once_tiered), name


def test_what_goes_by_size_has_its_end_and_time_continues_where_size_stopped() -> None:
    (oldest,) = due(Retention(-1, 250)).now
    found = due(Retention(199, 300))

    assert (oldest.breach, oldest.end_offset) == (LocalBreach.LOCAL_RETENTION_BYTES, 9)
    assert [one.breach.value for one in found.now] == ["local-retention-bytes", *["local-retention-ms"] * 2]


def test_what_lies_below_the_log_start_goes_though_it_is_not_remote() -> None:
    found = due(UNLIMITED, remote=None, log_start=25)

    assert starts(found.now) == [0, 10]
    assert {one.breach for one in found.now} == {LocalBreach.LOG_START_OFFSET}
