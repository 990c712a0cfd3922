"""A cluster in memory that lost its metadata topic, or a part of it, and the recoveries over what its store has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tests.faults.cluster import LAYOUT, EventsInMemory, key_of
from tests.faults.segment_writer import SegmentWriter, WrittenSegment
from tests.metadata_logs import PARTITION, segment_id
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.guards.lease import Hold, Unguarded
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.metadata_recovery.event_rebuilding import BrokerTraits, StoreListing
from tieredctl.ops.metadata_recovery.known_metadata import KnownMetadata
from tieredctl.ops.metadata_recovery.live_partitions import LivePartition
from tieredctl.ops.metadata_recovery.recoverer import Recoverer, RecoveryOutcome
from tieredctl.ops.metadata_recovery.recovery_plan import Recovery, RecoveryPlanner
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment, SegmentJudge
from tieredctl.ports.layout import Part
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.storage.memory import MemoryStore

UNGUARDED = Unguarded(StoreClock(lambda: 0, 0))
NOW_MS = 1_800_000_000_000


class Killed(BaseException):
    """The process is no more."""


@dataclass
class LostMetadata:
    """The store, the events that are left, and what the cluster says. Every event that is written is a boundary."""

    events: list[MetadataEvent] = field(default_factory=list)
    store: MemoryStore = field(default_factory=MemoryStore)
    live: LivePartition | None = None
    """What the cluster says of every partition; None where it is not asked."""
    kill_at: int | None = None
    killed_by: BaseException = field(default_factory=Killed)
    boundaries: int = 0
    lease: Hold = UNGUARDED
    before_writing: Callable[[], None] = lambda: None
    """What happens elsewhere between the plan and the first event."""
    now_ms: int = NOW_MS
    """By the host's clock."""

    def copy(
        self,
        number: int,
        start: int,
        end: int,
        *,
        epochs: Sequence[tuple[int, int]] = ((0, 0),),
        stored_ms: int | None = None,
        partition: TopicIdPartition = PARTITION,
    ) -> WrittenSegment:
        """Stores the objects of a segment with a record for each offset; `epochs` are those of the whole log."""
        segment = written(number, start, end, epochs, partition)
        return self.put(segment, NOW_MS + number if stored_ms is None else stored_ms)

    def put(self, segment: WrittenSegment, stored_ms: int = NOW_MS) -> WrittenSegment:
        """Stores the objects of any segment."""
        for part, data in segment.parts.items():
            self.store.put(key_of(segment.metadata, part), data, stored_ms)
        return segment

    def lose(self, segment: WrittenSegment, part: Part) -> None:
        """Takes an object of a segment away."""
        stored = self.store.head(key_of(segment.metadata, part))
        assert stored is not None
        self.store.delete([stored])

    def change(self, segment: WrittenSegment, part: Part, data: bytes) -> None:
        """Gives an object of a segment other bytes."""
        self.store.put(key_of(segment.metadata, part), data, NOW_MS)

    def plan(self) -> Recovery:
        return self._planned(self._known())

    def fates(self) -> dict[int, Fate]:
        """What becomes of each segment, by number."""
        return {number_of(one): one.fate for plan in self.plan().partitions for one in plan.segments}

    def recover(self, *, batch_segments: int = 100) -> RecoveryOutcome:
        known = self._known()
        plan = self._planned(known)
        self.before_writing()
        live = self.live or led(0, 0, 1_000)
        recoverer = Recoverer(
            *(
                plan,
                known,
                self,
                self.lease,
                lambda: self.now_ms,
                lambda _partition: live,
                self.store,
            ),
            batch_segments=batch_segments,
        )
        return recoverer.run()

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        assert metadata_partition == 0
        for event in events:
            self.boundaries += 1
            if self.boundaries == self.kill_at:
                raise self.killed_by
            self.events.append(event)

    def state(self) -> ReplayedMetadata:
        """What a broker knows that reads the metadata from its beginning."""
        return replayed(EventStream(EventsInMemory(tuple(self.events))))

    def _known(self) -> KnownMetadata:
        return KnownMetadata(FollowedMetadata(lambda: EventsInMemory(self.events)))

    def _planned(self, known: KnownMetadata) -> Recovery:
        listing = StoreListing(self.store, LAYOUT, Selection())
        stored = list(listing.partitions())
        known.refresh()
        judge = SegmentJudge(known, self.store, LAYOUT, BrokerTraits(tells_txn=True))
        live = self.live
        return RecoveryPlanner(known, judge, None if live is None else lambda _partition: live).plan(listing, stored)


def written(
    number: int,
    start: int,
    end: int,
    epochs: Sequence[tuple[int, int]] = ((0, 0),),
    partition: TopicIdPartition = PARTITION,
) -> WrittenSegment:
    """A segment with this number, whose leader epochs are those of the whole log that reach into it."""
    before = [pair for pair in epochs if pair[1] <= start]
    inside = [pair for pair in epochs if start < pair[1] <= end]
    writer = SegmentWriter(start, leader_epoch=before[-1][0], epochs_before=tuple(before[:-1]), partition=partition)
    for offset in range(start, end + 1):
        if inside and inside[0][1] == offset:
            writer.begin_epoch(inside.pop(0)[0])
        writer.append(writer.data())
    segment = writer.close(segment_id(number))
    lineage = [EpochEntry(*pair) for pair in epochs if pair[1] <= end]
    return replace(segment, parts=segment.parts | {Part.LEADER_EPOCH: encode_leader_epoch_checkpoint(lineage)})


def led(
    log_start: int, local_start: int, end: int, epochs: Sequence[tuple[int, int]] = ((0, 0),), topic_id: str = ""
) -> LivePartition:
    """A partition that the cluster has, by its leader's log."""
    return LivePartition(LeaderLog(log_start, local_start, end, tuple(epochs)), topic_id or PARTITION.topic_id)


def number_of(segment: JudgedSegment) -> int:
    numbers = {segment_id(number): number for number in range(100)}
    return numbers[segment.stored.identity.segment_id]


def as_copied(segment: WrittenSegment) -> WrittenSegment:
    """A segment as the metadata has it once it was recovered: by nobody, and now."""
    return replace(segment, metadata=replace(segment.metadata, author=-1, event_timestamp_ms=NOW_MS))
