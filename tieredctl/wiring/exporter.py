"""`exporter`: a cluster's figures, looked at again and again; each part by itself, so that one that fails leaves the
others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError, system_error
from tieredctl.model.clock import Clock
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import FINDING_KINDS, Finding, Severity
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, ReplayFacts
from tieredctl.ops.doctor.diagnosis import diagnose
from tieredctl.ops.doctor.gathering import (
    ReadMetadata,
    gather_settings,
    with_group_offsets,
    with_metadata,
    with_offsets,
)
from tieredctl.ops.doctor.looking import TOPIC_SETTINGS
from tieredctl.ops.doctor.metadata_progress import Watch, brokers_at_a_standstill
from tieredctl.ops.doctor.unseen import with_unseen
from tieredctl.ops.guards.second_look import are_in_doubt, confirmed
from tieredctl.ops.metadata.state import failing_copies, failing_finding
from tieredctl.ops.metadata.stats import ASSUMED_EVENTS_PER_SECOND
from tieredctl.ops.monitoring.followed_events import FindingCounts, FollowedEvents, FollowedFigures
from tieredctl.ops.monitoring.partition_figures import PartitionFigures, troubled_partitions
from tieredctl.ops.monitoring.topic_figures import OTHERS, SeriesCap, TopicFigures, topic_figures
from tieredctl.ops.status.board import StoreFacts
from tieredctl.ops.status.last_results import LastResults, is_awaited, read_results, result_files
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.wiring.exporter_leftovers import KnownLeftovers, LeftoversInStore
from tieredctl.wiring.places import ClusterPlace
from tieredctl.wiring.status import StatusPlaces, store_facts
from tieredctl.wiring.topics_place import TopicsPlace

_Seen = TypeVar("_Seen")

METADATA, CLUSTER, DIAGNOSIS, STORE, RESULTS = "metadata", "cluster", "diagnosis", "store", "results"
"""The parts, by the values of the label `part`."""
_DIAGNOSIS_TIMES = 20
"""The checks of each partition are made again no sooner than after so many times as long as they took."""


@dataclass(frozen=True, slots=True)
class PartState:
    """How the last look at a part went."""

    is_up: bool = False
    last_success_ms: int | None = None
    failures: int = 0
    """Since the start."""
    error: TieredctlError | None = None
    next_look_ms: int = 0
    """No look at it is due before then: until then it is as good as just seen."""


class ClusterSeen(NamedTuple):
    """What a live cluster reported."""

    snapshot: ClusterSnapshot
    cluster_id: str | None
    standstill: Finding | None
    """Where brokers stopped applying the cluster's metadata: their answers are outdated, and none is used."""


@dataclass(frozen=True, slots=True)
class Observation:
    """All that is known now; None is unknown."""

    parts: Mapping[str, PartState] = field(default_factory=dict)
    readings: int = 0
    """How often the metadata was read from its beginning."""
    losses: int = 0
    """How often it was another topic, or lacked what had been read before."""
    seconds: float | None = None
    """How long the last look at everything took."""
    metadata: FollowedFigures | None = None
    cluster: ClusterSeen | None = None
    topics: Sequence[TopicFigures] = ()
    topics_in_others: int = 0
    partitions: Sequence[PartitionFigures] = ()
    """Those in trouble, of the topics that have series of their own."""
    findings: FindingCounts | None = None
    store: StoreFacts | None = None
    results: LastResults | None = None

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id by the cluster itself, else by its metadata."""
        cluster_id = None if self.cluster is None else self.cluster.cluster_id
        return cluster_id or (None if self.metadata is None else self.metadata.cluster_id)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Exporter:
    """Looks at a cluster, what is left of it, its store and earlier results. To be closed."""

    places: StatusPlaces
    older_than_ms: int
    most_topics: int
    tell: Callable[[str, TieredctlError | None], None] = lambda _part, _error: None
    """Told when a part cannot be known any more, and (None) when it is known again."""
    tell_loss: Callable[[TieredctlError], None] = lambda _why: None
    """Told why the metadata that was known is dropped, and read from its beginning."""
    now_ms: Callable[[], int] = _now_ms
    latest: Observation = field(default_factory=Observation)
    """As of the last `refresh`; replaced as a whole."""
    _states: dict[str, PartState] = field(default_factory=dict)
    _events: FollowedEvents | None = None
    _leftovers: LeftoversInStore | None = None
    _cap: SeriesCap = field(init=False)
    _diagnosis: Sequence[Finding] | None = None
    """What the last diagnosis found: what moves is said once two in a row find it."""
    _reported: FindingCounts = field(default_factory=FindingCounts)
    _next_diagnosis: float = 0.0
    _diagnosed_metadata: bool = False
    """Whether the last diagnosis knew the metadata: what it found there is not known while that cannot be read."""
    _results: LastResults | None = None
    _written: set[Path] = field(default_factory=set)
    """Where there was a result once: until then, it is not known yet."""
    _named: set[Path] = field(default_factory=set)
    """Those of which it was told that they are not there yet."""
    _signs: Sequence[list[tuple[int, int, int]] | None] = ()
    _ours: tuple[str | None, str | None] = (None, None)
    """The store and the cluster, as last known, that results have to be of."""

    def __post_init__(self) -> None:
        self._cap = SeriesCap(self.most_topics)
        if self.places.metadata is not None:
            self._events = FollowedEvents(self._open_source, tell_loss=self.tell_loss)
        if self.places.store is not None:
            self._leftovers = LeftoversInStore(self.places.store)

    def refresh(self) -> None:
        """Looks at everything, up to now. Raises nothing for what cannot be known."""
        began = time.monotonic()
        clock = Clock(self.now_ms(), self.older_than_ms)
        place = self.places.metadata
        live = None if place is None else place.cluster
        # Leaders before the metadata, so that what is tiered meanwhile is never counted as lagging.
        cluster = None if live is None else self._part(CLUSTER, lambda: _look(live, clock))
        metadata = None if self._events is None else self._part(METADATA, self._events.read)
        whole = None if metadata is None or metadata.is_broken else metadata.metadata
        snapshot = None if cluster is None or cluster.standstill else cluster.snapshot
        left = KnownLeftovers() if whole is None or self._leftovers is None else self._leftovers.of(whole, clock)
        topics = topic_figures(whole, snapshot, clock, left.removed)
        shown, others = self._cap.apply(topics)
        store = None if self.places.store is None else self._part(STORE, self._store)
        if self.places.results:
            self._read_results(store, cluster, metadata)
        if live is None:
            findings = None if metadata is None else metadata.findings + _unfinished(metadata, topics, clock, left)
        else:
            findings = self._diagnosed(live, cluster, metadata, left)
        self.latest = Observation(
            parts=dict(self._states),
            readings=0 if self._events is None else self._events.readings,
            losses=0 if self._events is None else self._events.losses,
            seconds=time.monotonic() - began,
            metadata=metadata,
            cluster=cluster,
            topics=shown,
            topics_in_others=others,
            partitions=troubled_partitions(
                *(whole, snapshot, clock, {one.topic for one in shown} - {OTHERS}), removed=left.removed
            ),
            findings=findings,
            store=store,
            results=self._results,
        )

    def close(self) -> None:
        """Closes what is open."""
        if self._events is not None:
            self._events.close()

    def _open_source(self) -> MetadataSource:
        place = self.places.metadata
        if place is None:
            raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to read metadata from.")
        source = place.open_source()
        try:
            place.demand_topic_based()
        except BaseException:
            source.close()
            raise
        return source

    def _part(self, name: str, look: Callable[[], _Seen]) -> _Seen | None:
        """What a look gives, and notes how it went; None where it failed."""
        before = self._states.get(name, PartState())
        try:
            value = look()
        except (TieredctlError, OSError, MemoryError) as fault:
            error = fault if isinstance(fault, TieredctlError) else system_error(fault)
            self._states[name] = replace(before, is_up=False, failures=before.failures + 1, error=error)
            if before.is_up or before.error is None:
                self.tell(name, error)
            return None
        self._states[name] = replace(before, is_up=True, last_success_ms=self.now_ms(), error=None)
        if before.error is not None:
            self.tell(name, None)
        return value

    def _diagnosed(
        self,
        place: ClusterPlace,
        cluster: ClusterSeen | None,
        metadata: FollowedFigures | None,
        leftovers: KnownLeftovers,
    ) -> FindingCounts | None:
        """All findings of `doctor`; without the metadata those that need none of it, and that the others were not
        looked for. Its checks make an object of each segment, so they are made again only when their share of the time
        is small, or they failed, or the metadata went away or came back, or to confirm what may be movement."""
        if cluster is None:
            self._diagnosis, self._next_diagnosis = None, 0.0
            return None
        if cluster.standstill is not None:
            return _counts([cluster.standstill])
        began, knows_metadata = time.monotonic(), metadata is not None
        if began >= self._next_diagnosis or knows_metadata is not self._diagnosed_metadata:
            before = (self._diagnosis or ()) if knows_metadata is self._diagnosed_metadata else ()
            self._diagnosed_metadata = knows_metadata
            self._diagnosis = self._part(DIAGNOSIS, lambda: _diagnosis(place, cluster.snapshot, metadata, leftovers))
            self._next_diagnosis = began
            if self._diagnosis is not None:
                self._reported = _counts(confirmed(before, self._diagnosis))
                is_new = are_in_doubt(self._diagnosis) and not are_in_doubt(before)
                pause = 0.0 if is_new else (time.monotonic() - began) * _DIAGNOSIS_TIMES
                self._next_diagnosis += pause
                next_look_ms = self.now_ms() + round(pause * 1000)
                self._states[DIAGNOSIS] = replace(self._states[DIAGNOSIS], next_look_ms=next_look_ms)
        if self._diagnosis is None:
            return None
        return self._reported + (Counter() if metadata is None else metadata.findings)

    def _store(self) -> StoreFacts:
        place = self.places.store
        if place is None:
            raise TieredctlError(ErrorCode.NO_STORE, "No store was given.")
        return store_facts(place, lists_all=False)

    def _read_results(
        self, store: StoreFacts | None, cluster: ClusterSeen | None, metadata: FollowedFigures | None
    ) -> None:
        """Reads the results of earlier runs, where their files changed. One that is being written leaves what was read
        before; one that was never written is unknown, and nothing failed."""
        self._written.update(one for one in self.places.results if not is_awaited(one))
        paths = [one for one in self.places.results if one in self._written]
        for path in self.places.results:
            if path not in self._written and path not in self._named:
                self._named.add(path)
                self.tell(RESULTS, TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.", hint=""))
        if not paths:
            return
        signs = [_sign(path) for path in paths]
        ours = self._known_places(store, cluster, metadata)
        state = self._states.get(RESULTS)
        if state is not None and state.is_up and (signs, ours) == (self._signs, self._ours):
            self._states[RESULTS] = replace(state, last_success_ms=self.now_ms())
            return
        if ours != self._ours:
            self._results, self._ours = None, ours  # what was read may be of another one
        results = self._part(RESULTS, lambda: read_results(paths, *ours))
        if results is not None:
            self._results, self._signs = results, signs

    def _known_places(
        self, store: StoreFacts | None, cluster: ClusterSeen | None, metadata: FollowedFigures | None
    ) -> tuple[str | None, str | None]:
        """The store and the cluster; what does not answer now is the one that it was."""
        url, cluster_id = self._ours
        given_url = None if self.places.store is None else self.places.store.url
        of_cluster = None if cluster is None else cluster.cluster_id
        now_id = of_cluster or (None if metadata is None else metadata.cluster_id)
        return store.url if store is not None else url or given_url, now_id or cluster_id


def _look(place: ClusterPlace, clock: Clock) -> ClusterSeen:
    with place.open() as cluster:
        if standstill := brokers_at_a_standstill(cluster, Watch()):
            return ClusterSeen(ClusterSnapshot(clock), cluster.cluster_id, standstill)
        settings = gather_settings(cluster, clock, None)
        for finding in settings.not_looked_at:
            if finding.subject == TOPIC_SETTINGS:
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, finding.message, hint="")
        return ClusterSeen(with_offsets(settings, cluster), cluster.cluster_id, None)


def _diagnosis(
    place: ClusterPlace, snapshot: ClusterSnapshot, metadata: FollowedFigures | None, leftovers: KnownLeftovers
) -> Sequence[Finding]:
    """Without what is wrong with the metadata itself."""

    def read() -> ReadMetadata:
        if metadata is None:
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, "they could not be read.", hint="")
        return ReadMetadata([metadata.metadata], _replay(metadata), ())

    is_whole = metadata is not None and not (metadata.is_broken or metadata.may_be_more)
    with place.open_with_groups() as cluster:
        facts = leftovers.applied_to(with_metadata(snapshot, read, cluster if is_whole else None))
        with TopicsPlace(cluster=place).lookup() as topics:
            facts = with_unseen(facts, cluster, topics)
        facts = with_group_offsets(facts, cluster)
    return diagnose(facts).findings


def _replay(metadata: FollowedFigures) -> ReplayFacts:
    every = metadata.partitions.values()
    events, dead = sum(one.events for one in every), sum(one.dead_events for one in every)
    unkeyed = known_sum(one.unkeyed for one in every)
    return ReplayFacts(events, dead / events if events else 0.0, events / ASSUMED_EVENTS_PER_SECOND, unkeyed)


def _counts(findings: Iterable[Finding]) -> FindingCounts:
    return Counter((one.code.value, one.severity.label) for one in findings)


def _unfinished(
    metadata: FollowedFigures, topics: Sequence[TopicFigures], clock: Clock, leftovers: KnownLeftovers
) -> FindingCounts:
    """What is stuck, or was removed, and what fails again and again."""
    counts = _counts(failing_finding(one, clock.now_ms) for one in failing_copies(metadata.metadata, clock.now_ms))
    counts += _counts([*leftovers.findings, *leftovers.not_looked_at])
    for code, count in (
        (FindingCode.COPY_STUCK, known_sum(one.stuck_copies for one in topics)),
        (FindingCode.DELETE_STUCK, known_sum(one.stuck_deletions for one in topics)),
    ):
        if count is None:
            counts[FindingCode.CHECK_NOT_MADE.value, Severity.WARNING.label] += 1
        elif count:
            counts[code.value, FINDING_KINDS[code].severity.label] += count
    return counts


def _sign(path: Path) -> list[tuple[int, int, int]] | None:
    """What shows that results are other ones; None where they cannot be looked at."""
    try:
        statuses = [file.stat() for file in result_files(path)]
    except (OSError, TieredctlError):
        return None
    return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in statuses]
