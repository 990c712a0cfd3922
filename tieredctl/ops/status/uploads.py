"""What is in remote storage by topic, and how long it took there: columns and sums for plots. Times in ms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.events import STORED_STATES, RemoteLogSegmentState
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_STATE = RemoteLogSegmentState


@dataclass(frozen=True, slots=True)
class TopicBytes:
    """The bytes of a topic in remote storage, by the metadata: of the logs, before a layout compresses them."""

    topic: str
    topic_id: str
    segments: int
    remote_size: SizeSum


@dataclass(frozen=True, slots=True)
class Uploads:
    """Of each segment that is in remote storage now: when its copy was finished, since the epoch, and how long after
    its newest record that was. Producers may set records' times; a segment whose records have none is left out."""

    finished_ms: Ints
    waited_ms: Ints

    @classmethod
    def of(cls, finished_ms: Ints, newest_record_ms: Ints) -> Uploads:
        known = np.flatnonzero(newest_record_ms >= 0)
        by_time = known[np.argsort(finished_ms[known], kind="stable")]
        return cls(finished_ms[by_time], np.maximum(0, finished_ms[by_time] - newest_record_ms[by_time]))


@dataclass(frozen=True, slots=True)
class RemoteSegments:
    """What the metadata has of the segments in remote storage."""

    topics: Sequence[TopicBytes]
    """The most bytes first, then by name."""
    uploads: Uploads


def remote_segments(metadata: ReplayedMetadata) -> RemoteSegments:
    """Of replayed metadata."""
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
    """Of a live cluster's tiered topics."""
    stored = [
        (one.partition.topic, one.partition.topic_id, 1, SizeSum.of([known.metadata.known_size]))
        for one in partitions
        for known in one.segments
        if known.metadata.state in STORED_STATES
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
    found = (TopicBytes(*name, segments[name], sizes[name]) for name in segments)
    return sorted(found, key=lambda one: (-one.remote_size.least, one.topic, one.topic_id))
