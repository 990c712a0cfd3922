"""One partition's remote segments, as Kafka 3.6 and later know them (RemoteLogMetadataCache)."""

from __future__ import annotations

import pytest

from tests.cache_by_events import CacheByEvents, said_once
from tests.metadata_logs import COPIED, DELETED, DELETING, segment_id, started, updated
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.states import Refusal


class Cache(CacheByEvents):
    """A cache that takes events in short."""

    def start(self, metadata: RemoteLogSegmentMetadata) -> Refusal | None:
        return self.add(said_once(metadata))

    def become(self, number: int, state: RemoteLogSegmentState, custom: bytes | None = None) -> KnownSegment | Refusal:
        return self.update(updated(number, state, author=2, custom_metadata=custom, event_timestamp_ms=5), 0, 1)

    def copy(self, number: int, start: int, end: int, epochs: dict[int, int] | None = None) -> None:
        assert self.start(started(number, start, end, epochs, txn_idx_empty=True)) is None
        assert isinstance(self.become(number, COPIED), KnownSegment)

    def delete(self, number: int) -> None:
        assert isinstance(self.become(number, DELETING), KnownSegment)
        assert isinstance(self.become(number, DELETED), KnownSegment)

    def found(self, epoch: int, offset: int) -> str | None:
        known = self.remote_log_segment_metadata(epoch, offset)
        return known.metadata.segment_id if known else None

    def listed(self, epoch: int | None = None) -> list[str]:
        return [known.metadata.segment_id for known in self.list_remote_log_segments(epoch)]


@pytest.fixture
def cache() -> Cache:
    return Cache()


def test_a_copy_that_only_started_serves_no_fetch_but_is_listed(cache: Cache) -> None:
    cache.start(started(1, 0, 9))

    assert cache.found(0, 5) is None
    assert cache.highest_offset_for_epoch(0) is None
    assert cache.listed() == cache.listed(0) == [segment_id(1)]


def test_a_finished_copy_serves_its_offsets_both_ends_included(cache: Cache) -> None:
    cache.copy(1, 10, 19)

    assert [cache.found(0, offset) for offset in (9, 10, 19, 20)] == [None, segment_id(1), segment_id(1), None]
    assert cache.highest_offset_for_epoch(0) == 19


def test_an_epoch_serves_only_its_part_of_a_segment(cache: Cache) -> None:
    cache.copy(1, 0, 99, {0: 0, 2: 60})

    assert cache.found(0, 59) == cache.found(2, 60) == segment_id(1)
    assert cache.found(0, 60) is cache.found(2, 59) is cache.found(1, 30) is None
    assert (cache.highest_offset_for_epoch(0), cache.highest_offset_for_epoch(2)) == (59, 99)


def test_an_offset_in_a_hole_finds_nothing(cache: Cache) -> None:
    cache.copy(1, 0, 9)
    cache.copy(2, 20, 29)

    assert cache.found(0, 15) is None


def test_a_copy_that_covers_earlier_ones_displaces_them(cache: Cache) -> None:
    cache.copy(1, 0, 9)
    cache.copy(2, 10, 19)
    cache.copy(3, 0, 25)

    assert cache.found(0, 5) == cache.found(0, 15) == segment_id(3)
    assert cache.listed(0) == [segment_id(1), segment_id(3), segment_id(2)]
    assert segment_id(1) not in cache.referenced()
    assert segment_id(3) in cache.referenced()


def test_a_shorter_copy_of_the_same_start_hides_the_longer_one_from_its_epoch(cache: Cache) -> None:
    cache.copy(1, 0, 19)
    cache.copy(2, 0, 9)

    assert cache.found(0, 5) == segment_id(2)
    assert cache.found(0, 15) is None
    assert cache.listed(0) == [segment_id(2)]
    assert cache.listed() == [segment_id(1), segment_id(2)]


def test_a_copy_that_begins_inside_another_leaves_it_in_place(cache: Cache) -> None:
    cache.copy(1, 0, 19)
    cache.copy(2, 10, 15)

    assert cache.found(0, 9) == segment_id(1)
    assert cache.found(0, 12) == segment_id(2)
    assert cache.found(0, 17) is None


def test_a_deletion_that_began_ends_the_service(cache: Cache) -> None:
    cache.copy(1, 0, 9)
    cache.become(1, DELETING)

    assert cache.found(0, 5) is None
    assert cache.listed(0) == [segment_id(1)]


def test_a_deleted_segment_is_forgotten_but_not_how_far_the_epoch_reached(cache: Cache) -> None:
    cache.copy(1, 0, 9)
    cache.delete(1)

    assert cache.listed() == cache.listed(0) == []
    assert cache.state_of(segment_id(1)) is None
    assert cache.highest_offset_for_epoch(0) == 9
    assert cache.epochs() == [0]


def test_the_same_state_twice_is_taken(cache: Cache) -> None:
    cache.copy(1, 0, 9)

    assert isinstance(cache.become(1, COPIED), KnownSegment)


def test_an_update_may_not_say_that_a_copy_began(cache: Cache) -> None:
    cache.start(started(1, 0, 9))

    assert cache.become(1, RemoteLogSegmentState.COPY_SEGMENT_STARTED) is Refusal.START_AS_UPDATE


def test_a_copy_started_twice_with_other_epochs_is_listed_nowhere_once_deleted(cache: Cache) -> None:
    """Kafka's own listing of the first epoch raises then."""
    cache.start(started(1, 0, 9, {3: 0}))
    cache.start(started(1, 0, 9, {5: 0}))
    cache.delete(1)

    assert cache.listed(3) == cache.listed(5) == []
