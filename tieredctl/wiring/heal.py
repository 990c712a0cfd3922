"""`heal`: plans which lost objects of segments come back, and from where, and writes what was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tieredctl.config.plan_key import key_for_seals, signing_key, usable_key
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.replica_segments import ReplicaDirectories
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.healing.healing import HealedSegment, Healing, HealingOutcome
from tieredctl.ops.healing.healing_plan import Healer, HealingPlan
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import FreshSegments, demand_conditional_writes
from tieredctl.ops.healing.sources import ObjectSources, OtherStore
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.accepted_losses import (
    AcceptedLosses,
    accepted_now,
    read_accepted_losses,
    record_losses,
)
from tieredctl.ops.verification.options import RemovedSegments
from tieredctl.ops.verification.removed_keys import read_removed_keys
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.process.progress import note
from tieredctl.wiring.index_recovery import IndexIntervals, WantedSegments
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace


@dataclass(frozen=True, slots=True)
class HealingSources:
    """Where bytes are looked for, besides the store itself."""

    log_dirs: Sequence[Path] = ()
    """Brokers' log directories."""
    store: StorePlace | None = None
    """Another bucket or prefix, with the same layout."""


@dataclass(slots=True)
class SegmentsHealing:
    """A plan for some segments, and what applies it."""

    cluster_id: str | None
    store_url: str
    source: Document
    """What it is about."""
    _metadata: MetadataPlace
    _remote: Remote[WritableObjectStore] | None
    """None if the store was opened for reading only."""
    _healer: Healer
    _intervals: IndexIntervals
    plans: list[HealingPlan] = field(default_factory=list)
    """The plans of segments with an object that is not sound."""
    segments: int = 0
    """How many were looked at."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """Segments that were not looked at, and why."""

    def to_write(self) -> int:
        """How many objects."""
        return sum(len(one.to_write()) for one in self.plans)

    def unaccepted(self) -> int:
        """How many objects nothing has the bytes of, and nobody accepted as lost."""
        return sum(len(one.unaccepted()) for one in self.plans)

    def unknown(self) -> int:
        """How many objects may have bytes where nothing could be read."""
        return sum(len(one.unknown()) for one in self.plans)

    def rows(self) -> list[Document]:
        """One for each object that is not sound."""
        return [
            row | {"accepted": one.part in plan.accepted}
            for plan in self.plans
            for one, row in zip(plan.objects, plan.rows(), strict=True)
        ]

    def summary(self) -> Document:
        """How many segments and objects, by what becomes of them."""
        sources = Counter(one.found.source.value for plan in self.plans for one in plan.objects if one.found)
        accepted = sum(len(one.accepted) for one in self.plans)
        return {
            "segments": self.segments,
            "segmentsInNeed": len(self.plans),
            "toWrite": self.to_write(),
            "impossible": self.unaccepted() + accepted,
            "unknown": self.unknown(),
            "accepted": accepted,
            "bySource": dict(sorted(sources.items())),
            "passedOver": [{"segmentId": one, "reason": why} for one, why in self.passed_over.items()],
        }

    def apply(
        self, cluster_id: str, clock_ms: Callable[[], int], tell: Callable[[HealedSegment], None], *, accept_loss: bool
    ) -> HealingOutcome:
        """Writes what was shown, while it holds the store's lease; with `accept_loss`, also records what nothing has
        the bytes of. `cluster_id` was confirmed, and names the copies of what is replaced. Whatever stops it is in the
        outcome. Raises TieredctlError if it cannot begin."""
        if self._remote is None:
            raise TypeError("a store that was opened to be read is not changed")
        store = self._remote.store
        seal = signing_key() if accept_loss else key_for_seals()

        def accept(plan: HealingPlan) -> None:
            assert seal is not None
            record_losses(store, seal, plan.losses(clock_ms()))

        with lease_held(store, "heal", clock_ms) as lease, ExitStack() as opened:

            def read() -> EventStream:
                opened.close()
                return opened.enter_context(self._metadata.open())

            fresh, accepting = FreshSegments(read, clock_ms, cluster_id), accept if accept_loss else None
            healing = Healing(self.plans, self._healer, store, fresh, self._intervals.of, seal, accepting, tell)
            outcome = healing.run(lease)
        outcome.skipped = len(self.passed_over)
        return outcome

    def plan(
        self, wanted: WantedSegments, ids: Sequence[str], segments: SegmentsOnce, accepted: AcceptedLosses
    ) -> None:
        """Plans each of the wanted segments, whose ids are given in the order in which one's producers are needed for
        the next."""
        rebuilt: dict[str, bytes] = {}
        removed = RemovedSegments(partial(read_removed_keys, self._healer.store, usable_key()))
        for number, segment_id in enumerate(ids):
            try:
                segment = segments.finished(segment_id)
                interval = self._intervals.of(segment.metadata.topic_id_partition.topic)
                plan = self._healer.plan(segment, interval, rebuilt)
            except TieredctlError as error:
                if not wanted.may_pass_over(error, self._healer.store):
                    raise
                self.passed_over[segment_id] = error.message
                continue
            missing = [one.key for one in plan.objects if one.stored is None]
            # What is named is wanted all the same.
            if missing and wanted.segment_ids is None and (by := removed.plan_of_all(missing)):
                self.passed_over[segment_id] = f"plan {by.plan_id} removed its objects: name it to bring them back"
                continue
            self.segments += 1
            if plan.rebuilt_snapshot is not None:
                rebuilt[segment_id] = plan.rebuilt_snapshot
            if plan.objects:
                self.plans.append(replace(plan.without_bytes(), accepted=self._accepted(plan, accepted)))
            note("segments", number + 1, len(ids))

    def leave_out_deleted(self, wanted: WantedSegments, later: SegmentsOnce) -> None:
        """Takes back what was planned for segments that brokers deleted meanwhile. Raises TieredctlError as
        `WantedSegments.deleted_meanwhile` does."""
        deleted = wanted.deleted_meanwhile((one.metadata.segment_id for one in self.plans), later)
        self.plans = [one for one in self.plans if one.metadata.segment_id not in deleted]
        self.segments -= len(deleted)
        if wanted.segment_ids is not None:
            self.passed_over.update(deleted)

    def _accepted(self, plan: HealingPlan, accepted: AcceptedLosses) -> list[Part]:
        store, segment_id = self._healer.store, plan.metadata.segment_id
        return [
            one.part
            for one in plan.not_found()
            if accepted_now(store, accepted, segment_id, one.key, missing=one.stored is None)
        ]


def plan_healing(
    wanted: WantedSegments,
    metadata: MetadataPlace,
    store: StorePlace,
    sources: HealingSources,
    index_interval_bytes: int | None,
    *,
    to_apply: bool,
) -> SegmentsHealing:
    """The plan for the lost objects of some segments, made of their whole objects by one reading of the metadata.
    Changes nothing.

    Without `index_interval_bytes` the live cluster is asked. Raises TieredctlError as opening does, and
    `store-incapable` if the plan is to be applied but this store does not allow it.
    """
    opened, remote = store.open_to(apply=to_apply)
    others = [] if sources.store is None else [_other(sources.store, store, opened)]
    with metadata.open() as stream:
        metadata.demand_topic_based()
        cluster_id = stream.source.cluster_id
        demand_same_cluster(cluster_id, wanted.cluster_id)
        segments = SegmentsOnce.of(stream)
        source = {**stream.source.describe(), "store": opened.store.url, "layout": opened.layout.name}
    ids = wanted.ids(segments)
    wanted_ids = frozenset(ids)

    def is_wanted(key: str) -> bool:
        explained = opened.layout.explain(key)
        return explained is not None and explained.segment_id in wanted_ids

    healer = Healer(
        *opened, ObjectSources(opened.store, others, is_wanted), ReplicaDirectories.of(tuple(sources.log_dirs))
    )
    intervals = IndexIntervals(metadata, index_interval_bytes)
    healing = SegmentsHealing(cluster_id, opened.store.url, source, metadata, remote, healer, intervals)
    healing.plan(wanted, ids, segments, read_accepted_losses(opened.store, usable_key()))
    if healing.plans and metadata.export is None:
        with metadata.open() as stream:
            healing.leave_out_deleted(wanted, SegmentsOnce.of(stream))
    if remote is not None and healing.plans:
        demand_conditional_writes(remote.store)
    return healing


def _other(other: StorePlace, own: StorePlace, opened_own: Remote[ObjectStore]) -> OtherStore:
    """Another store with the same layout. Raises TieredctlError `usage` where it is the same store."""
    place = replace(other, layout=opened_own.layout.name, layout_options=own.layout_options)
    opened: Remote[ObjectStore] = place.open()
    if opened.store.url == opened_own.store.url:
        raise TieredctlError(ErrorCode.USAGE, f"--from-store is the store itself: {opened.store.url}.")
    return OtherStore(*opened)
