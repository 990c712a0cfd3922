"""A plan, and the runs of tieredctl that carry it out, undo it, or make it final, next to a broker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.removal.chaos.boundaries import ObservedMetadata, ObservedReceipts, ObservedStore, World
from tests.removal.chaos.histories import LAYOUT, drawn_history
from tests.removal.chaos.model_cluster import ModelCluster, ReadUpTo
from tieredctl.config.plan_key import signing_key
from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.removal import PlannedObject, PlanUse, Receipt, ReceiptsHeader, RemovalMode
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.guards.ledger import plan_record
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits, PlanOptions
from tieredctl.ops.orphan_removal.orphan_plan import Planning
from tieredctl.ops.orphan_removal.owners import Owners
from tieredctl.ops.orphan_removal.plan_file import PlanFile, read_plan, written_plan
from tieredctl.ops.orphan_removal.purge import Purge
from tieredctl.ops.orphan_removal.receipts import ReceiptFile, Receipts, StoredReceipts
from tieredctl.ops.orphan_removal.restore import Restore, RestoreOutcome
from tieredctl.ops.orphan_removal.use import PlanUser
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.storage.file import FileStore

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
MIN_AGE_MS = 24 * 3_600_000
CLOCK_JUMP_MS = 10 * 60_000
"""Longer than a lease that is not renewed."""
LEASE_RUN_OUT_MS = 3_600_000
"""How long ago a lease was renewed that nobody holds any more."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How tieredctl is used."""

    seed: int
    mode: RemovalMode = RemovalMode.QUARANTINE
    receipts_in_store: bool = False
    has_key: bool = True
    """Whether there is a key to seal with what the copies hold: without it, receipts alone tell."""
    batch_objects: int = 4


@dataclass(frozen=True, slots=True)
class Told:
    """What a run told when it was not killed, and what the world saw of it."""

    done: int
    failed: int
    lost: list[str]
    is_complete: bool
    stopped: str | None
    """The code of the error that stopped it."""
    last_read: ReadUpTo
    violations: list[str]


@dataclass
class Trial:
    """A cluster with a plan, in a folder of its own."""

    folder: Path
    setting: Setting
    cluster: ModelCluster = field(init=False)
    plan: PlanFile = field(init=False)
    steps_before_plan: int = field(init=False)
    was_overtaken_deleting: bool = False
    """Whether another run may have taken over where nothing stops this one: what it restored, this one may have deleted
    once more. Another `restore` puts that right."""
    was_lied_to: bool = False
    """Whether the store may have put other bytes into quarantine, and have kept them there when it was to delete them.
    Of an object that its broker deleted then, they are taken for a copy: nobody needs one."""
    altered: set[str] = field(default_factory=set)
    """The keys of planned objects of whose copies somebody wrote other bytes over."""
    _runs: Any = field(default_factory=count)

    def __post_init__(self) -> None:
        """Lists the store, lets the broker act, and plans: the listing is stale by then."""
        chance = Random(self.setting.seed)
        self.cluster = self._begun_cluster()
        self.steps_before_plan = 0
        self.plan = self._planned(chance.choice([0, 0, 1, 4]))

    def world(self, chance: Random, **circumstances: Any) -> World:
        """Another run's, when what earlier runs left of the lease has run out."""
        jump_ms = CLOCK_JUMP_MS * next(self._runs)
        return World(
            *(self.cluster, chance, lambda: now_ms() + jump_ms),
            last_read=self.planned_by,
            read_before=self.planned_by,
            **circumstances,
        )

    @property
    def planned_by(self) -> ReadUpTo:
        """How far the metadata was read for the plan."""
        return tuple(end for _, end in sorted(self.plan.header.metadata_end_offsets.items()))

    @property
    def limits(self) -> Limits:
        return Limits(self.plan.header.min_age_ms, self.plan.header.max_percent)

    def apply(self, world: World) -> Told:
        user = PlanUser(
            self.plan,
            self._store(world),
            self._owners(world, self.plan.header.min_age_ms),
            lambda header, must_exist: self._receipts(world, header, must_exist),
            world.host_ms,
            self.limits,
            batch_objects=self.setting.batch_objects,
            key=self._key,
        )
        return _told(world, user.run)

    def restore(self, world: World) -> Told:

        def restore() -> RestoreOutcome:
            return Restore(self._store(world), self._opened_receipts(world), world.host_ms, key=self._key).run()

        return _told(world, restore)

    def purge(self, world: World) -> Told:
        owners = self._owners(world, 0)
        return _told(world, Purge(self._store(world), owners, CLUSTER_ID, 0, world.host_ms).run)

    def entries(self) -> list[Receipt]:
        """The receipts as they are; none where nothing was begun."""
        try:
            found = self._opened_receipts(None)
        except TieredctlError:
            return []
        return list(found.entries())

    @property
    def is_undone(self) -> bool:
        """Whether a restoration began: one that was killed put objects back without a receipt."""
        record = plan_record(self.bare_store(), self.plan.header.plan_id)
        return record is not None and record.use is PlanUse.RESTORED

    @cached_property
    def planned_by_key(self) -> dict[str, PlannedObject]:
        return {planned.key: planned for planned in self.plan.objects()}

    @cached_property
    def planned_keys(self) -> set[str]:
        return set(self.planned_by_key)

    @property
    def _key(self) -> bytes | None:
        return signing_key() if self.setting.has_key else None

    def alter_copies(self, chance: Random) -> None:
        """Somebody writes other bytes of the same size over some copies in quarantine, as old as they were."""
        for key, planned in self.planned_by_key.items():
            copy = quarantine_key(CLUSTER_ID, self.plan.header.plan_id, planned)
            data = self.cluster.read(copy)
            if data and chance.random() < 0.5:
                self.cluster.bucket.alter(copy, bytes([data[0] ^ 1]) + data[1:])
                self.altered.add(key)

    def lose_promised(self, chance: Random) -> None:
        """Somebody deletes an object that the metadata promises, and goes on to promise."""
        promised = self.cluster.promised_to_the_end() - self.planned_keys
        self.cluster.lose(chance.choice(sorted(promised)))

    @property
    def receipts_file(self) -> Path:
        return self.folder / "plan.receipts"

    def bare_store(self) -> WritableObjectStore:
        """The store, with nobody looking."""
        return FileStore(str(self.cluster.store_root))

    @property
    def store_words(self) -> Sequence[str]:
        """The command's options beside the store's URL."""
        return ()

    def let_the_lease_run_out(self) -> None:
        """What a few minutes would do."""
        lease = self.cluster.store_root / LEASE_KEY
        if lease.exists():
            long_ago = lease.stat().st_mtime - LEASE_RUN_OUT_MS / 1_000
            os.utime(lease, (long_ago, long_ago))

    def _begun_cluster(self) -> ModelCluster:
        return ModelCluster.begun(self.folder, drawn_history(self.setting.seed), now_ms())

    def _planned(self, steps_meanwhile: int) -> PlanFile:
        store, path = self.bare_store(), self.folder / "plan"

        def read_metadata() -> EventStream:
            for _ in range(steps_meanwhile):
                self.cluster.act(now_ms())
            return EventStream(LogDirectories([self.cluster.log_dir]))

        options = PlanOptions(f"{self.setting.seed:032x}", self.setting.mode, CLUSTER_ID, max_percent=100)
        scan_options = ScanOptions(now_ms(), MIN_AGE_MS, self._topics())
        scan = Scan(SpooledListing(store.list()), LAYOUT, store.url, read_metadata, scan_options)
        key = signing_key()
        with written_plan(path, key) as writer:
            Planning(scan, writer, options).run()
        return read_plan(path, key)

    def _store(self, world: World) -> ObservedStore:
        return ObservedStore(self.bare_store(), world)

    def _topics(self) -> TopicSources:
        return TopicSources(topic_ids=self.cluster.history.live_topic_ids)

    def _owners(self, world: World, min_age_ms: int) -> Owners:
        return FreshMetadata(
            FollowedMetadata(lambda: ObservedMetadata(world), CLUSTER_ID, self.plan.header.metadata_end_offsets),
            layout=LAYOUT,
            min_age_ms=min_age_ms,
            topic_sources=self._topics(),
            clock_ms=world.host_ms,
        )

    def _receipts(self, world: World, header: ReceiptsHeader, must_exist: bool) -> Receipts:
        if self.setting.receipts_in_store:
            return ObservedReceipts(StoredReceipts.begun(self._store(world), header), world)
        assert self.receipts_file.exists() or not must_exist
        return ObservedReceipts(ReceiptFile.begun(self.receipts_file, header), world, self.receipts_file)

    def _opened_receipts(self, world: World | None) -> Receipts:
        store = self.bare_store()
        plan_id = self.plan.header.plan_id
        if world is None:
            if self.setting.receipts_in_store:
                return StoredReceipts.opened(store, plan_id)
            return ReceiptFile.opened(self.receipts_file)
        if self.setting.receipts_in_store:
            return ObservedReceipts(StoredReceipts.opened(self._store(world), plan_id), world)
        return ObservedReceipts(ReceiptFile.opened(self.receipts_file), world, self.receipts_file)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _told(world: World, run: Callable[[], Any]) -> Told:
    try:
        result = run()
    except TieredctlError as error:
        return Told(0, 0, [], False, error.code, world.last_read, world.violations)
    stopped = result.stopped and result.stopped.code
    lost = getattr(result, "lost", []) + getattr(result, "owned", [])
    is_complete = stopped is None and not result.failed and not getattr(result, "lost", [])
    return Told(result.done, result.failed, lost, is_complete, stopped, world.last_read, world.violations)
