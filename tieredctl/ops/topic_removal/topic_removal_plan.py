"""What is to be removed of a topic's partitions, and whether it may be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.cluster.live_topics import TopicLookup
from tieredctl.ops.documents import Document, partition_document
from tieredctl.ops.topic_removal.topic_metadata import PartitionState, TopicMetadata
from tieredctl.storage.protocol import ObjectStore, StoredObject, list_unreserved

_SAMPLE_OBJECTS = 10_000


@dataclass(frozen=True, slots=True)
class RemovalScope:
    """How much of the KIP's removal is wanted."""

    segment_events_only: bool = False
    """No partition-delete records: brokers are told of each segment alone."""
    topic_is_live: bool = False
    """The topic may still be there. Copies that are under way are left alone then, as are objects without events."""


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What is left to remove of one partition."""

    state: PartitionState
    segments: Sequence[RemoteLogSegmentMetadata] = ()
    """Those whose deletion is not recorded as finished."""
    objects: Mapping[str, Sequence[StoredObject]] = field(default_factory=dict)
    """Of these segments, by segment id."""
    leftovers: Sequence[StoredObject] = ()
    """Of segments whose deletion is recorded as finished, or that have no event at all."""
    copies: int = 0
    """Copies under way that are left alone."""
    unknown: int = 0
    """Objects beside them that the layout cannot explain; they stay."""

    @property
    def is_empty(self) -> bool:
        return not self.segments and not self.leftovers

    def is_done(self, scope: RemovalScope) -> bool:
        """Whether neither the store nor the metadata has anything left to change."""
        is_recorded = scope.segment_events_only or self.state.is_removed
        return self.is_empty and is_recorded

    def doomed(self) -> Iterator[StoredObject]:
        """Every object that is to go."""
        for objects in self.objects.values():
            yield from objects
        yield from self.leftovers

    def document(self) -> Document:
        """The plan as every output format shows it."""
        states = Counter(segment.state for segment in self.state.segments)
        objects = list(self.doomed())
        return {
            **partition_document(self.state.partition),
            "metadataPartition": self.state.metadata_partition,
            "state": None if self.state.delete_state is None else self.state.delete_state.name,
            "segments": len(self.segments),
            "segmentsByState": {state.name: states[state] for state in RemoteLogSegmentState},
            "objects": len(objects),
            "bytes": sum(stored.size for stored in objects),
            "leftovers": len(self.leftovers),
            "copiesLeftAlone": self.copies,
            "unknownObjects": self.unknown,
        }


def plan_partition(state: PartitionState, store: ObjectStore, layout: Layout, scope: RemovalScope) -> PartitionPlan:
    """What is left to remove of a partition, by a listing of what the store has of it now."""
    found, unknown = _objects_by_segment(state, store, layout)
    unfinished = state.unfinished()
    segments = [one for one in unfinished if not (scope.topic_is_live and _is_being_copied(one))]
    objects = {one.segment_id: found.pop(one.segment_id, []) for one in segments}
    leftovers = [] if scope.topic_is_live else [stored for left in found.values() for stored in left]
    return PartitionPlan(state, segments, objects, leftovers, len(unfinished) - len(segments), unknown)


def removal_scope(
    topic_id: str, topics: TopicLookup | None, *, segment_events_only: bool, even_if_live: bool
) -> RemovalScope:
    """What may be removed of a topic, by what the cluster says of it now: after its metadata was read.

    Raises TieredctlError where the topic was not named to be removed even if it is live: `topic-live` where the cluster
    still has it, `topic-unclear` where it cannot tell. `usage` for partition-delete records of such a topic: brokers
    that have its partitions stop reading metadata at the next event behind DELETE_PARTITION_FINISHED
    (RemotePartitionMetadataStore throws IllegalStateException, ConsumerTask ends).
    """
    is_live = topics.ask([topic_id])[topic_id] if topics is not None else None
    if is_live is False:
        return RemovalScope(segment_events_only)
    if not even_if_live:
        if is_live:
            raise TieredctlError(ErrorCode.TOPIC_LIVE, f"The cluster still has the topic of id {topic_id}.")
        message = f"The cluster does not clearly say whether it still has a topic of id {topic_id}."
        raise TieredctlError(ErrorCode.TOPIC_UNCLEAR, message)
    if not segment_events_only:
        message = "Brokers that have a partition stop reading metadata after partition-delete records of it."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --segment-events-only with --even-if-live.")
    return RemovalScope(segment_events_only, topic_is_live=True)


def plan_removal(
    metadata: TopicMetadata, store: ObjectStore, layout: Layout, scope: RemovalScope
) -> list[PartitionPlan]:
    """What is left to remove of each partition. Raises TieredctlError: `unknown-topic` where nothing is known of the
    topic, `no-overlap` where the store is surely another one."""
    states = map(metadata.state, metadata.partitions())
    plans = [plan_partition(state, store, layout, scope) for state in states]
    _demand_right_store(plans, metadata.known_topic_ids, store, layout)
    return plans


def _demand_right_store(
    plans: Sequence[PartitionPlan], known_topic_ids: Container[str], store: ObjectStore, layout: Layout
) -> None:
    """Copies that nobody began to delete have objects; where not one has, another topic's must be there."""
    has_copies = any(_is_copied(segment) for plan in plans for segment in plan.segments)
    if not has_copies or any(True for plan in plans for _ in plan.doomed()):
        return
    for stored in islice(list_unreserved(store), _SAMPLE_OBJECTS):
        explained = layout.explain(stored.key)
        if explained is not None and explained.topic_id in known_topic_ids:
            return
    raise TieredctlError(ErrorCode.NO_OVERLAP, f"{store.url} has no object of a topic that this metadata knows.")


def _objects_by_segment(
    state: PartitionState, store: ObjectStore, layout: Layout
) -> tuple[dict[str, list[StoredObject]], int]:
    """The partition's objects, and how many under its prefix the layout does not explain as such."""
    prefix = layout.partition_prefix(state.partition)
    found: dict[str, list[StoredObject]] = defaultdict(list)
    unknown = 0
    for stored in list_unreserved(store, prefix):
        explained = layout.explain(stored.key)
        if explained is None or explained.topic_id_partition != state.partition:
            unknown += 1
        else:
            found[explained.segment_id].append(stored)
    for segment in state.segments:
        keys = {**layout.promised_objects(segment), **layout.optional_objects(segment)}.values()
        # Those that were copied under another prefix are in no listing of this one.
        elsewhere = (store.head(key) for key in keys if not key.startswith(prefix))
        found[segment.segment_id] += filter(None, elsewhere)
    return found, unknown


def _is_copied(segment: RemoteLogSegmentMetadata) -> bool:
    return segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def _is_being_copied(segment: RemoteLogSegmentMetadata) -> bool:
    return segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
