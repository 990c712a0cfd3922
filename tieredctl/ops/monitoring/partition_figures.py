"""Figures of single partitions: how far each is tiered, and which are in trouble. Times in ms since the epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from tieredctl.model.clock import MOST_AHEAD_MS, Clock, is_dated
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import (
    SEGMENT_BYTES,
    SEGMENT_MS,
    SettingUnknownError,
    TopicSettings,
    copy_lag,
)
from tieredctl.ops.doctor.partition_rules import untiered
from tieredctl.ops.metadata.state import failing_copies
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

MOST_OF_A_TOPIC = 100
"""Partitions with series of their own: the worst of each topic."""
_LATE_SEGMENTS = 3
"""A partition is late where its newest tiered record is older than so many segments take records, besides the lag that
was asked for (KIP-1241)."""
_STATE = RemoteLogSegmentState


@dataclass(frozen=True, slots=True)
class Tiering:
    """How far a partition is tiered, by the metadata: its highest offset (inclusive), and its newest record."""

    end: int
    newest_ms: int | None
    """None where it has no timestamp, or one that is none."""


TieringOf = Callable[[TopicIdPartition], Tiering | None]


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """What a partition has that is not tiered; None is unknown."""

    offsets: int | None
    bytes: int | None
    """About as much, with what waits for the copy lag."""
    segment_sizes: float | None
    """Bytes in segments of `segment.bytes`, without what waits for the copy lag."""
    since_ms: int | None
    """The newest tiered record; None where nothing lags, too."""


@dataclass(frozen=True, slots=True)
class PartitionFigures:
    """A partition in trouble. None is unknown."""

    topic: str
    partition: int
    leader: int | None
    lag: PartitionLag | None
    stuck_copies: int
    failed_copies: int
    """Tries in a row of the copy that fails now."""

    @property
    def badness(self) -> tuple[int, int, float]:
        """Greater for what is worse."""
        sizes = None if self.lag is None else self.lag.segment_sizes
        return self.failed_copies, self.stuck_copies, sizes or 0.0


def intended_lag_ms(settings: TopicSettings) -> int | None:
    """How long closed segments wait for their copy as they should; None where that is unknown, or goes by bytes."""
    try:
        lag = copy_lag(settings)
    except SettingUnknownError:
        return None
    return 0 if lag is None else lag.ms if lag.ms > 0 else None


def tiering_of(metadata: ReplayedMetadata | None, clock: Clock) -> TieringOf:
    """How far each partition is tiered; of all unknown without metadata."""
    if metadata is None:
        return lambda _: None
    rows = np.flatnonzero(metadata.rows.states == _STATE.COPY_SEGMENT_FINISHED)
    owners, count = metadata.rows.partitions[rows], len(metadata.partitions)
    ends, newest = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    np.maximum.at(ends, owners, metadata.end_offsets(rows))
    np.maximum.at(newest, owners, metadata.max_timestamps(rows))
    has = np.bincount(owners, minlength=count) > 0

    def of(partition: TopicIdPartition) -> Tiering | None:
        number = metadata.events.partitions.get(partition)
        if number is None or not has[number]:
            return None
        newest_ms = int(newest[number])
        return Tiering(int(ends[number]), newest_ms if is_dated(newest_ms, clock.now_ms) else None)

    return of


def lag_of(facts: PartitionFacts, settings: TopicSettings, tiering: TieringOf, *, sees_records: bool) -> PartitionLag:
    """By what the leader reported and the metadata has; `sees_records` where the metadata is known."""
    tiered = tiering(facts.partition)
    ends = [] if facts.latest_tiered is None else [facts.latest_tiered]
    ends += [] if tiered is None else [tiered.end]
    end = max(ends, default=None)
    offsets = _not_tiered(facts, end, sees_records)
    waiting = untiered(facts, settings, end) if ends or sees_records else None
    is_empty = facts.latest is not None and facts.latest == facts.earliest_local
    return PartitionLag(
        offsets,
        0 if is_empty else None if waiting is None else waiting.waits + waiting.behind,
        None if waiting is None else waiting.behind / max(1, settings.number(SEGMENT_BYTES)),
        tiered.newest_ms if tiered is not None and offsets else None,
    )


def _not_tiered(facts: PartitionFacts, tiered_end: int | None, sees_records: bool) -> int | None:
    if facts.latest is None:
        return None
    if tiered_end is not None:
        return max(0, facts.latest - (tiered_end + 1))
    return facts.latest - facts.earliest if sees_records and facts.earliest is not None else None


def troubled_partitions(
    metadata: ReplayedMetadata | None,
    cluster: ClusterSnapshot | None,
    clock: Clock,
    topics: Collection[str],
    *,
    removed: Collection[str] = (),
) -> Sequence[PartitionFigures]:
    """The partitions of these topics whose copies fail or are stuck, or that are late: the worst of each, by topic and
    partition. A topic that was recreated is one by its name. `metadata` is None where it is not known whole;
    `removed` as in `topic_figures`."""
    failing = {} if metadata is None else {one.partition: one.tries for one in failing_copies(metadata, clock.now_ms)}
    stuck = {} if metadata is None else _stuck_copies(metadata, clock, removed)
    tiering = tiering_of(metadata, clock)
    leaders = dict[TopicIdPartition, int | None]()
    lags = dict[TopicIdPartition, PartitionLag]()
    all_facts = [] if cluster is None else [(one, cluster.topics[one.partition.topic]) for one in cluster.partitions]
    for facts, settings in all_facts:
        lag = lag_of(facts, settings, tiering, sees_records=metadata is not None)
        if facts.partition in failing or facts.partition in stuck or _is_late(lag, settings, clock):
            leaders[facts.partition], lags[facts.partition] = facts.leader, lag
    found = [
        PartitionFigures(
            one.topic, one.partition, leaders.get(one), lags.get(one), stuck.get(one, 0), failing.get(one, 0)
        )
        for one in {*failing, *stuck, *lags}
        if one.topic in topics
    ]
    found.sort(key=lambda one: (one.topic, one.partition, one.lag is None))
    named = [_together([*ones]) for _, ones in groupby(found, key=lambda one: (one.topic, one.partition))]
    worst: list[PartitionFigures] = []
    for _, of_topic in groupby(named, key=lambda one: one.topic):
        ordered = sorted(of_topic, key=lambda one: one.badness, reverse=True)
        worst += sorted(ordered[:MOST_OF_A_TOPIC], key=lambda one: one.partition)
    return worst


def _together(ones: Sequence[PartitionFigures]) -> PartitionFigures:
    """Those of one name, where the first is the cluster's if any is."""
    stuck, failed = sum(one.stuck_copies for one in ones), max(one.failed_copies for one in ones)
    return replace(ones[0], stuck_copies=stuck, failed_copies=failed)


def _stuck_copies(metadata: ReplayedMetadata, clock: Clock, removed: Collection[str]) -> Mapping[TopicIdPartition, int]:
    rows = metadata.besides(removed, np.flatnonzero(metadata.rows.states == _STATE.COPY_SEGMENT_STARTED))
    times = metadata.entered_ms(rows)
    late = (clock.now_ms - times > clock.older_than_ms) & (times <= clock.now_ms + MOST_AHEAD_MS)
    counts = Counter(metadata.rows.partitions[rows[late]].tolist())
    return {metadata.partitions[number]: count for number, count in counts.items()}


def _is_late(lag: PartitionLag, settings: TopicSettings, clock: Clock) -> bool:
    if lag.segment_sizes is not None and lag.segment_sizes > _LATE_SEGMENTS:
        return True
    intended = intended_lag_ms(settings)
    if lag.since_ms is None or intended is None or not settings.is_known(SEGMENT_MS):
        return False
    return clock.now_ms - lag.since_ms > _LATE_SEGMENTS * settings.number(SEGMENT_MS) + intended
