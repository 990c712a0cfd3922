"""`recover indexes`: plans which indexes of some segments are missing or damaged, and writes what was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tieredctl.config.plan_key import key_for_seals
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.named_cluster import demand_same_cluster
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ops.healing.examination import Condition
from tieredctl.ops.healing.index_applying import (
    IndexRecovery,
    IndexRecoveryOutcome,
    RecoveredSegment,
    cached_file_names,
    cached_files,
)
from tieredctl.ops.healing.index_plan import Action, IndexRecoveryPlan, plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import demand_conditional_writes
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.process.progress import note
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace

_INDEX_INTERVAL = "index.interval.bytes"
_MOST_BYTES = 512 << 20
"""The most bytes of rebuilt parts that a plan holds; segments after that are left for another run."""
_OF_ONE_SEGMENT = frozenset(
    {ErrorCode.UNKNOWN_SEGMENT, ErrorCode.USAGE, ErrorCode.METADATA_INCOMPLETE, ErrorCode.OBJECT_ARCHIVED}
)


@dataclass(frozen=True, slots=True)
class WantedSegments:
    """The segments that a recovery is about: those named, else all that are selected."""

    segment_ids: Collection[str] | None = None
    selection: Selection = Selection()
    cluster_id: str | None = None
    """The cluster that they are from, if whoever named them knows."""
    are_all_known: bool = True
    """Not so where whoever named them could not look everywhere."""

    def doubts(self) -> list[str]:
        """What to say first where they are not all that may be wanted."""
        doubt = "The verify that wrote the file could not look everywhere: run it again once it can."
        return [] if self.are_all_known else [doubt]

    def may_pass_over(self, error: TieredctlError, store: ObjectStore) -> bool:
        """Whether the next segment may be looked at: one object may be archived, or forbidden. Raises TieredctlError if
        the store as a whole does not answer."""
        if self.the_one is not None:
            return False
        if error.code is ErrorCode.UNREADABLE:
            store.head(LEASE_KEY)
            return True
        return error.code in _OF_ONE_SEGMENT

    @property
    def the_one(self) -> str | None:
        """The segment, where one alone was named: its plan shows every part, and what keeps it from being made is an
        error."""
        ids = self.segment_ids or ()
        return next(iter(ids)) if len(ids) == 1 and self.cluster_id is None else None

    def ids(self, segments: SegmentsOnce) -> list[str]:
        """In the order in which one's producers are needed for the next. Raises TieredctlError as `SegmentsOnce`
        does."""
        return segments.ids(self.selection) if self.segment_ids is None else segments.in_order(self.segment_ids)

    def deleted_meanwhile(self, segment_ids: Iterable[str], later: SegmentsOnce) -> Mapping[str, str]:
        """Which segments brokers deleted while they were looked at, with the sentence that says so, by metadata that
        was read afterwards: nothing of them is damaged, lost, or to be written. Raises TieredctlError where it is the
        one that was named, or where that is not known."""
        deleted = dict[str, str]()
        for segment_id in segment_ids:
            why = later.why_not_promised(segment_id)
            if why is not None:
                if self.the_one is not None:
                    raise why
                deleted[segment_id] = why.message
        return deleted


@dataclass(slots=True)
class IndexIntervals:
    """The index interval of topics, in bytes."""

    metadata: MetadataPlace
    given: int | None
    """None to ask the live cluster."""
    known: dict[str, int] = field(default_factory=dict)
    """The intervals of the topics that were asked for."""

    def of(self, topic: str) -> int:
        """The one given, else the live cluster's setting; Kafka's default for a topic that it no longer has."""
        if topic not in self.known:
            self.known[topic] = _index_interval(topic, self.metadata) if self.given is None else self.given
        return self.known[topic]


@dataclass(slots=True)
class IndexesRecovery:
    """A plan for some segments, and what applies it."""

    wanted: WantedSegments
    cluster_id: str | None
    store_url: str
    _source: Document
    _metadata: MetadataPlace
    _remote: Remote[WritableObjectStore] | None
    """None if the store was opened for reading only."""
    _intervals: IndexIntervals
    plans: list[IndexRecoveryPlan] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    """Segments of which nothing is rebuilt, and why: the metadata no longer promises their objects."""
    left_over: int = 0
    """How many segments were not looked at: the plan holds enough."""

    def source(self) -> Document:
        """What it is about."""
        return self._source

    def findings(self) -> list[Finding]:
        """None: the rows show what is wrong with each part."""
        return []

    def to_write(self) -> int:
        """How many objects."""
        return sum(len(one.to_write()) for one in self.plans)

    def impossible(self) -> int:
        """How many parts stay as they are although they are not sound."""
        return sum(len(one.impossible()) for one in self.plans)

    @property
    def is_clean(self) -> bool:
        """Whether all that was wanted was looked at, and is sound."""
        return not (self.to_write() or self.impossible() or self.is_partial)

    @property
    def is_partial(self) -> bool:
        """Whether not all that was wanted was looked at."""
        return bool(self.passed_over or self.left_over) or not self.wanted.are_all_known

    @property
    def has_damaged_log(self) -> bool:
        """Whether nothing can be rebuilt from the log of one of them."""
        return any(one.log_damage is not None for one in self.plans)

    def in_need(self) -> list[IndexRecoveryPlan]:
        """The plans of segments with a part that is not sound."""
        return [one for one in self.plans if one.to_write() or one.impossible() or one.log_damage is not None]

    def rows(self) -> list[Document]:
        """One for each part of the one segment; of several, one for each part that is not sound."""
        if self.wanted.the_one is not None:
            return [part.document() for one in self.plans for part in one.parts]
        return [row for one in self.in_need() for row in _rows(one, [part.document() for part in one.parts])]

    def rows_done(self, outcome: IndexRecoveryOutcome) -> list[Document]:
        """The rows, each with its outcome."""
        if self.wanted.the_one is not None:
            return [row for one in outcome.segments for row in one.rows()]
        return [row for one in outcome.segments for row in _rows(one.plan, one.rows())]

    def summary(self) -> Document:
        """The segments, and how many parts are in each condition."""
        cached = {"files": self.cached_file_names(), "found": [str(path) for path in self.cached_files()]}
        if self.wanted.the_one is not None:
            (plan,) = self.plans
            (interval,) = self._intervals.known.values()
            return {**plan.summary(), "indexIntervalBytes": interval, "brokerCache": cached}
        conditions = Counter(part.found.condition for one in self.plans for part in one.parts)
        return {
            "segments": len(self.plans),
            "segmentsInNeed": len(self.in_need()),
            "logsDamaged": sum(one.log_damage is not None for one in self.plans),
            **{condition.value: conditions[condition] for condition in Condition},
            "toWrite": self.to_write(),
            "impossible": self.impossible(),
            "passedOver": [{"segmentId": one, "reason": why} for one, why in self.passed_over.items()],
            "segmentsLeftOver": self.left_over,
            "indexIntervalBytes": self._intervals.known,
            "brokerCache": cached,
        }

    def cached_file_names(self) -> list[str]:
        """The files that a broker keeps in its cache after reading the one segment, or those that are in need."""
        return [name for one in self._cached() for name in cached_file_names(one.metadata)]

    def cached_files(self) -> list[Path]:
        """The cached files of the segments, in the log directories whose metadata is read."""
        return [path for one in self._cached() for path in cached_files(one.metadata, self._metadata.log_dirs)]

    def _cached(self) -> Sequence[IndexRecoveryPlan]:
        return self.plans if self.wanted.the_one is not None else self.in_need()

    def apply(
        self, cluster_id: str, clock_ms: Callable[[], int], tell: Callable[[RecoveredSegment], None]
    ) -> IndexRecoveryOutcome:
        """Writes what was shown, while it holds the store's lease. `cluster_id` was confirmed, and names the copies of
        what is replaced. Whatever stops it is in the outcome. Raises
        TieredctlError if it cannot begin."""
        if self._remote is None:
            raise TypeError("a store that was opened to be read is not changed")
        store = self._remote.store
        with lease_held(store, "recover indexes", clock_ms) as lease, ExitStack() as opened:

            def read() -> EventStream:
                opened.close()
                return opened.enter_context(self._metadata.open())

            writes_over = any(part.stored for plan in self.plans for part in plan.to_write())
            key = key_for_seals() if writes_over else None
            outcome = IndexRecovery(self.plans, store, read, clock_ms, tell, key, cluster_id).run(lease)
        outcome.skipped = len(self.passed_over) + self.left_over
        return outcome

    def leave_out_deleted(self, later: SegmentsOnce) -> None:
        """Takes back what was planned for segments that brokers deleted meanwhile. Raises TieredctlError as
        `WantedSegments.deleted_meanwhile` does."""
        deleted = self.wanted.deleted_meanwhile((one.metadata.segment_id for one in self.in_need()), later)
        self.plans = [one for one in self.plans if one.metadata.segment_id not in deleted]
        if self.wanted.segment_ids is not None:
            self.passed_over.update(deleted)

    def plan(self, segments: SegmentsOnce, opened: Remote[ObjectStore]) -> None:
        """Plans each segment, in the order in which one's producers are needed for the next."""
        rebuilt: dict[str, bytes] = {}
        wanted, held = self.wanted, 0
        ids = wanted.ids(segments)
        for number, segment_id in enumerate(ids):
            if held > _MOST_BYTES:
                self.left_over = len(ids) - number
                return
            try:
                segment = segments.finished(segment_id)
                interval = self._intervals.of(segment.metadata.topic_id_partition.topic)
                plan = plan_index_recovery(segment, opened.store, opened.layout, interval, rebuilt)
            except TieredctlError as error:
                if not wanted.may_pass_over(error, opened.store):
                    raise
                self.passed_over[segment_id] = error.message
                continue
            held += plan.rebuilt_bytes
            if plan.rebuilt_snapshot is not None:
                rebuilt[segment_id] = plan.rebuilt_snapshot
            self.plans.append(plan)
            note("segments", number + 1, len(ids))


def _rows(plan: IndexRecoveryPlan, parts: Sequence[Document]) -> list[Document]:
    """Rows of a segment's parts that are not sound, with the segment; first one for the log where that is damaged."""
    metadata = plan.metadata
    of = {
        **partition_document(metadata.topic_id_partition),
        "startOffset": metadata.start_offset,
        "segmentId": metadata.segment_id,
    }
    log = {"part": Part.LOG.value, "condition": Condition.DAMAGED.value, "action": Action.IMPOSSIBLE.value}
    rows = [part for part in parts if part["condition"] != Condition.SOUND.value]
    return [of | one for one in ([] if plan.log_damage is None else [log | {"reason": plan.log_damage}]) + rows]


def plan_recovery_of_indexes(
    wanted: WantedSegments,
    metadata: MetadataPlace,
    store: StorePlace,
    index_interval_bytes: int | None,
    *,
    to_apply: bool,
) -> IndexesRecovery:
    """The plan for the indexes of some segments, made from their whole logs by one reading of the metadata. Changes
    nothing.

    Without `index_interval_bytes` the live cluster is asked. Raises TieredctlError as opening does, and
    `store-incapable` if the plan is to be applied but this store does not allow it.
    """
    opened, remote = store.open_to(apply=to_apply)
    with metadata.open() as stream:
        metadata.demand_topic_based()
        cluster_id = stream.source.cluster_id
        demand_same_cluster(cluster_id, wanted.cluster_id)
        segments = SegmentsOnce.of(stream)
        source = {**stream.source.describe(), "store": opened.store.url, "layout": opened.layout.name}
    intervals = IndexIntervals(metadata, index_interval_bytes)
    recovery = IndexesRecovery(wanted, cluster_id, opened.store.url, source, metadata, remote, intervals)
    recovery.plan(segments, opened)
    if recovery.in_need() and metadata.export is None:
        with metadata.open() as stream:
            recovery.leave_out_deleted(SegmentsOnce.of(stream))
    if remote is not None and recovery.to_write():
        demand_conditional_writes(remote.store)
    return recovery


def _index_interval(topic: str, place: MetadataPlace) -> int:
    """The live cluster's setting, if there is one; Kafka's default for a topic that it no longer has."""
    if place.cluster is None:
        return DEFAULT_INDEX_INTERVAL_BYTES
    with place.cluster.open() as cluster:
        return _asked(cluster, topic)


def _asked(cluster: Cluster, topic: str) -> int:
    if topic not in cluster.topic_names():
        return DEFAULT_INDEX_INTERVAL_BYTES
    return int(cluster.topic_configs([topic])[topic][_INDEX_INTERVAL].value or DEFAULT_INDEX_INTERVAL_BYTES)
