"""A store of combined objects (KIP-1176) beside a broker that copies what is in them to remote storage, and deletes it
there, and the plans of `wal clean`, which the same stories are told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from tieredctl_proposals.ops.wal.clean import plan_cleaning
from tieredctl_proposals.ops.wal.contents import read_events
from tieredctl_proposals.ops.wal.event_log import METADATA_PARTITIONS, EventLog, is_event_key
from tieredctl_proposals.ops.wal.need import FreshNeeds, RemoteMetadata
from tieredctl_proposals.ops.wal.owners import WalOwners
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.sections import queue_item
from tieredctl_proposals.wal.steps import Publish, PutObject
from tieredctl_proposals.wal.upload import upload_steps

from tests.metadata_logs import FIRST_TIMESTAMP_MS, segment_id
from tests.removal.chaos.boundaries import ObservedMetadata, World
from tests.removal.chaos.histories import LIVE, LIVE_TOO, SEGMENT_OFFSETS, Segment
from tests.removal.chaos.model_cluster import Announced, History, ModelCluster, ReadUpTo, Step, Uploaded
from tests.removal.chaos.trial import CLUSTER_ID, MIN_AGE_MS, Trial, now_ms
from tests.wal.local_partitions import batch
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore
from tieredctl.storage.file import FileStore

_OBJECTS = 9
_TIERED = 6
"""How many of these are in remote storage before anybody looks."""
_GIVE_UP_AFTER_MS = 3_600_000
_PARTITIONS = (LIVE, LIVE_TOO)
_READABLE = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True)
class Combined:
    """An object with ten offsets of each partition."""

    number: int

    @property
    def combined_id(self) -> str:
        return segment_id(1_000 + self.number)

    @property
    def key(self) -> str:
        return object_key(self.combined_id)

    def segments(self) -> list[Segment]:
        """What remote storage has of it, in the end."""
        start = self.number * SEGMENT_OFFSETS
        return [Segment(2 * self.number + place, one, start) for place, one in enumerate(_PARTITIONS)]

    def uploads(self) -> Iterator[Publish | PutObject]:
        start = self.number * SEGMENT_OFFSETS
        items = [
            queue_item(
                *(one, segment_id(2_000 + 2 * self.number + place), batch(start, SEGMENT_OFFSETS)),
                broker_id=1,
                leader_epoch=0,
                event_timestamp_ms=FIRST_TIMESTAMP_MS,
            )
            for place, one in enumerate(_PARTITIONS)
        ]
        steps = upload_steps(
            *(items, self.combined_id),
            broker_id=1,
            metadata_partitions=METADATA_PARTITIONS,
            clock_ms=lambda: FIRST_TIMESTAMP_MS,
        )
        return (step for step in steps if isinstance(step, Publish | PutObject))


ALL = [Combined(number) for number in range(_OBJECTS)]


@cache
def contents() -> Mapping[str, bytes]:
    """The bytes of each object."""
    return {step.key: step.data for one in ALL for step in one.uploads() if isinstance(step, PutObject)}


def drawn_wal_history(seed: int) -> History:
    """The same for the same seed."""
    chance = Random(seed)
    past: list[Step] = [Uploaded(one.key) for one in ALL]
    futures: list[list[Step]] = []
    for one in ALL:
        copied = [step for segment in one.segments() for step in _copied(segment)]
        if one.number < _TIERED:
            past += copied
            futures.append(_drawn_future(one, chance))
        elif chance.random() < 0.5:
            futures.append(copied)
    left, future = [steps for steps in futures if steps], list[Step]()
    while left:
        future.append(chance.choice(left).pop(0))
        left = [steps for steps in left if steps]
    return History(past, future, frozenset({LIVE.topic_id}), frozenset())


def _copied(segment: Segment) -> list[Step]:
    return [segment.copy_started(), segment.became(_READABLE)]


def _drawn_future(one: Combined, chance: Random) -> list[Step]:
    """Remote storage loses what it has of an object, or an upload that hung goes on, or nothing happens."""
    what = chance.random()
    if what < 0.35:
        return chance.choice(one.segments()).deleted(parts=0)
    return [Uploaded(one.key)] if what < 0.45 else []


class WalCluster(ModelCluster):
    """The events of objects are in the store, and only tieredctl writes them once the past is over."""

    def content(self, key: str) -> bytes:
        return contents()[key]

    def stored_keys(self) -> set[str]:
        return {key for key in super().stored_keys() if not is_event_key(key)}

    def owned_objects(self, read_up_to: ReadUpTo) -> set[str]:
        """Those of which remote storage does not have all."""
        tiered = self._readable_segments(read_up_to)
        needed = {one.key for one in ALL if not {segment_id(each.number) for each in one.segments()} <= tiered}
        return needed & self.objects()

    def touched_since(self, steps_taken: int) -> set[str]:
        steps = self.history.future[steps_taken : self.steps_taken]
        lost = {
            step.event.segment_id
            for step in steps
            if isinstance(step, Announced) and isinstance(step.event, RemoteLogSegmentMetadataUpdate)
        }
        touched = {one.key for one in ALL if lost & {segment_id(each.number) for each in one.segments()}}
        return touched | self.written_since(steps_taken)

    def unreadable(self) -> set[str]:
        """The keys of objects that the events promise to readers, and that are not there."""
        segments = read_events(FileStore(str(self.store_root))).segments()
        promised = {object_key(one.combined_segment_id) for one in segments if one.metadata.state is _READABLE}
        return promised - self.stored_keys()

    def unconcluded(self, keys: set[str]) -> set[str]:
        """Those of which the events do not say that they are deleted."""
        segments = read_events(FileStore(str(self.store_root))).segments()
        deleted = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
        return keys & {object_key(one.combined_segment_id) for one in segments if one.metadata.state is not deleted}


@dataclass
class WalTrial(Trial):
    """A plan of `wal clean`, whose receipts are always in the store, and which is always sealed."""

    eventless: Sequence[str] = ()
    _planned_by: ReadUpTo = field(default=(), init=False)

    @property
    def planned_by(self) -> ReadUpTo:
        return self._planned_by

    @property
    def limits(self) -> Limits:
        return Limits(MIN_AGE_MS, 100, max_missing=None)

    def lose_promised(self, chance: Random) -> None:
        """Whether anything else is there is not asked: events and objects are in one store."""

    def _begun_cluster(self) -> ModelCluster:
        cluster = WalCluster.begun(self.folder, drawn_wal_history(self.setting.seed), now_ms())
        events = [step for one in ALL for step in one.uploads() if isinstance(step, Publish)]
        EventLog(FileStore(str(cluster.store_root)), {}, now_ms).append(events)
        return cluster

    def _planned(self, steps_meanwhile: int) -> PlanFile:
        def opened() -> MetadataSource:
            for _ in range(steps_meanwhile):
                self.cluster.act(now_ms())
            self._planned_by = self.cluster.read_up_to()
            return LogDirectories([self.cluster.log_dir])

        store = FileStore(str(self.cluster.store_root))
        fresh = self._fresh(store, FollowedMetadata(opened, CLUSTER_ID), now_ms)
        plan = plan_cleaning(store, fresh, CLUSTER_ID, self.limits)
        self.eventless = plan.eventless
        return plan.shown(f"{self.setting.seed:032x}", CLUSTER_ID, self.setting.mode, now_ms())

    def _owners(self, world: World, _min_age_ms: int) -> WalOwners:
        ends = dict(enumerate(self.planned_by))
        followed = FollowedMetadata(lambda: ObservedMetadata(world), CLUSTER_ID, ends)
        fresh = self._fresh(self._store(world), followed, world.host_ms)
        return WalOwners(fresh, world.host_ms, self.eventless)

    def _fresh(self, store: ObjectStore, followed: FollowedMetadata, clock_ms: Callable[[], int]) -> FreshNeeds:
        return FreshNeeds(store, RemoteMetadata(followed), self._topics(), None, clock_ms, _GIVE_UP_AFTER_MS)
