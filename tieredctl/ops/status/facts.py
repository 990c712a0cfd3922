"""What is known of a cluster's tiered storage: counts and sums, None where unknown. Times in ms since the epoch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.clock import Clock, is_after, is_dated
from tieredctl.model.events import STORED_STATES, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.local_log import LocalReplica
from tieredctl.model.size_sum import SizeSum, known_sum
from tieredctl.ops.doctor.looking import METADATA_RECORDS, TOPIC_SETTINGS
from tieredctl.ops.metadata.state import failing_copies
from tieredctl.ops.timeline.partition_timeline import NOTHING_DRAWN, FoundTimelines
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

if TYPE_CHECKING:
    from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts

_STATE = RemoteLogSegmentState


@dataclass(frozen=True, slots=True)
class Tiered:
    """What is tiered, and how much of it is where."""

    topics: int | None = None
    partitions: int | None = None
    segments: int | None = None
    remote_bytes: SizeSum | None = None
    """By the metadata: of the logs, before a layout compresses them."""
    local_bytes: int | None = None
    """On the leaders' disks, or on those that were read."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far tiering is behind. The active segment is never tiered."""

    offsets: int | None = None
    since_ms: int | None = None
    """The newest tiered record of the partition that lags longest, of those whose records have times."""
    where: str | None = None
    """That partition's topic."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Copies and deletions that began longer ago than they may take, and did not end."""

    copies: int
    deletions: int
    oldest_ms: int | None
    failing: int
    """Partitions whose copies fail again and again."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a cluster, or what is left of it, says."""

    is_live: bool = False
    cluster_id: str | None = None
    release: str | None = None
    brokers: int | None = None
    tiered: Tiered = Tiered()
    lag: Lag = Lag()
    stuck: Stuck | None = None
    """None where unknown."""
    findings: Sequence[Finding] | None = None
    """None where nothing was looked at."""
    segments: RemoteSegments | None = None
    """By topic, and over time; None where that is unknown."""
    timelines: FoundTimelines = NOTHING_DRAWN
    """The timelines of the partitions that findings are about, where they are to be drawn."""
    may_be_more: bool = False
    """Whether more metadata than was read may exist: what is counted is the least there is."""


_METADATA_LOST = frozenset(
    {
        FindingCode.METADATA_TRUNCATED,
        FindingCode.METADATA_COMPACTED,
        FindingCode.METADATA_EVENTS_LOST,
        FindingCode.LOG_START_UNEXPLAINED,
        FindingCode.METADATA_PARTITION_MISSING,
        FindingCode.LOCAL_REMOTE_GAP,
        FindingCode.OFFSET_GAP,
        FindingCode.EVENT_UNDECODABLE,
    }
)
"""What brokers once knew is no longer in the metadata topic, as they trim their disks after copying alone; or cannot be
read there."""


def facts_of_cluster(cluster: ClusterSnapshot, cluster_id: str | None, findings: Sequence[Finding]) -> ClusterFacts:
    """The facts of a live cluster, as `doctor` gathered it."""
    from tieredctl.ops.cluster.live_topics import HIDDEN

    unseen = {finding.subject for finding in cluster.not_looked_at}
    release = None if cluster.release is None else str(cluster.release)
    brokers = len(cluster.broker_releases) or None
    if TOPIC_SETTINGS in unseen:
        return ClusterFacts(True, cluster_id, release, brokers, findings=findings)
    sees_records = METADATA_RECORDS not in unseen
    parts = cluster.partitions
    sees_parts = {part.partition.topic for part in parts}.issuperset(cluster.topics)
    stored = [segment for part in parts for segment in part.segments if segment.metadata.state in STORED_STATES]
    sees_all = sees_records and sees_parts
    size = SizeSum.of(segment.metadata.known_size for segment in stored) if sees_all else None
    tiered = Tiered(
        len(cluster.topics),
        len(parts) if sees_parts else None,
        len(stored) if sees_all else None,
        size,
        known_sum(part.local_bytes for part in parts) if sees_parts else None,
    )
    stuck = None
    if sees_records:
        stuck = _stuck([*_began(cluster.unfinished)], cluster.clock, len(cluster.failing))
    lost = HIDDEN in unseen or any(finding.code in _METADATA_LOST for finding in findings)
    lag = _lag(parts, cluster.clock, sees_records) if sees_parts and HIDDEN not in unseen else Lag()
    segments = remote_segments_of_leaders(parts) if sees_all else None
    return ClusterFacts(True, cluster_id, release, brokers, tiered, lag, stuck, findings, segments, may_be_more=lost)


def _lag(parts: Sequence[PartitionFacts], clock: Clock, sees_records: bool) -> Lag:
    offsets = known_sum(_not_tiered(part, sees_records) for part in parts)
    newest = [
        (max(segment.max_timestamp_ms for segment in part.finished), part.partition.topic)
        for part in parts
        if part.finished and _not_tiered(part, sees_records)
    ]
    since, where = min((one for one in newest if is_dated(one[0], clock.now_ms)), default=(None, None))
    return Lag(offsets, since, where)


def _not_tiered(part: PartitionFacts, sees_records: bool) -> int | None:
    tiered = part.tiered_end
    if part.latest is None:
        return None
    if tiered is not None:
        return max(0, part.latest - (tiered + 1))
    if part.is_start_unexplained:
        return None
    return part.latest - part.earliest if sees_records and part.earliest is not None else None


def facts_of_metadata(
    metadata: ReplayedMetadata,
    clock: Clock,
    cluster_id: str | None,
    findings: Sequence[Finding],
    *,
    is_broken: bool,
    may_be_more: bool,
    replicas: Sequence[LocalReplica],
    unfinished: Sequence[KnownSegment] | None = None,
) -> ClusterFacts:
    """The facts of metadata alone. What leaders know is unknown; sums too where some of the metadata is surely missing
    (`is_broken`). `unfinished` are the copies and deletions that may be stuck; None for all that have not ended."""
    stored = metadata.in_states(STORED_STATES)
    numbers = np.flatnonzero(np.bincount(metadata.rows.partitions[stored])).tolist()
    partitions = {metadata.partitions[number] for number in numbers}
    here = [replica for replica in replicas if replica.partition in partitions]
    local = sum(segment.size for replica in here for segment in replica.segments) if here else None
    tiered = Tiered(
        len({partition.topic_id for partition in partitions}),
        len(partitions),
        len(stored),
        metadata.size_sum(stored),
        local,
    )
    if is_broken:
        return ClusterFacts(False, cluster_id, tiered=Tiered(local_bytes=local), findings=findings)
    began = _unfinished(metadata) if unfinished is None else _began(unfinished)
    stuck = _stuck([*began], clock, len(failing_copies(metadata, clock.now_ms)))
    return ClusterFacts(
        *(False, cluster_id),
        tiered=tiered,
        stuck=stuck,
        findings=findings,
        segments=remote_segments(metadata),
        may_be_more=may_be_more,
    )


def _unfinished(metadata: ReplayedMetadata) -> Iterable[tuple[RemoteLogSegmentState, int]]:
    for state in (_STATE.COPY_SEGMENT_STARTED, _STATE.DELETE_SEGMENT_STARTED):
        rows: Ints = metadata.in_states([state])
        yield from ((state, at) for at in metadata.entered_ms(rows).tolist())


def _began(unfinished: Iterable[KnownSegment]) -> Iterator[tuple[RemoteLogSegmentState, int]]:
    return ((one.metadata.state, one.entered_ms) for one in unfinished)


def _stuck(unfinished: Sequence[tuple[RemoteLogSegmentState, int]], clock: Clock, failing: int) -> Stuck | None:
    """How many copies and deletions are stuck; None where the age of any is unknown."""
    if any(is_after(at, clock.now_ms) for _, at in unfinished):
        return None
    late = [(state, at) for state, at in unfinished if clock.now_ms - at > clock.older_than_ms]
    counts = Counter(state for state, _ in late)
    oldest = min((at for _, at in late), default=None)
    return Stuck(counts[_STATE.COPY_SEGMENT_STARTED], counts[_STATE.DELETE_SEGMENT_STARTED], oldest, failing)


@dataclass(frozen=True, slots=True)
class TopicBytes:
    """The bytes of a topic in remote storage, by the metadata: of the logs, before a layout compresses them."""

    topic: str
    topic_id: str
    segments: int
    remote_size: SizeSum


@dataclass(frozen=True, slots=True)
class Uploads:
    """The upload of each segment that is in remote storage now: when its copy was finished, since the epoch, and how
    long after its newest record that was. Producers may set records' times; a segment whose records have none is left
    out."""

    finished_ms: Ints
    waited_ms: Ints

    @classmethod
    def of(cls, finished_ms: Ints, newest_record_ms: Ints) -> Uploads:
        dated = np.flatnonzero(newest_record_ms >= 0)
        by_time = dated[np.argsort(finished_ms[dated], kind="stable")]
        return cls(finished_ms[by_time], np.maximum(0, finished_ms[by_time] - newest_record_ms[by_time]))


@dataclass(frozen=True, slots=True)
class RemoteSegments:
    """What the metadata has of the segments in remote storage."""

    topics: Sequence[TopicBytes]
    """The most bytes first, then by name."""
    uploads: Uploads


def remote_segments(metadata: ReplayedMetadata) -> RemoteSegments:
    """The remote segments of replayed metadata."""
    stored = metadata.in_states(STORED_STATES)
    partitions, count = metadata.rows.partitions[stored], len(metadata.partitions)
    sizes = metadata.size_by(partitions.astype(np.int64), stored, count)
    segments = np.bincount(partitions, minlength=count)
    columns = zip(metadata.partitions, segments.tolist(), sizes, strict=True)
    finished = metadata.in_states([_STATE.COPY_SEGMENT_FINISHED])
    uploads = Uploads.of(metadata.event_timestamps(finished), metadata.max_timestamps(finished))
    return RemoteSegments(
        _by_topic((one.topic, one.topic_id, many, size) for one, many, size in columns if many), uploads
    )


def remote_segments_of_leaders(partitions: Sequence[PartitionFacts]) -> RemoteSegments:
    """The remote segments of a live cluster's tiered topics."""
    stored = [
        (one.partition.topic, one.partition.topic_id, 1, SizeSum.of([segment.metadata.known_size]))
        for one in partitions
        for segment in one.segments
        if segment.metadata.state in STORED_STATES
    ]
    finished = [segment for one in partitions for segment in one.finished]
    columns = (
        np.array([segment.event_timestamp_ms for segment in finished], np.int64),
        np.array([segment.max_timestamp_ms for segment in finished], np.int64),
    )
    return RemoteSegments(_by_topic(stored), Uploads.of(*columns))


def _by_topic(amounts: Iterable[tuple[str, str, int, SizeSum]]) -> list[TopicBytes]:
    segments, sizes = Counter[tuple[str, str]](), defaultdict[tuple[str, str], SizeSum](SizeSum)
    for topic, topic_id, many, size in amounts:
        segments[topic, topic_id] += many
        sizes[topic, topic_id] += size
    topics = (TopicBytes(*name, segments[name], sizes[name]) for name in segments)
    return sorted(topics, key=lambda one: (-one.remote_size.least, one.topic, one.topic_id))
