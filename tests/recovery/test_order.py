"""Whatever leaders copied: told of those copies alone that recovery keeps, a broker answers as before."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.cache_by_events import CacheByEvents, said_once
from tests.metadata_logs import started
from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.metadata_recovery.event_rebuilding import epochs_within
from tieredctl.ops.metadata_recovery.segment_judgement import finished_event, served
from tieredctl.rlmm.cache import RemoteLogMetadataCache

OFFSETS, EPOCHS = 40, 3


@st.composite
def copies(draw: st.DrawFn) -> list[RemoteLogSegmentMetadata]:
    """Copies of one partition in the order in which leaders finished them: each continues after the last or begins
    earlier, where another leader rolled its segments elsewhere, and reaches at least as far."""
    later_epochs = sorted(draw(st.lists(st.integers(1, OFFSETS - 1), max_size=EPOCHS - 1, unique=True)))
    lineage = [EpochEntry(epoch, offset) for epoch, offset in enumerate([0, *later_epochs])]
    made: list[RemoteLogSegmentMetadata] = []
    highest = -1
    for number in range(draw(st.integers(0, 10))):
        start = draw(st.integers(0, min(highest + 1, OFFSETS - 1)))
        end = draw(st.integers(max(start, highest), OFFSETS - 1))
        made.append(started(number, start, end, dict(epochs_within(lineage, start, end))))
        highest = end
    return made


def told(segments: Sequence[RemoteLogSegmentMetadata]) -> RemoteLogMetadataCache:
    cache = CacheByEvents()
    for number, metadata in enumerate(segments):
        cache.add(said_once(metadata, 0, 2 * number))
        cache.update(finished_event(metadata, 0), 0, 2 * number + 1)
    return cache


def answers(cache: RemoteLogMetadataCache) -> dict[tuple[int, int], str | None]:
    """Which segment serves each offset of each epoch."""
    places = [(epoch, offset) for epoch in range(EPOCHS) for offset in range(OFFSETS)]
    found = {place: cache.remote_log_segment_metadata(*place) for place in places}
    return {place: None if known is None else known.metadata.segment_id for place, known in found.items()}


@given(copies())
def test_a_broker_serves_every_offset_from_the_segment_that_served_it_before(
    history: list[RemoteLogSegmentMetadata],
) -> None:
    kept = served(history)
    left = [one for one in history if one.segment_id in kept]

    assert answers(told(left)) == answers(told(history))
