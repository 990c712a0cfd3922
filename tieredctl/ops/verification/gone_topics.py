"""Segments of deleted topics: the metadata no longer promises their objects, so none of them can be missing.

Brokers write no event when others remove a topic's objects, and forget the segments of a topic that was deleted while
they could not reach the store: the metadata keeps such segments as finished forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import TopicSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import (
    LiveTopics,
    TopicSources,
    demand_all_topics,
    demand_believable,
    live_topics,
)
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(slots=True)
class _Gone:
    segments: int = 0
    objects: int = 0
    """How many of their objects are still in the store."""
    size: int = 0


@dataclass
class GoneTopics:
    """The segments of deleted topics, and how many there were of each."""

    live: LiveTopics
    """The source of which topics exist."""
    _found: dict[tuple[str, str], _Gone] = field(default_factory=dict)

    def has(self, partition: TopicIdPartition) -> bool:
        """Whether a partition's topic is known to be deleted."""
        return self.live.is_live(partition.topic_id) is False

    def is_live(self, partition: TopicIdPartition) -> bool:
        """Whether a partition's topic is known to exist."""
        return self.live.is_live(partition.topic_id) is True

    def add(self, partition: TopicIdPartition, segments: int, objects: int = 0, size: int = 0) -> None:
        """Counts a partition's segments of a deleted topic, with how many of their objects are still listed, and their
        bytes."""
        gone = self._found.setdefault((partition.topic, partition.topic_id), _Gone())
        gone.segments += segments
        gone.objects += objects
        gone.size += size

    def findings(self) -> list[Finding]:
        """One finding per topic; only informational where none of its objects is left."""
        return [_finding(*named, gone) for named, gone in sorted(self._found.items()) if gone.segments]


def _finding(topic: str, topic_id: str, gone: _Gone) -> Finding:
    segments = counted(gone.segments, "segment is", "segments are")
    objects = counted(gone.objects, "object is", "objects are")
    left = f"{objects} still in the store" if gone.objects else "none of their objects is left"
    evidence: Mapping[str, object] = {
        "topic": topic,
        "topicId": topic_id,
        "segments": gone.segments,
        "objects": gone.objects,
        "bytes": gone.size,
    }
    message = f"{segments} of a deleted topic; {left}"
    severity, about = None if gone.objects else Severity.INFO, TopicSubject(topic, topic_id)
    return Finding(FindingCode.TOPIC_GONE, f"{topic} {topic_id}", message, evidence, severity, about)


def believable_topics(sources: TopicSources, metadata: ReplayedMetadata, stream: EventStream) -> LiveTopics:
    """The topics with segments that exist, by the sources, for a stream that was read.

    Raises TieredctlError `topics-doubtful` for a list or a snapshot that cannot have all topics, or has none of those
    that were read: lost data would pass for that of deleted topics.
    """
    first_events_ms: dict[str, int] = {}
    for partition, moment in metadata.earliest_last_events():
        first_events_ms[partition.topic_id] = min(moment, first_events_ms.get(partition.topic_id, moment))
    live = live_topics(sources, first_events_ms, stream.source)
    demand_all_topics(sources, stream.source)
    demand_believable(sources, live, {partition.topic_id for partition in stream.partitions})
    return live
