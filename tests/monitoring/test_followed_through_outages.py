"""Whoever follows the metadata goes on after an outage where it ended, and tells what was lost meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from tests.event_histories import METADATA_PARTITIONS, HistoryInMemory
from tests.metadata_logs import copied
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.events import EventRecord
from tieredctl.ops.monitoring.followed_events import FollowedEvents
from tieredctl.ports.metadata_source import OffsetRange

ENOUGH = 12
"""Failures in a row, after which everything was opened again."""


@dataclass
class Topic:
    """What is there now, for whoever opens it."""

    records: list[EventRecord]
    topic_id: str = "first"
    partitions: int = METADATA_PARTITIONS
    start: int = 0
    is_away: bool = False
    opened: int = 0
    losses: list[TieredctlError] = field(default_factory=list)

    def open(self) -> Source:
        self.demand_there()
        self.opened += 1
        return Source(self)

    def demand_there(self) -> None:
        if self.is_away:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "No broker answers.")

    def add(self, *numbers: int) -> None:
        for number in numbers:
            events = copied(number, 10 * number, 10 * number + 9)
            self.records += [EventRecord(0, len(self.records) + place, 1, event) for place, event in enumerate(events)]

    def followed(self) -> FollowedEvents:
        return FollowedEvents(self.open, tell_loss=self.losses.append)


class Source(HistoryInMemory):
    """As it was when it was opened, or advanced."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._present()

    def _present(self) -> None:
        super().__init__(self.topic.records, self.topic.partitions)
        self._topic_id, self._start = self.topic.topic_id, self.topic.start

    @property
    def metadata_topic_id(self) -> str:
        return self._topic_id

    @property
    def partition_count(self) -> int:
        return len(self.metadata_partitions())

    def advance(self) -> bool:
        self.topic.demand_there()
        self._present()
        return True

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        return super().chunks(metadata_partition, max(from_offset, 0 if metadata_partition else self._start))

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        found = super().offset_range(metadata_partition)
        return found if metadata_partition else OffsetRange(self._start, max(found.end, self._start))


@pytest.fixture
def topic() -> Topic:
    made = Topic([])
    made.add(1, 2)
    return made


def go_away(topic: Topic, followed: FollowedEvents) -> None:
    """For so long that everything is opened again."""
    topic.is_away = True
    for _ in range(ENOUGH):
        with pytest.raises(TieredctlError):
            followed.read()
    topic.is_away = False


def test_after_an_outage_it_is_opened_again_and_read_on_where_it_ended(topic: Topic) -> None:
    followed = topic.followed()
    followed.read()
    go_away(topic, followed)
    topic.add(3)

    figures = followed.read()

    assert len(list(figures.metadata.segments())) == 3
    assert figures.partitions[0].events == len(topic.records)
    assert (topic.opened, followed.readings, followed.losses, topic.losses) == (2, 1, 0, [])


def recreate(topic: Topic) -> None:
    topic.records, topic.topic_id = [], "second"
    topic.add(7)


def add_partition(topic: Topic) -> None:
    topic.partitions += 1


def lose_the_beginning(topic: Topic) -> None:
    topic.start = 1


def lose_the_end(topic: Topic) -> None:
    del topic.records[-1]


LOSSES = {
    "it is another topic": recreate,
    f"had {METADATA_PARTITIONS} partitions, and now has {METADATA_PARTITIONS + 1}": add_partition,
    "began at offset 0, and begins at 1 now": lose_the_beginning,
    "but was read up to": lose_the_end,
}


@pytest.mark.parametrize("is_away", [False, True], ids=["while it is followed", "during an outage"])
@pytest.mark.parametrize(("sentence", "lose"), LOSSES.items(), ids=[one.__name__ for one in LOSSES.values()])
def test_what_is_lost_is_told_once_and_what_is_left_is_read(
    sentence: str, lose: Callable[[Topic], None], is_away: bool, topic: Topic
) -> None:
    followed = topic.followed()
    followed.read()
    if is_away:
        go_away(topic, followed)
    lose(topic)

    figures = followed.read()
    followed.read()

    (loss,) = topic.losses
    assert sentence in loss.message
    assert (followed.losses, followed.readings) == (1, 2)
    assert figures.partitions[0].events == len(topic.records) - topic.start
