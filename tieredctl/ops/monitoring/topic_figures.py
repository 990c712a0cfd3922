"""Figures of each topic: what is tiered, how far that is behind, and what is stuck. Times in ms since the epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.clock import MOST_AHEAD_MS, Clock
from tieredctl.model.events import STORED_STATES, RemoteLogSegmentState
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import SEGMENT_MS, TopicSettings
from tieredctl.ops.monitoring.partition_figures import TieringOf, intended_lag_ms, lag_of, tiering_of
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

OTHERS = "(other)"
"""What the topics together are called that have no series of their own. Kafka allows no such name, but metadata may
have any: a topic that is called so is one of them."""
_STATE = RemoteLogSegmentState
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The figures of one topic by its name, or of several together. None is unknown."""

    topic: str
    is_in_cluster: bool = False
    """Whether the cluster has it, as a tiered topic: only then it has disks, and a lag."""
    segments: int | None = None
    """In the remote store, by the metadata; with those that are being deleted, and those of deleted topics."""
    remote_bytes: int | None = None
    local_bytes: int | None = None
    """On the leaders' disks."""
    lag_offsets: int | None = None
    """Not tiered; with the active segments, which never are."""
    lag_bytes: int | None = None
    """About as much, by the size of records on the disk."""
    lag_segment_sizes: float | None = None
    """Untiered bytes of the partition that is furthest behind, in segments of `segment.bytes`, without what waits for
    the copy lag. A topic whose segments are closed by time may have many, and little here."""
    segment_ms: int | None = None
    """How long a segment takes records; None for several topics together."""
    intended_lag_ms: int | None = None
    """How long segments wait for their copy as they should (KIP-1241); None for several topics together."""
    lag_since_ms: int | None = None
    """The newest tiered record of the partition that lags longest, of those whose records have times; None where
    nothing lags, too."""
    stuck_copies: int | None = None
    stuck_deletions: int | None = None
    oldest_stuck_copy_ms: int | None = None
    oldest_stuck_deletion_ms: int | None = None


def topic_figures(
    metadata: ReplayedMetadata | None,
    cluster: ClusterSnapshot | None,
    clock: Clock,
    removed: Collection[str] = (),
) -> list[TopicFigures]:
    """The figures of every topic that the metadata or the cluster has, by name. `metadata` is None where it is not
    known whole. Segments are not stuck whose objects tieredctl removed: their ids are `removed`."""
    by_topic: dict[str, TopicFigures] = {}
    if metadata is not None:
        by_topic = {one.topic: one for one in _of_metadata(metadata, clock, removed)}
    if cluster is not None:
        partitions = defaultdict[str, list[PartitionFacts]](list)
        for facts in cluster.partitions:
            partitions[facts.partition.topic].append(facts)
        tiered = tiering_of(metadata, clock)
        for name, settings in cluster.topics.items():
            figures = by_topic.get(name) or _without_segments(name, is_known=metadata is not None)
            by_topic[name] = _with_lag(figures, partitions[name], settings, tiered, metadata is not None)
    return [by_topic[name] for name in sorted(by_topic)]


def _without_segments(topic: str, *, is_known: bool) -> TopicFigures:
    if not is_known:
        return TopicFigures(topic)
    return TopicFigures(topic, segments=0, remote_bytes=0, stuck_copies=0, stuck_deletions=0)


def _of_metadata(metadata: ReplayedMetadata, clock: Clock, removed: Collection[str]) -> Iterable[TopicFigures]:
    names = sorted({partition.topic for partition in metadata.partitions})
    numbers = {name: number for number, name in enumerate(names)}
    of_partitions = np.array([numbers[partition.topic] for partition in metadata.partitions], np.int64)
    topics = of_partitions[metadata.rows.partitions] if names else np.zeros(0, np.int64)
    count = len(names)

    def rows_in(*states: RemoteLogSegmentState) -> Ints:
        return np.flatnonzero(np.isin(metadata.rows.states, states))

    def late(state: RemoteLogSegmentState) -> tuple[list[int], list[int], set[int]]:
        """How many are late, and since when, by topic; and the topics of which that is unknown."""
        rows = metadata.besides(removed, rows_in(state))
        times = metadata.entered_ms(rows)
        unknown = topics[rows[times > clock.now_ms + MOST_AHEAD_MS]]
        is_late = clock.now_ms - times > clock.older_than_ms
        oldest = np.full(count, _NEVER)
        np.minimum.at(oldest, topics[rows[is_late]], times[is_late])
        return np.bincount(topics[rows[is_late]], minlength=count).tolist(), oldest.tolist(), {*unknown.tolist()}

    stored = rows_in(*STORED_STATES)
    sizes = metadata.size_by(topics[stored], stored, count)
    segments = np.bincount(topics[stored], minlength=count).tolist()
    copies, deletions = late(_STATE.COPY_SEGMENT_STARTED), late(_STATE.DELETE_SEGMENT_STARTED)
    for number, name in enumerate(names):
        yield TopicFigures(
            name,
            segments=segments[number],
            remote_bytes=sizes[number].known,
            stuck_copies=None if number in copies[2] else copies[0][number],
            stuck_deletions=None if number in deletions[2] else deletions[0][number],
            oldest_stuck_copy_ms=copies[1][number] if copies[0][number] else None,
            oldest_stuck_deletion_ms=deletions[1][number] if deletions[0][number] else None,
        )


def _with_lag(
    figures: TopicFigures,
    partitions: Sequence[PartitionFacts],
    settings: TopicSettings,
    tiering: TieringOf,
    sees_records: bool,
) -> TopicFigures:
    if not partitions:
        return replace(figures, is_in_cluster=True)  # no leader answered
    lags = [lag_of(facts, settings, tiering, sees_records=sees_records) for facts in partitions]
    sizes = [lag.bytes for lag in lags]
    since = [lag.since_ms for lag in lags if lag.since_ms is not None]
    segments = [lag.segment_sizes for lag in lags if lag.segment_sizes is not None]
    return replace(
        figures,
        is_in_cluster=True,
        local_bytes=known_sum(facts.local_bytes for facts in partitions),
        lag_offsets=known_sum(lag.offsets for lag in lags),
        lag_bytes=known_sum(sizes),
        lag_segment_sizes=None if None in sizes else max(segments, default=0.0),
        lag_since_ms=min(since, default=None),
        segment_ms=settings.number(SEGMENT_MS) if settings.is_known(SEGMENT_MS) else None,
        intended_lag_ms=intended_lag_ms(settings),
    )


class SeriesCap:
    """Chooses the topics that have series of their own: the largest, and who has one keeps it while the topic is
    there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._shown: set[str] = set()

    def apply(self, topics: Sequence[TopicFigures]) -> tuple[list[TopicFigures], int]:
        """The topics with series of their own, all others as one, and how many these are."""
        ordered = sorted((one for one in topics if one.topic != OTHERS), key=self._rank)
        shown, others = ordered[: self._most], ordered[self._most :]
        others += (one for one in topics if one.topic == OTHERS)
        self._shown = {one.topic for one in shown}
        shown.sort(key=lambda one: one.topic)
        return [*shown, *([_together(others)] if others else [])], len(others)

    def _rank(self, one: TopicFigures) -> tuple[bool, int, str]:
        return one.topic not in self._shown, -((one.remote_bytes or 0) + (one.local_bytes or 0)), one.topic


def _together(topics: Sequence[TopicFigures]) -> TopicFigures:
    def oldest(moments: Iterable[int | None]) -> int | None:
        return min((one for one in moments if one is not None), default=None)

    here = [one for one in topics if one.is_in_cluster]
    worst = [one.lag_segment_sizes for one in here]
    return TopicFigures(
        OTHERS,
        is_in_cluster=bool(here),
        segments=known_sum(one.segments for one in topics),
        remote_bytes=known_sum(one.remote_bytes for one in topics),
        local_bytes=known_sum(one.local_bytes for one in here) if here else None,
        lag_offsets=known_sum(one.lag_offsets for one in here) if here else None,
        lag_bytes=known_sum(one.lag_bytes for one in here) if here else None,
        lag_segment_sizes=None if None in worst else max((one for one in worst if one is not None), default=None),
        lag_since_ms=oldest(one.lag_since_ms for one in topics),
        stuck_copies=known_sum(one.stuck_copies for one in topics),
        stuck_deletions=known_sum(one.stuck_deletions for one in topics),
        oldest_stuck_copy_ms=oldest(one.oldest_stuck_copy_ms for one in topics),
        oldest_stuck_deletion_ms=oldest(one.oldest_stuck_deletion_ms for one in topics),
    )
