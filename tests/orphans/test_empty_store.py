"""A store in which nothing was listed: is it the one that the metadata is about?"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.faults.cluster import LAYOUT
from tests.metadata_logs import TOPIC_ID
from tieredctl.errors import TieredctlError
from tieredctl.ops.orphans.overlap import demand_any_object
from tieredctl.storage.memory import MemoryStore

DAY_MS = 86_400_000
LISTED_MS = 20_000 * DAY_MS
OTHER_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"


@dataclass
class Known:
    """What is known of topics; of others nothing."""

    live: dict[str, bool]

    def is_live(self, topic_id: str) -> bool | None:
        return self.live.get(topic_id)

    def describe(self) -> None:
        return None


def test_segments_of_a_topic_that_may_be_there_are_promised() -> None:
    for live in ({}, {TOPIC_ID: True}, {TOPIC_ID: False}):
        with pytest.raises(TieredctlError) as refused:
            demand_any_object(MemoryStore(), LAYOUT, {TOPIC_ID, OTHER_TOPIC_ID}, Known(live), LISTED_MS)
        assert refused.value.code == "no-overlap", live


def test_nothing_is_promised_of_topics_that_are_gone_nor_of_a_store_with_an_object() -> None:
    for with_segments in (set[str](), {TOPIC_ID}):
        demand_any_object(MemoryStore(), LAYOUT, with_segments, Known({TOPIC_ID: False}), LISTED_MS)
    for key, modified_ms in (("t-0-x/the first copy", LISTED_MS), (".tieredctl/quarantine/one", 1)):
        store = MemoryStore()
        store.put(key, b"12345", modified_ms)
        demand_any_object(store, LAYOUT, {TOPIC_ID}, Known({}), LISTED_MS)


def test_a_listing_without_what_was_there_is_none() -> None:
    store = MemoryStore()
    store.put(".tieredctl/quarantine/one", b"12345", 1)
    store.put("t-0-x/a copy", b"12345", LISTED_MS - DAY_MS)

    with pytest.raises(TieredctlError) as refused:
        demand_any_object(store, LAYOUT, {TOPIC_ID}, Known({}), LISTED_MS)

    assert refused.value.code == "unreadable"
