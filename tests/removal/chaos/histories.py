"""What a broker did and will do, drawn from a seed: sound copies, debris of every cause, and what may still become of
it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.metadata_logs import COPIED, DELETED, DELETING, partition_delete, started, updated
from tests.removal.chaos.model_cluster import Announced, Deleted, History, Step, Uploaded
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentState, RemotePartitionDeleteState
from tieredctl.model.ids import TopicIdPartition

LIVE = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "orders", 0)
LIVE_TOO = replace(LIVE, partition=2)
"""Of the other metadata partition."""
REMOVED = replace(LIVE, partition=1)
GONE = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "gone", 0)
LAYOUT = layout_named("aiven")
"""The one with the fewest objects a segment."""
PARTS = 3
"""Of each segment: its log, its indexes, and their manifest."""
SEGMENT_OFFSETS = 10


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment that a broker copies: ten offsets, three objects."""

    number: int
    partition: TopicIdPartition
    start: int

    def keys(self) -> list[str]:
        metadata = started(self.number, self.start, self.start, partition=self.partition)
        return list(LAYOUT.promised_objects(metadata).values())

    def copy_started(self) -> Step:
        return Announced(started(self.number, self.start, self.start + SEGMENT_OFFSETS - 1, partition=self.partition))

    def became(self, state: RemoteLogSegmentState) -> Step:
        return Announced(updated(self.number, state, partition=self.partition))

    def uploaded(self, parts: int = PARTS) -> list[Step]:
        """The broker uploads its first parts."""
        return [Uploaded(key) for key in self.keys()[:parts]]

    def copied(self) -> list[Step]:
        """From the announcement to the end: nothing is uploaded before the one, nor after the other."""
        return [self.copy_started(), *self.uploaded(), self.became(COPIED)]

    def deleted(self, parts: int = PARTS) -> list[Step]:
        """One object after another; with fewer parts, the broker was stopped in between."""
        steps: list[Step] = [self.became(DELETING)]
        steps += [Deleted(key) for key in self.keys()[:parts]]
        return [*steps, self.became(DELETED)] if parts == PARTS else steps


@dataclass
class _Writer:
    chance: Random
    past: list[Step] = field(default_factory=list)
    futures: list[list[Step]] = field(default_factory=list)
    """Of each actor, such as a leader, or one that does not know yet that it is leader no more."""
    only_copies: set[str] = field(default_factory=set)
    _segments: int = 0

    def segment(self, partition: TopicIdPartition, start: int | None = None) -> Segment:
        self._segments += 1
        first = self._segments * SEGMENT_OFFSETS if start is None else start
        return Segment(self._segments, partition, first)

    def some_parts(self, least: int = 0) -> int:
        return self.chance.randint(least, PARTS)

    def either(self, share: float = 0.5) -> bool:
        return self.chance.random() < share


def drawn_history(seed: int) -> History:
    """The same for the same seed."""
    writer = _Writer(Random(seed))
    for _ in range(4):
        writer.past += writer.segment(LIVE).copied()
    for make in (
        *(_hung_copy, _hung_copy, _crashed_copy, _unfinished_deletion, _unfinished_deletion),
        *(_deleted_but_present, _lost_events, _lost_end, _copied_again, _gone_topic),
        *(_removed_partition, _copy_under_way, _deletion_to_come, _copy_to_come),
    ):
        make(writer)
    return History(writer.past, _interleaved(writer), frozenset({LIVE.topic_id}), frozenset(writer.only_copies))


def _hung_copy(writer: _Writer) -> None:
    """A leader hung while it copied, another copied the same offsets. The first one may go on where it was."""
    hung = writer.segment(writer.chance.choice([LIVE, LIVE_TOO]))
    parts = writer.some_parts(least=1)
    other = writer.segment(hung.partition, hung.start)
    writer.past += [hung.copy_started(), *hung.uploaded(parts), *other.copied()]
    if writer.either(0.8):
        # A request whose answer was lost is sent again.
        again = parts - 1 if writer.either(0.2) else parts
        future = [*hung.uploaded()[again:], hung.became(COPIED)]
        if writer.either(0.2):
            future += hung.deleted()
        writer.futures.append(future)


def _crashed_copy(writer: _Writer) -> None:
    crashed = writer.segment(LIVE_TOO)
    other = writer.segment(LIVE_TOO, crashed.start)
    writer.past += [crashed.copy_started(), *crashed.uploaded(writer.some_parts()), *other.copied()]


def _unfinished_deletion(writer: _Writer) -> None:
    """It may be tried again, from its beginning."""
    segment = writer.segment(LIVE)
    writer.past += [*segment.copied(), *segment.deleted(parts=writer.chance.randint(0, 1))]
    if writer.either():
        writer.futures.append(segment.deleted())


def _deleted_but_present(writer: _Writer) -> None:
    segment = writer.segment(LIVE)
    writer.past += [*segment.copied(), segment.became(DELETING), segment.became(DELETED)]


def _lost_events(writer: _Writer) -> None:
    """The metadata lost its events, and brokers have no local data from which they could copy it again."""
    lost = writer.segment(LIVE_TOO)
    writer.past += lost.uploaded()
    writer.only_copies |= set(lost.keys())


def _lost_end(writer: _Writer) -> None:
    """The metadata lost the event that it was copied, and a leader whose segments have other bounds copied on from its
    middle."""
    lost = writer.segment(LIVE_TOO)
    following = writer.segment(LIVE_TOO, lost.start + SEGMENT_OFFSETS // 2)
    writer.past += [lost.copy_started(), *lost.uploaded(), *following.copied()]
    writer.only_copies |= set(lost.keys())


def _copied_again(writer: _Writer) -> None:
    """The metadata lost its events too, and the leader copied it again."""
    lost = writer.segment(LIVE_TOO)
    again = writer.segment(LIVE_TOO, lost.start)
    writer.past += [*lost.uploaded(writer.some_parts()), *again.copied()]


def _gone_topic(writer: _Writer) -> None:
    segment = writer.segment(GONE)
    writer.past += segment.copied() if writer.either() else [segment.copy_started(), *segment.uploaded(1)]


def _removed_partition(writer: _Writer) -> None:
    states = RemotePartitionDeleteState
    writer.past += writer.segment(REMOVED).copied()
    writer.past += [
        Announced(partition_delete(state, partition=REMOVED))
        for state in (states.DELETE_PARTITION_MARKED, states.DELETE_PARTITION_STARTED)
    ]


def _copy_under_way(writer: _Writer) -> None:
    segment = writer.segment(LIVE)
    parts = writer.some_parts()
    writer.past += [segment.copy_started(), *segment.uploaded(parts)]
    writer.futures.append([*segment.uploaded()[parts:], segment.became(COPIED)])


def _deletion_to_come(writer: _Writer) -> None:
    segment = writer.segment(LIVE)
    writer.past += segment.copied()
    writer.futures.append(segment.deleted())


def _copy_to_come(writer: _Writer) -> None:
    """With a change of leader in its middle, the next one copies again."""
    crashed, copied = writer.segment(LIVE), writer.segment(LIVE)
    again = replace(copied, start=crashed.start)
    writer.futures.append([crashed.copy_started(), *crashed.uploaded(writer.some_parts()), *again.copied()])


def _interleaved(writer: _Writer) -> list[Step]:
    """What all will do, each in its own order."""
    left = [list(steps) for steps in writer.futures if steps]
    steps: list[Step] = []
    while left:
        actor = writer.chance.choice(left)
        steps.append(actor.pop(0))
        left = [steps_left for steps_left in left if steps_left]
    return steps
