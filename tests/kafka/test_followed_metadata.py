"""The metadata of one cluster is opened once, and followed from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.faults.cluster import EventsInMemory
from tests.metadata_logs import copied
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.events import MetadataEvent
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata


@dataclass
class Noted(EventsInMemory):
    """Metadata that notes from which offset it was read, and whether it was closed."""

    read_from: list[int] = field(default_factory=list)
    is_closed: bool = False

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        self.read_from.append(from_offset)
        return super().chunks(metadata_partition, from_offset)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class Follower:
    """What follows some events, and notes what it was given."""

    events: list[MetadataEvent]
    sources: list[Noted] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metadata = FollowedMetadata(self._open)

    def read(self) -> bool:
        return self.metadata.read(self._take).went_further

    def _open(self) -> Noted:
        self.sources.append(Noted(self.events))
        return self.sources[-1]

    def _take(self, stream: EventStream) -> list[Finding]:
        self.taken += [record.metadata_offset for record in stream.records()]
        return stream.findings


def test_one_source_is_opened_and_each_event_is_taken_once() -> None:
    follower = Follower(copied(1, 0, 9))

    first = follower.read()
    follower.events += copied(2, 10, 19)
    second = follower.read()

    assert (first, second) == (True, True)
    assert follower.taken == [0, 1, 2, 3]
    assert [one.read_from for one in follower.sources] == [[0, 2]]


def test_where_nothing_is_new_nothing_is_read() -> None:
    follower = Follower(copied(1, 0, 9))

    assert [follower.read() for _ in range(3)] == [True, False, False]
    assert follower.sources[0].read_from == [0]


def test_a_source_that_was_opened_to_look_at_it_is_read_up_to_now() -> None:
    follower = Follower(copied(1, 0, 9))
    assert follower.metadata.source().cluster_id is None
    follower.events += copied(2, 10, 19)

    follower.read()

    assert follower.taken == [0, 1, 2, 3]
    assert len(follower.sources) == 1


def test_what_could_not_be_taken_is_read_again_though_nothing_is_new() -> None:
    follower = Follower(copied(1, 0, 9))

    def refuse(_: EventStream) -> list[Finding]:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, "It was interrupted.")

    with pytest.raises(TieredctlError):
        follower.metadata.read(refuse)

    assert follower.read()
    assert follower.taken == [0, 1]


def test_the_source_is_closed_with_it() -> None:
    follower = Follower(copied(1, 0, 9))
    follower.read()

    follower.metadata.close()

    assert follower.sources[0].is_closed
