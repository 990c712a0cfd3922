"""Judges which combined objects may go, by everything that is known now: their events, remote storage's metadata
(KIP-405), and the cluster. What is not known keeps an object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import TopicSources, live_topics
from tieredctl.ops.cluster.topic_settings import UNLIMITED, effective_local
from tieredctl.ops.metadata.event_reading import read_events as read_remote_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ports.cluster import Cluster, OffsetSpec, TopicDescription
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents
from tieredctl_proposals.ops.wal.contents import KnownEvents, demand_whole, read_events
from tieredctl_proposals.wal.lifecycle import JudgedObject, PartitionFacts, judge_objects
from tieredctl_proposals.wal.tiered_ranges import TieredRanges

_DELETED = RemoteLogSegmentState.DELETE_SEGMENT_FINISHED


@dataclass(frozen=True, slots=True)
class Needs:
    """What was judged, at one moment."""

    events: KnownEvents
    may_go: Mapping[str, JudgedObject]
    """The objects that may go, by their ids."""
    kept: Mapping[str, int]
    """How many objects are kept, by the need of their neediest segment."""
    silence: str | None = None
    """That the cluster did not say which topics are live."""

    def has_events_of(self, combined_segment_id: str) -> bool:
        """Whether any event names an object."""
        wal = self.events.replayed
        return wal.combined_named(combined_segment_id) is not None or bool(wal.segments_in(combined_segment_id))

    def is_concluded(self, combined_segment_id: str) -> bool:
        """Whether the events say that an object and every segment in it are deleted."""
        wal = self.events.replayed
        combined = wal.combined_named(combined_segment_id)
        segments = wal.segments_in(combined_segment_id)
        return (combined is None or combined.metadata.state is _DELETED) and all(
            one.metadata.state is _DELETED for one in segments
        )

    def keeping(self, ids: Collection[str], why: str) -> Needs:
        """The same, but that some of the objects may not go."""
        may_go = {one: judged for one, judged in self.may_go.items() if one not in ids}
        kept = Counter(self.kept) + Counter({why: len(ids)})  # which leaves out what is 0
        return replace(self, may_go=may_go, kept=dict(sorted(kept.items())))


@dataclass(slots=True)
class RemoteMetadata:
    """What remote storage's metadata has, read once and then followed."""

    followed: FollowedMetadata
    _events: SegmentEvents = field(default_factory=lambda: SegmentEvents(is_described=True))

    def refresh(self) -> tuple[MetadataSource, ReplayedMetadata]:
        """The metadata as of now. Raises TieredctlError as FollowedMetadata does."""
        source, _ = self.followed.read(self._take)
        return source, ReplayedMetadata(self._events)

    def _take(self, stream: EventStream) -> list[Finding]:
        read_remote_events(stream, self._events)
        return stream.findings


@dataclass(slots=True)
class FreshNeeds:
    """Judges again whenever it is asked to."""

    store: ObjectStore
    remote: RemoteMetadata
    topic_sources: TopicSources
    cluster: Cluster | None
    clock_ms: Callable[[], int]
    give_up_after_ms: int

    def judge(self) -> Needs:
        """Raises TieredctlError: `metadata-incomplete` where any event is missing or cannot be read, `no-overlap` where
        store and metadata have no partition in common, and as sources and clusters do."""
        events = read_events(self.store)
        demand_whole(events, self.store.url)
        source, remote = self.remote.refresh()
        self._demand_overlap(events, remote)
        wal = events.replayed
        facts = self._facts(wal.partitions, source, {partition.topic_id for partition in remote.partitions})
        tiered = TieredRanges.of(remote, wal.events.partitions)
        judged = judge_objects(
            *(wal, tiered, facts),
            now_ms=self.clock_ms(),
            give_up_after_ms=self.give_up_after_ms,
        )
        may_go = {one.combined_segment_id: one for one in judged.objects(judged.may_go())}
        kept = {need.name: count for need, count in judged.kept().items()}
        return Needs(events, may_go, dict(sorted(kept.items())), self.topic_sources.silence)

    def _demand_overlap(self, events: KnownEvents, remote: ReplayedMetadata) -> None:
        tiered_ids = {partition.topic_id for partition in remote.partitions}
        ours = {partition.topic_id for partition in events.replayed.partitions}
        if ours and tiered_ids.isdisjoint(ours):
            message = f"The metadata knows no topic of the combined objects in {self.store.url}."
            raise TieredctlError(ErrorCode.NO_OVERLAP, message)

    def _facts(
        self, partitions: list[TopicIdPartition], source: MetadataSource, known_ids: Collection[str]
    ) -> dict[TopicIdPartition, PartitionFacts]:
        """What the live cluster says of partitions; without one, nothing is known of them. A topic that it does not
        have is gone only if remote storage's metadata proves that it had it: else it may be another cluster's."""
        if self.cluster is None:
            return {}
        # When topics were first heard of does not matter: a live cluster is asked.
        live = live_topics(self.topic_sources, dict.fromkeys((one.topic_id for one in partitions), 0), source)
        facts: dict[TopicIdPartition, PartitionFacts] = {}
        for name in sorted({one.topic for one in partitions}):
            ours = [one for one in partitions if one.topic == name]
            gone = [one for one in ours if live.is_live(one.topic_id) is False]
            for one in gone:
                was_there = one.topic_id in known_ids
                facts[one] = PartitionFacts(is_gone=was_there, is_foreign=not was_there)
            there = [one for one in ours if live.is_live(one.topic_id)]
            if there:
                facts |= _live_facts(self.cluster, name, there)
        return facts


def _live_facts(
    cluster: Cluster, name: str, partitions: list[TopicIdPartition]
) -> dict[TopicIdPartition, PartitionFacts]:
    """The live facts of a topic's partitions; empty for a topic that was recreated while it was asked about."""
    try:
        topic = cluster.topic(name)
    except TieredctlError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC:
            raise
        return {}
    settings = cluster.topic_configs([name]).get(name, {})
    values = {setting: value.value for setting, value in settings.items()}
    is_tiered = None if "remote.storage.enable" not in values else values["remote.storage.enable"] == "true"
    retention_ms = _local_retention_ms(values, is_tiered=is_tiered)
    starts = _log_starts(cluster, topic)
    return {
        one: PartitionFacts(starts.get(one.partition), is_tiered=is_tiered, local_retention_ms=retention_ms)
        for one in partitions
        if one.topic_id == topic.topic_id
    }


def _local_retention_ms(values: Mapping[str, str | None], *, is_tiered: bool | None) -> int | None:
    """The local retention in ms; None where it is not known."""
    try:
        total = int(values["retention.ms"] or "")
        local = int(values["local.retention.ms"] or "") if is_tiered else total
    except (KeyError, ValueError):
        return None
    compacted = "compact" in (values.get("cleanup.policy") or "")
    return UNLIMITED if compacted else effective_local(local, total)


def _log_starts(cluster: Cluster, topic: TopicDescription) -> dict[int, int]:
    """The log starts of the partitions whose leaders answer."""
    listed = cluster.list_offsets(topic, OffsetSpec.EARLIEST)
    return {number: one.offset for number, one in listed.items() if one.error is None and one.offset is not None}
