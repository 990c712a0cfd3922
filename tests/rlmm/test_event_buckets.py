"""Segments have the same states into however many parts and buckets their events are put."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.rlmm.test_segment_states import EVENTS, by_columns
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.orphans.segment_states import SegmentStates


def rows(states: SegmentStates) -> dict[str, tuple[int, ...]]:
    columns = (states.states, states.owners, states.start_offsets, states.metadata_offsets, states.superseded)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(states.ids.to_pylist(), numbers, strict=True))


@settings(max_examples=examples(100))
@given(EVENTS, st.integers(1, 10))
def test_many_buckets_say_what_one_says(events: list[MetadataEvent], part_events: int) -> None:
    together = by_columns(events)

    with (
        patch("tieredctl.rlmm.event_columns._PART_EVENTS", part_events),
        patch("tieredctl.rlmm.event_columns._BUCKET_EVENTS", 1),
    ):
        apart = by_columns(events)

    assert rows(apart) == rows(together)
