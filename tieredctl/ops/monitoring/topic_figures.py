"""Figures of each topic: what is tiered, how far that is behind, and what is stuck. Times in ms since the epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.clock import MOST_AHEAD_MS, Clock, is_dated
from tieredctl.model.events import STORED_STATES, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import SEGMENT_BYTES, SEGMENT_MS, TopicSettings
from tieredctl.ops.doctor.partition_rules import untiered
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

OTHERS = "(other)"
"""What the topics together are called that have no series of their own. Kafka allows no such name, but metadata may
have any: a topic that is called so is one of them."""
_STATE = RemoteLogSegmentState
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """Of one topic by its name, or of several together. None is unknown."""

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
    lag_since_ms: int | None = None
    """The newest tiered record of the partition that lags longest, of those whose records have times; None where
    nothing lags, too."""
    stuck_copies: int | None = None
    stuck_deletions: int | None = None
    oldest_stuck_copy_ms: int | None = None
    oldest_stuck_deletion_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Tiering:
    """How far a partition is tiered, by the metadata: its highest offset (inclusive), and its newest record."""

    end: int
    newest_ms: int | None
    """None where it has no timestamp, or one that is none."""


def topic_figures(
    metadata: ReplayedMetadata | None, cluster: ClusterSnapshot | None, clock: Clock
) -> list[TopicFigures]:
    """Of every topic that the metadata or the cluster has, by name. `metadata` is None where it is not known whole."""
    by_topic: dict[str, TopicFigures] = {}
    if metadata is not None:
        by_topic = {one.topic: one for one in _of_metadata(metadata, clock)}
    if cluster is not None:
        partitions = defaultdict[str, list[PartitionFacts]](list)
        for facts in cluster.partitions:
            partitions[facts.partition.topic].append(facts)
        tiered = _tiering(metadata, clock)
        for name, settings in cluster.topics.items():
            figures = by_topic.get(name) or _without_segments(name, is_known=metadata is not None)
            by_topic[name] = _with_lag(figures, partitions[name], settings, tiered, metadata is not None)
    return [by_topic[name] for name in sorted(by_topic)]


def _without_segments(topic: str, *, is_known: bool) -> TopicFigures:
    if not is_known:
        return TopicFigures(topic)
    return TopicFigures(topic, segments=0, remote_bytes=0, stuck_copies=0, stuck_deletions=0)


def _of_metadata(metadata: ReplayedMetadata, clock: Clock) -> Iterable[TopicFigures]:
    names = sorted({partition.topic for partition in metadata.partitions})
    numbers = {name: number for number, name in enumerate(names)}
    of_partitions = np.array([numbers[partition.topic] for partition in metadata.partitions], np.int64)
    topics = of_partitions[metadata.rows.partitions] if names else np.zeros(0, np.int64)
    count = len(names)

    def rows_in(*states: RemoteLogSegmentState) -> Ints:
        return np.flatnonzero(np.isin(metadata.rows.states, states))

    def late(state: RemoteLogSegmentState) -> tuple[list[int], list[int], set[int]]:
        """By topic how many, and since when; and the topics of which that is unknown."""
        rows = rows_in(state)
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


def _tiering(metadata: ReplayedMetadata | None, clock: Clock) -> Callable[[TopicIdPartition], Tiering | None]:
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


def _with_lag(
    figures: TopicFigures,
    partitions: Sequence[PartitionFacts],
    settings: TopicSettings,
    tiering: Callable[[TopicIdPartition], Tiering | None],
    sees_records: bool,
) -> TopicFigures:
    if not partitions:
        return replace(figures, is_in_cluster=True)  # no leader answered
    offsets: list[int | None] = []
    sizes: list[int | None] = []
    segments: list[float] = []
    since: list[int] = []
    for facts in partitions:
        tiered = tiering(facts.partition)
        ends = [] if facts.latest_tiered is None else [facts.latest_tiered]
        ends += [] if tiered is None else [tiered.end]
        end = max(ends, default=None)
        offsets.append(_not_tiered(facts, end, sees_records))
        waiting = untiered(facts, settings, end) if ends or sees_records else None
        is_empty = facts.latest is not None and facts.latest == facts.earliest_local
        sizes.append(0 if is_empty else None if waiting is None else waiting.waits + waiting.behind)
        if waiting is not None:
            segments.append(waiting.behind / max(1, settings.number(SEGMENT_BYTES)))
        if tiered is not None and tiered.newest_ms is not None and offsets[-1]:
            since.append(tiered.newest_ms)
    return replace(
        figures,
        is_in_cluster=True,
        local_bytes=known_sum(facts.local_bytes for facts in partitions),
        lag_offsets=known_sum(offsets),
        lag_bytes=known_sum(sizes),
        lag_segment_sizes=None if None in sizes else max(segments, default=0.0),
        lag_since_ms=min(since, default=None),
        segment_ms=settings.number(SEGMENT_MS) if settings.is_known(SEGMENT_MS) else None,
    )


def _not_tiered(facts: PartitionFacts, tiered_end: int | None, sees_records: bool) -> int | None:
    if facts.latest is None:
        return None
    if tiered_end is not None:
        return max(0, facts.latest - (tiered_end + 1))
    return facts.latest - facts.earliest if sees_records and facts.earliest is not None else None


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
