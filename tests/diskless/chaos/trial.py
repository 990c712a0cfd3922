"""A plan for a bucket of diskless topics, and the runs of tieredctl that carry it out or undo it, beside brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, cast

from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.diskless.control_plane import FoundFiles
from tieredctl_inkless.ops.diskless.bucket import read_bucket
from tieredctl_inkless.ops.diskless.fresh_control_plane import FreshControlPlane
from tieredctl_inkless.ops.diskless.orphan_plan import DisklessPlanning
from tieredctl_inkless.wiring.diskless_removal import known_database

from tests.diskless.chaos.writer import DELETING, LEFT_BEHIND, Writer, content
from tests.removal.chaos.boundaries import ObservedReceipts, ObservedStore, World
from tests.removal.chaos.model_cluster import ModelCluster
from tests.rigs.inkless import READER
from tieredctl.config.plan_key import signing_key
from tieredctl.errors import TieredctlError
from tieredctl.model.removal import ReceiptsHeader, RemovalMode
from tieredctl.ops.guards.lease import break_lease, find_lease
from tieredctl.ops.guards.quarantine_keys import copies_in_quarantine
from tieredctl.ops.orphan_removal.apply import RemovalOutcome
from tieredctl.ops.orphan_removal.limits import Limits, PlanOptions
from tieredctl.ops.orphan_removal.plan_file import PlanFile, read_plan, written_plan
from tieredctl.ops.orphan_removal.purge import Purge
from tieredctl.ops.orphan_removal.receipts import ReceiptFile, Receipts
from tieredctl.ops.orphan_removal.restore import Restore
from tieredctl.ops.orphan_removal.use import PlanUser

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class CutControlPlane(PostgresControlPlane):
    """One whose connection is cut before it answers, now and then."""

    cut: Callable[[], bool] = lambda: False

    @contextmanager
    def _moment(self) -> Iterator[Any]:
        with PostgresControlPlane._moment(self) as moment:
            self.cut()
            yield moment


@dataclass(frozen=True, slots=True)
class ObservedControlPlane(CutControlPlane):
    """With a boundary before and after each question."""

    world: World | None = None

    def files_of(self, object_keys: Sequence[str]) -> FoundFiles:
        world = self.world
        assert world is not None
        world.boundary()
        read_up_to = world.cluster.read_up_to()
        found = PostgresControlPlane.files_of(self, object_keys)
        world.last_read = read_up_to
        world.read_before = tuple(map(max, world.read_before, read_up_to))
        world.boundary()
        return found


@dataclass(frozen=True, slots=True)
class Told:
    """What a run told when it was not killed, and what the world saw of it."""

    is_complete: bool
    stopped: str | None
    last_read: tuple[int, ...]
    violations: list[str]


@dataclass
class Trial:
    """Brokers, a bucket and a plan."""

    folder: Path
    writer: Writer
    batch_objects: int = 3
    max_objects: int | None = None
    plan: PlanFile = field(init=False)

    def __post_init__(self) -> None:
        self.writer.begin()
        self.plan = self._planned()

    @property
    def planned_keys(self) -> set[str]:
        return {one.key for one in self.plan.objects()}

    def world(self, chance: Random, **circumstances: Any) -> World:
        return World(cast(ModelCluster, self.writer), chance, now_ms, **circumstances)

    def apply(self, world: World, *, cut_rate: float = 0.0) -> Told:
        user = PlanUser(
            self.plan,
            self._store(world),
            self._owners(world, cut_rate, *known_database(self.plan)),
            lambda header, must_exist: self._receipts(world, header, must_exist),
            now_ms,
            Limits(0, 100),
            batch_objects=self.batch_objects,
        )
        return _told(world, user.run)

    def restore(self, world: World) -> Told:
        receipts = ReceiptFile.opened(self.receipts_file)
        return _told(world, lambda: Restore(self._store(world), receipts, now_ms).run())

    def purge(self, world: World) -> Told:
        owners = self._owners(world, 0.0)
        return _told(world, Purge(self._store(world), owners, CLUSTER_ID, 0, now_ms).run)

    @property
    def receipts_file(self) -> Path:
        return self.folder / "plan.receipts"

    def free_lease(self) -> None:
        """What an operator does when a run was killed."""
        store = self.writer.open_store()
        found = find_lease(store)
        if found is not None:
            break_lease(store, found)

    def copies(self) -> dict[str, bytes]:
        """What is in quarantine, by the keys of the originals."""
        store = self.writer.open_store()
        return {original.key: store.read(copy.key) for copy, original in copies_in_quarantine(store)}

    def _planned(self) -> PlanFile:
        path, store, control_plane = self.folder / "plan", self.writer.open_store(), self._control_plane()
        options = PlanOptions(
            *(f"{self.writer.seed:032x}", RemovalMode.QUARANTINE, CLUSTER_ID),
            max_percent=100,
            max_objects=self.max_objects,
            allow_young=True,
        )
        with read_bucket(store, control_plane) as bucket, written_plan(path, signing_key()) as writer:
            fresh = FreshControlPlane(control_plane, 0, now_ms)
            # Stores report times in whole seconds, or later than this process's clock.
            DisklessPlanning(bucket, fresh, writer, options, now_ms() + 60_000).run()
        plan = read_plan(path, signing_key())
        assert plan.totals.objects == (self.max_objects or LEFT_BEHIND + DELETING)
        return plan

    def _control_plane(self) -> PostgresControlPlane:
        return PostgresControlPlane(self.writer.server.url(self.writer.database, READER))

    def _owners(
        self, world: World, cut_rate: float, database: str | None = None, written: int = 0
    ) -> FreshControlPlane:
        def cut() -> bool:
            is_cut = world.chance.random() < cut_rate
            if is_cut:
                connections = f"usename = '{READER}' AND datname = '{self.writer.database}'"
                terminated = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {connections}"
                self.writer.server.run("postgres", terminated)
            return is_cut

        url = self.writer.server.url(self.writer.database, READER)
        return FreshControlPlane(ObservedControlPlane(url, cut, world), 0, now_ms, database, written)

    def _store(self, world: World) -> ObservedStore:
        return ObservedStore(self.writer.open_store(), world)

    def _receipts(self, world: World, header: ReceiptsHeader, must_exist: bool) -> Receipts:
        assert self.receipts_file.exists() or not must_exist
        return ObservedReceipts(ReceiptFile.begun(self.receipts_file, header), world, self.receipts_file)


def demand_nothing_lost(trial: Trial) -> None:
    """Always: what a row needs is in its place, or, if it was planned, in quarantine."""
    writer = trial.writer
    owned, copies = writer.owned_objects(writer.read_up_to()), trial.copies()
    places = {key: writer.read(key) for key in owned}
    lost = [
        key
        for key, data in places.items()
        if content(key) not in (data, copies.get(key) if key in trial.planned_keys else None)
    ]
    assert not lost, f"seed {writer.seed}: lost {lost}"


def demand_ended_well(trial: Trial, told: Told) -> None:
    """When a run ended by itself: what rows needed when it asked last is in its place."""
    assert not told.violations, f"seed {trial.writer.seed}: {told.violations}"
    absent = trial.writer.owned_objects(told.last_read) - trial.writer.stored_keys()
    assert not absent or told.stopped == "control-plane-unreachable", f"seed {trial.writer.seed}: absent {absent}"


def demand_all_back(trial: Trial) -> None:
    """When a removal was undone."""
    lacking = trial.planned_keys - trial.writer.cleaned() - trial.writer.stored_keys()
    assert not lacking, f"seed {trial.writer.seed}: not back {lacking}"


def _told(world: World, run: Callable[[], Any]) -> Told:
    try:
        result = run()
    except TieredctlError as error:
        return Told(False, error.code.value, world.last_read, world.violations)
    is_complete = result.nothing_is_there if isinstance(result, RemovalOutcome) else result.stopped is None
    return Told(is_complete, result.stopped_by, world.last_read, world.violations)
