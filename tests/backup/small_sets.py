"""Backup sets of a few bytes in a store in memory, by the numbers and chains that a run gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.rigs.mortal_store import MortalStore
from tieredctl.ops.backup.manifests import CLUSTER_FILE, EVENTS_FILE, EventRange, Manifest, SetFile
from tieredctl.ops.backup.pruning import PruneOutcome, Pruning
from tieredctl.ops.backup.pruning_plan import KeepRules, PrunePlan, plan_prune
from tieredctl.ops.backup.run import BackupRun
from tieredctl.ops.backup.sets import ClusterSets, publish
from tieredctl.ops.guards.lease import LEASE_MS, lease_held
from tieredctl.ports.object_store import WritableObjectStore

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
DAY_MS = 86_400_000
BEGAN_MS = 1_795_000_000_000


class WatchedStore(MortalStore):
    """One whose user does something else at a boundary."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = BEGAN_MS
        self.meanwhile: tuple[int, Callable[[], object]] | None = None

    def _boundary(self) -> None:
        super()._boundary()
        if self.meanwhile is not None and self.boundaries >= self.meanwhile[0]:
            _, act = self.meanwhile
            self.meanwhile = None
            act()

    def kill_after(self, boundaries: int | None) -> None:
        self.kill_at = None if boundaries is None else self.boundaries + boundaries

    def then(self, boundaries: int, act: Callable[[], object]) -> None:
        self.meanwhile = (self.boundaries + boundaries, act)

    def objects(self) -> dict[str, bytes]:
        return {one.key: self.read(one.key) for one in self.list() if not one.key.startswith(".tieredctl")}


@dataclass
class SmallSets:
    """Sets of one cluster."""

    store: WatchedStore = field(default_factory=WatchedStore)
    cluster_id: str = CLUSTER_ID

    @property
    def sets(self) -> ClusterSets[WritableObjectStore]:
        return ClusterSets(self.store, self.cluster_id)

    def pass_days(self, days: float) -> None:
        self.store.now_ms += int(days * DAY_MS)

    def let_the_lease_run_out(self) -> None:
        self.store.now_ms += LEASE_MS + 1

    def add(self, *, full: bool = False, unread: Sequence[str] = ()) -> Manifest:
        """One set more, whose number and chain are taken from what is there when it begins."""
        run = BackupRun(self.sets, Path(), self.store.clock_ms, full)
        before = None if run.before is None else run.before.manifest
        number = run.number
        data = [(name, f"{name} of {number}".encode()) for name in (CLUSTER_FILE, EVENTS_FILE)]
        start = 0 if before is None else before.events[0].end_offset
        manifest = Manifest(
            cluster_id=self.cluster_id,
            number=number,
            folder=f"sets/{number:08}-20261129T100000Z-{self.store.boundaries:08x}",
            created_ms=self.store.now_ms,
            previous=None if run.before is None else run.before.sha256,
            base=number if full or before is None else before.base,
            metadata_topic_id=None,
            events={0: EventRange(start, start + 1)},
            metadata_log_end=0,
            unread=tuple(unread),
            left_out=(),
            files=tuple(SetFile.of(name, content) for name, content in data),
        )
        publish(self.sets, manifest, data)
        return manifest

    def plan(self, last: int | None = None, within_days: float | None = None) -> PrunePlan:
        within_ms = None if within_days is None else int(within_days * DAY_MS)
        return plan_prune(self.sets, KeepRules(last, within_ms), self.store.now_ms)

    def apply(self, plan: PrunePlan) -> PruneOutcome:
        with lease_held(self.store, "backup prune", self.store.clock_ms) as hold:
            return Pruning(self.sets, plan, lambda: plan_prune(self.sets, plan.rules, hold.clock()), hold).run()

    def prune(self, last: int | None = None, within_days: float | None = None) -> PruneOutcome:
        return self.apply(self.plan(last, within_days))

    def demand_whole(self) -> None:
        """That every set that is there is whole with its chain, byte by byte."""
        assert self.sets.examined()[0] == []
        for number in self.sets.numbers():
            for one in self.sets.chain(number):
                for file in one.manifest.files:
                    self.sets.read_file(one.manifest, file.name)


def two_chains(*, unread: Sequence[str] = ()) -> SmallSets:
    """Sets 1 to 3, and 4 and 5 that need none of those; each a day after the one before."""
    small = SmallSets()
    for number in range(1, 6):
        small.add(full=number == 4, unread=unread if number > 3 else ())
        small.pass_days(1)
    return small
