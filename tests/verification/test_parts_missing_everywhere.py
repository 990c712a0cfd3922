"""A part that very many segments lack is asked for by listing, and is still not reported where it is in the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

SEGMENTS = 300
MOST_ASKED_BY_NAME = 10
PART = Part.LEADER_EPOCH
EVENTS = EventsInMemory([event for n in range(SEGMENTS) for event in copied(n + 1, n * 10, n * 10 + 9)])


class Counting(MemoryStore):
    """Notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.listings: list[str] = []
        self.asked_by_name = 0

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        self.listings.append(prefix)
        before = self.asked_by_name
        listed = [*super().list(prefix, start_after)]
        self.asked_by_name = before  # which is how objects in memory are listed
        yield from listed

    def head(self, key: str) -> StoredObject | None:
        self.asked_by_name += 1
        return super().head(key)


class Lagging(Counting):
    """Lists nothing of a part for a while, which is in the store all the same."""

    listings_without = 1

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        lags = len(self.listings) < self.listings_without
        yield from (one for one in super().list(prefix, start_after) if not lags or one.key not in KEYS[PART])


class LaggingForLong(Lagging):
    listings_without = 1 << 10


class ListingOnce(Counting):
    """Refuses to list again."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        if self.listings:
            raise TieredctlError(ErrorCode.PATH_FORBIDDEN, "Not again.")
        yield from super().list(prefix, start_after)


def keys_of(part: Part) -> list[str]:
    at = PARTITION.topic, PARTITION.topic_id, PARTITION.partition
    segments = (ExplainedKey(*at, n * 10, segment_id(n + 1), part) for n in range(SEGMENTS))
    return [LAYOUT.promised_objects(one)[part] for one in segments]


PROMISED = LAYOUT.promised_objects(ExplainedKey(PARTITION.topic, PARTITION.topic_id, 0, 0, segment_id(1), PART))
KEYS = {part: keys_of(part) for part in PROMISED}


def reported_missing(store: MemoryStore) -> list[str]:
    options = VerifyOptions(Level.LISTING, Clock(FIRST_TIMESTAMP_MS, 1 << 60))
    result = verify(EventStream(EVENTS), store, LAYOUT, LocalEngine(), options)
    assert {one.code.value for one in result.findings} <= {"object-missing"}
    assert result.segments == SEGMENTS
    return [str(one.evidence["key"]) for one in result.findings]


def fill(store: MemoryStore, *without: str) -> None:
    for part, keys in KEYS.items():
        for key in set(keys).difference(without):
            store.put(key, bytes(1000) if part is Part.LOG else b"", FIRST_TIMESTAMP_MS)


def test_one_listing_tells_that_all_segments_of_a_partition_lack_a_part() -> None:
    store = Counting()
    fill(store, *KEYS[PART])

    assert sorted(reported_missing(store)) == sorted(KEYS[PART])
    assert store.listings == ["", LAYOUT.partition_prefix(PARTITION)]
    assert store.asked_by_name < MOST_ASKED_BY_NAME


@pytest.mark.parametrize("kind", [Lagging, LaggingForLong])
def test_what_only_a_listing_lacks_is_not_missing(kind: type[Lagging]) -> None:
    store = kind()
    fill(store)

    assert reported_missing(store) == []


def test_each_is_asked_for_by_name_where_the_store_refuses_to_list_again() -> None:
    store = ListingOnce()
    fill(store, *KEYS[PART][1:])

    assert sorted(reported_missing(store)) == sorted(KEYS[PART][1:])


def test_few_are_asked_for_by_name() -> None:
    store = Counting()
    fill(store, *KEYS[PART][:2])

    assert sorted(reported_missing(store)) == sorted(KEYS[PART][:2])
    assert store.listings == [""]
