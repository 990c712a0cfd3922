"""A topic that was deleted and made again: which of its ids is meant."""

from __future__ import annotations

import pytest

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import PARTITION, TOPIC_ID
from tests.refusals import refused_with
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import partition_of_today

WHOLE = EventStream(EventsInMemory([]))
AGAIN = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "t", 0)


def chosen(selection: Selection, today: str | None) -> TopicIdPartition:
    return partition_of_today([PARTITION, AGAIN], selection, WHOLE, lambda _: today)


@pytest.mark.parametrize("today", [PARTITION, AGAIN])
def test_the_clusters_topic_of_today_is_meant(today: TopicIdPartition) -> None:
    assert chosen(Selection.of("t", None, 0), today.topic_id) == today


def test_an_id_that_was_named_is_meant_whatever_there_is_today() -> None:
    assert chosen(Selection.of("t", TOPIC_ID, 0), AGAIN.topic_id) == PARTITION


@pytest.mark.parametrize(("today", "code"), [(None, "ambiguous-topic"), ("rTFWgbQKRvehFNx-PhMpIg", "unknown-topic")])
def test_where_nobody_tells_or_today_has_no_event_nothing_is_guessed(today: str | None, code: str) -> None:
    with refused_with(code):
        chosen(Selection.of("t", None, 0), today)
