"""Partitions that are replayed in buckets, each apart and in any order, have the states that one replay gives."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tieredctl_spark.arrow.state_blocks import StateBlock
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA, STATE_SCHEMA, replayed_states

from tests.event_histories import TEMPERS, HistoryInMemory, Temper, random_histories
from tests.replayed_states import event_row, in_buckets, states_of_rows, states_of_stream
from tieredctl.ops.metadata.event_stream import EventStream


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_buckets_have_the_states_of_one_replay(temper: Temper) -> None:
    source = random.Random(f"states {temper}")
    removed = claimed = 0
    for history in random_histories("states", temper, 4_000):
        count = source.choice([1, 2, 5])
        buckets = in_buckets(map(event_row, history), EVENT_SCHEMA, count, source, "topicId", "partition")

        segments = pa.concat_tables(StateBlock.of(replayed_states(one)).rows() for one in buckets)

        expected = states_of_stream(EventStream(HistoryInMemory(history)))
        assert segments.schema == STATE_SCHEMA
        assert states_of_rows(segments) == expected
        removed += any(removal is not None for *_, removal, _ in expected.values())
        claimed += len(set(segments["segmentId"].to_pylist())) < len(segments)
    # The histories are worth it.
    assert removed
    assert claimed
