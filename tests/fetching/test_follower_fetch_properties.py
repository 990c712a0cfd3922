"""Whatever a leader's log is like, a follower's way ends, and ends where the leader has records for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.partition_states import remote
from tieredctl.model.local_log import LeaderLog
from tieredctl.rlmm.consumer_fetch import ConsumerFetchOutcome, consumer_fetch
from tieredctl.rlmm.follower_fetch import FollowerLog, follower_fetch, truncation_offset

OFFSETS = st.integers(0, 30)


@st.composite
def lineages(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """Leader epochs and their first offsets, both rising; the first is 0."""
    starts = sorted(draw(st.sets(OFFSETS, max_size=4)) | {0})
    epochs = sorted(draw(st.sets(st.integers(0, 9), min_size=len(starts), max_size=len(starts))))
    return tuple(zip(epochs, starts, strict=True))


@st.composite
def leaders(draw: st.DrawFn) -> LeaderLog:
    log_start, local_start, end = sorted(draw(st.tuples(OFFSETS, OFFSETS, OFFSETS)))
    return LeaderLog(log_start, local_start, end, draw(lineages()), draw(st.none() | OFFSETS))


SEGMENTS = st.lists(st.tuples(OFFSETS, st.integers(0, 9), lineages()), max_size=5)


def caches(segments: list[tuple[int, int, tuple[tuple[int, int], ...]]]) -> list[tuple[int, int, dict[int, int]]]:
    """Segments whose epochs are those of a lineage within their offsets."""
    found = []
    for first, more, lineage in segments:
        last = first + more
        before = [epoch for epoch, start in lineage if start <= first][-1]
        within = {epoch: start for epoch, start in lineage if first < start <= last}
        found.append((first, last, {before: first} | within))
    return found


@given(leaders(), SEGMENTS, OFFSETS, lineages(), st.booleans())
def test_a_follower_fetches_what_is_local_on_the_leader_or_waits(
    leader: LeaderLog,
    segments: list[tuple[int, int, tuple[tuple[int, int], ...]]],
    end_offset: int,
    lineage: tuple[tuple[int, int], ...],
    from_last_tiered_offset: bool,
) -> None:
    follower = FollowerLog(end_offset, tuple(entry for entry in lineage if entry[1] < end_offset))

    way = follower_fetch(leader, remote(*caches(segments)), follower, from_last_tiered_offset=from_last_tiered_offset)

    assert (way.fetch_offset is None) == (way.wait is not None)
    if way.fetch_offset is not None:
        assert leader.local_log_start_offset <= way.fetch_offset <= leader.end_offset


@given(leaders(), OFFSETS, lineages())
def test_a_follower_never_truncates_to_beyond_its_end(
    leader: LeaderLog, end_offset: int, lineage: tuple[tuple[int, int], ...]
) -> None:
    follower = FollowerLog(end_offset, tuple(entry for entry in lineage if entry[1] < end_offset))

    assert 0 <= truncation_offset(leader, follower) <= end_offset


@given(leaders(), SEGMENTS, OFFSETS)
def test_a_consumer_reads_remotely_only_what_the_segment_holds(
    leader: LeaderLog, segments: list[tuple[int, int, tuple[tuple[int, int], ...]]], offset: int
) -> None:
    read = consumer_fetch(leader, remote(*caches(segments)), offset)

    assert (read.outcome is ConsumerFetchOutcome.REMOTE_READ) == (read.segment is not None)
    if read.segment:
        assert read.segment.metadata.start_offset <= offset <= read.segment.metadata.end_offset
        assert offset < leader.local_log_start_offset
