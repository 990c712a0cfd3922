"""What to remove of a topic's partitions, whether that is allowed, and what changed since it was shown: a removal
deletes what was shown and confirmed, or nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.result_row import JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.cluster.live_topics import TopicLookup
from tieredctl.ops.topic_removal.topic_metadata import PartitionState, TopicMetadata
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved

_SAMPLE_OBJECTS = 10_000
_RECENT_MS = 600_000
_NAMED = 5
_HINT = "Run the command again, and check the new plan."


@dataclass(frozen=True, slots=True)
class RemovalScope:
    """The parts of the KIP's removal to perform."""

    segment_events_only: bool = False
    """No partition-delete records: brokers only see events of each segment."""
    topic_is_live: bool = False
    """The topic may still exist. Then copies in progress are left alone, as are objects without events."""


@dataclass(frozen=True, slots=True)
class PartitionRemovalRow(ResultRow):
    """What remains to be removed of one partition, as a result shows it."""

    topic: str
    topic_id: Wide[str]
    partition: int
    metadata_partition: Wide[int]
    state: str | None
    segments: int
    segments_by_state: JsonOnly[Mapping[str, int]]
    objects: int
    bytes: Size[int]
    leftovers: int
    copies_left_alone: JsonOnly[int]
    unknown_objects: JsonOnly[int]


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What remains to be removed of one partition."""

    state: PartitionState
    segments: Sequence[RemoteLogSegmentMetadata] = ()
    """Those whose deletion is not recorded as finished."""
    objects: Mapping[str, Sequence[StoredObject]] = field(default_factory=dict)
    """The objects of these segments, by segment id."""
    leftovers: Sequence[StoredObject] = ()
    """Objects of segments whose deletion is recorded as finished, or that have no events at all."""
    copies: int = 0
    """Copies in progress that are left alone."""
    unknown: int = 0
    """Objects next to them that the layout cannot explain; they stay."""

    @property
    def is_empty(self) -> bool:
        return not self.segments and not self.leftovers

    def is_done(self, scope: RemovalScope) -> bool:
        """Whether neither the store nor the metadata has anything left to change."""
        is_recorded = scope.segment_events_only or self.state.is_removed
        return self.is_empty and is_recorded

    def doomed(self) -> Iterator[StoredObject]:
        """Every object to delete."""
        for objects in self.objects.values():
            yield from objects
        yield from self.leftovers

    def row(self) -> PartitionRemovalRow:
        states = Counter(segment.state for segment in self.state.segments)
        objects = list(self.doomed())
        return PartitionRemovalRow(
            *(*self.state.partition.names, self.state.metadata_partition),
            *(None if self.state.delete_state is None else self.state.delete_state.name, len(self.segments)),
            {state.name: states[state] for state in RemoteLogSegmentState},
            *(len(objects), sum(stored.size for stored in objects)),
            *(len(self.leftovers), self.copies, self.unknown),
        )


def plan_partition(state: PartitionState, store: ObjectStore, layout: Layout, scope: RemovalScope) -> PartitionPlan:
    """What remains to be removed of a partition, by a listing of what the store has of it now."""
    by_segment, unknown = _objects_by_segment(state, store, layout)
    unfinished = state.unfinished()
    segments = [one for one in unfinished if not (scope.topic_is_live and _is_being_copied(one))]
    objects = {one.segment_id: by_segment.pop(one.segment_id, []) for one in segments}
    leftovers = [] if scope.topic_is_live else [stored for left in by_segment.values() for stored in left]
    return PartitionPlan(state, segments, objects, leftovers, len(unfinished) - len(segments), unknown)


def removal_scope(
    topic_id: str, topics: TopicLookup | None, *, segment_events_only: bool, even_if_live: bool
) -> RemovalScope:
    """What may be removed of a topic, by what the cluster answers now, after its metadata was read.

    Raises TieredctlError unless `even_if_live`: `topic-live` if the cluster still has the topic, `topic-unclear` if it
    cannot tell. `usage` for partition-delete records of such a topic: brokers that have its partitions stop reading
    metadata at the next event after DELETE_PARTITION_FINISHED (RemotePartitionMetadataStore throws
    IllegalStateException, ConsumerTask ends).
    """
    is_live = topics.ask([topic_id])[topic_id] if topics is not None else None
    if is_live is False:
        return RemovalScope(segment_events_only)
    if not even_if_live:
        if is_live:
            raise TieredctlError(ErrorCode.TOPIC_LIVE, f"The cluster still has the topic with id {topic_id}.")
        message = f"It is unclear whether the cluster still has a topic with id {topic_id}."
        raise TieredctlError(ErrorCode.TOPIC_UNCLEAR, message)
    if not segment_events_only:
        message = "Brokers that host a partition stop reading metadata after partition-delete records of it."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give --segment-events-only with --even-if-live.")
    return RemovalScope(segment_events_only, topic_is_live=True)


def plan_removal(
    metadata: TopicMetadata, store: ObjectStore, layout: Layout, scope: RemovalScope
) -> list[PartitionPlan]:
    """What remains to be removed of each partition. Raises TieredctlError: `unknown-topic` if the topic is not known,
    `no-overlap` if the store is certainly another one."""
    states = map(metadata.state, metadata.partitions())
    plans = [plan_partition(state, store, layout, scope) for state in states]
    _demand_right_store(plans, metadata.known_topic_ids, store, layout)
    return plans


def demand_silence(plans: Sequence[PartitionPlan], topic_id: str, now_ms: int) -> None:
    """Raises TieredctlError `topic-in-use` if a broker may still be deleting the same segments: an event of its own
    that no longer fits would make it stop reading metadata altogether."""
    recent = sum(_is_recent(plan.state, now_ms) for plan in plans if plan.segments)
    if recent:
        what = "a partition" if recent == 1 else f"{recent} partitions"
        message = f"Brokers wrote events of {what} of {topic_id} in the last ten minutes: they may still be deleting."
        raise TieredctlError(ErrorCode.TOPIC_IN_USE, message)


def _is_recent(state: PartitionState, now_ms: int) -> bool:
    return state.last_broker_event is not None and now_ms - state.last_broker_event.timestamp_ms < _RECENT_MS


def changes_to_shown(shown: PartitionPlan, now: PartitionPlan) -> Iterator[str]:
    """What was shown to be removed, and is no longer as it was shown.

    An object that disappeared from the store is not a change: it was to be deleted.
    """
    partition = shown.state.partition
    doomed = {segment.segment_id: segment for segment in shown.segments}
    for segment in now.state.segments:
        before = doomed.get(segment.segment_id, segment)
        if before.state is not segment.state:
            yield f"segment {segment.segment_id} of {partition} went from {before.state.name} to {segment.state.name}"
        elif before != segment:
            yield f"the metadata of segment {segment.segment_id} of {partition} changed"
    if shown.state.delete_state is not now.state.delete_state:
        yield f"another run continued the removal of {partition}"
    objects = {stored.key: stored for stored in shown.doomed()}
    for stored in now.doomed():
        if objects.get(stored.key, stored) != stored:
            yield f"object {stored.key} was rewritten"


def appeared_since(shown: PartitionPlan, now: PartitionPlan) -> Iterator[str]:
    """What was not shown, and exists now."""
    partition = shown.state.partition
    shown_ids = {segment.segment_id for segment in shown.state.segments}
    new = [segment for segment in now.state.segments if segment.segment_id not in shown_ids]
    yield from (f"segment {segment.segment_id} of {partition} appeared, in {segment.state.name}" for segment in new)
    keys = {stored.key for stored in shown.doomed()}
    yield from (f"object {stored.key} appeared" for stored in now.doomed() if stored.key not in keys)
    event = now.state.last_broker_event
    if event is not None and event != shown.state.last_broker_event:
        yield f"broker {event.broker_id} wrote an event of {partition}"


def demand_no_changes(changes: Sequence[str]) -> None:
    """Raises TieredctlError `world-changed` that names them."""
    if changes:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"Since the plan was shown, {named(changes)}.", hint=_HINT)


def named(changes: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(changes) - _NAMED
    return "; ".join(changes[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def keys_with_versions(plan: PartitionPlan, store: ObjectStore, layout: Layout, scope: RemovalScope) -> list[str]:
    """The keys that have kept versions or delete markers: for a topic that is gone, all that the layout explains as the
    partition's; for a live one, those of segments that were planned, or whose deletion is recorded as finished."""
    prefix = layout.partition_prefix(plan.state.partition)
    ended = [one for one in plan.state.segments if one.state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED]
    removed = {segment.segment_id for segment in (*plan.segments, *ended)}
    with_versions: dict[str, None] = {}
    for kept in store.kept_versions(prefix):
        explained = layout.explain(kept.key)
        if explained is None or explained.topic_id_partition != plan.state.partition:
            continue
        if not scope.topic_is_live or explained.segment_id in removed:
            with_versions[kept.key] = None
    # Those that were copied under another prefix are in no listing of this one.
    with_versions |= dict.fromkeys(stored.key for stored in plan.doomed() if not stored.key.startswith(prefix))
    return list(with_versions)


def _demand_right_store(
    plans: Sequence[PartitionPlan], known_topic_ids: Container[str], store: ObjectStore, layout: Layout
) -> None:
    """Copies whose deletion never began have objects; if none has, the store must have another known topic's."""
    has_copies = any(_is_copied(segment) for plan in plans for segment in plan.segments)
    if not has_copies or any(True for plan in plans for _ in plan.doomed()):
        return
    for stored in islice(list_unreserved(store), _SAMPLE_OBJECTS):
        explained = layout.explain(stored.key)
        if explained is not None and explained.topic_id in known_topic_ids:
            return
    raise TieredctlError(ErrorCode.NO_OVERLAP, f"{store.url} has no objects of a topic that this metadata knows.")


def _objects_by_segment(
    state: PartitionState, store: ObjectStore, layout: Layout
) -> tuple[dict[str, list[StoredObject]], int]:
    """The partition's objects, and how many other objects are under its prefix."""
    prefix = layout.partition_prefix(state.partition)
    by_segment: dict[str, list[StoredObject]] = defaultdict(list)
    unknown = 0
    for stored in list_unreserved(store, prefix):
        explained = layout.explain(stored.key)
        if explained is None or explained.topic_id_partition != state.partition:
            unknown += 1
        else:
            by_segment[explained.segment_id].append(stored)
    for segment in state.segments:
        keys = {**layout.promised_objects(segment), **layout.optional_objects(segment)}.values()
        # Those that were copied under another prefix are in no listing of this one.
        elsewhere = (store.head(key) for key in keys if not key.startswith(prefix))
        by_segment[segment.segment_id] += filter(None, elsewhere)
    return by_segment, unknown


def _is_copied(segment: RemoteLogSegmentMetadata) -> bool:
    return segment.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def _is_being_copied(segment: RemoteLogSegmentMetadata) -> bool:
    return segment.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
