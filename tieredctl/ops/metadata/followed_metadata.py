"""The metadata of one cluster, read once from its beginning, and then only what was added since.

Whatever shows that this is another cluster, or that history is missing, is a refusal, since its users delete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import demand_whole
from tieredctl.ops.metadata.coverage import MetadataCoverage, MetadataPlaces
from tieredctl.ops.metadata.event_reading import decoded_chunks
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents


class Reading(NamedTuple):
    """What was read: from where, and whether it goes further than the reading before."""

    source: MetadataSource
    went_further: bool


@dataclass(slots=True)
class FollowedMetadata:
    """How far the metadata was read, and its cluster. To be closed."""

    open_source: Callable[[], MetadataSource]
    """Opens the metadata; called once, and after each `reopen`."""
    cluster_id: str | None = None
    """The cluster that it must belong to; None until the first reading shows it."""
    read_before: Mapping[int, int] = field(default_factory=dict)
    """How far (exclusive) it must go at least, by metadata partition, which have to be the same ones; empty where
    nobody read it before."""
    _source: MetadataSource | None = None
    _is_read: bool = False
    """Whether everything that the source has was taken."""
    _topic_id: str | None = None
    _end_offsets: dict[int, int] = field(default_factory=dict)
    _places: MetadataPlaces = field(default_factory=MetadataPlaces)

    def source(self) -> MetadataSource:
        """The source as last read; opened if it was not. Raises TieredctlError as opening it does."""
        if self._source is None:
            self._source = self.open_source()
        return self._source

    def read(self, take: Callable[[EventStream], Iterable[Finding]]) -> Reading:
        """Gives `take` what is new, up to now; it returns what it found: no error may be among that.

        Raises TieredctlError: `another-cluster`, `metadata-incomplete` where history is missing or cannot be read,
        `world-changed` where there is less of it than was read before, or the topic is another one.
        """
        is_open = self._source is not None
        source = self.source()
        if is_open and source.advance():
            self._is_read = False
        self._demand_same_cluster(source)
        self._demand_same_topic(source)
        if self._is_read:
            return Reading(source, went_further=False)
        stream = EventStream(source, from_offsets=self._end_offsets, places=self._places)
        demand_whole(take(stream))
        went_further = self._note_ends(source)
        self._is_read = True
        return Reading(source, went_further)

    def reopen(self) -> None:
        """Has the next reading open the metadata again; it must be the same, and go on where the last one ended."""
        self.close()
        self._is_read = False

    def close(self) -> None:
        """Closes the source."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _demand_same_cluster(self, source: MetadataSource) -> None:
        cluster_id = source.cluster_id
        if cluster_id is not None:
            self.cluster_id = self.cluster_id or cluster_id
            if cluster_id != self.cluster_id:
                message = f"This metadata belongs to cluster {cluster_id}, not to {self.cluster_id}."
                raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message)
        earlier_numbers, numbers = sorted(self._end_offsets or self.read_before), source.metadata_partitions()
        if earlier_numbers and set(numbers) < set(earlier_numbers):
            MetadataCoverage(numbers, [max(earlier_numbers) + 1]).demand_all("The metadata was complete before")
        if earlier_numbers and earlier_numbers != numbers:
            message = f"{METADATA_TOPIC} had {len(earlier_numbers)} partitions, and now has {len(numbers)}."
            raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message)

    def _demand_same_topic(self, source: MetadataSource) -> None:
        topic_id = source.metadata_topic_id
        self._topic_id = self._topic_id or topic_id
        if topic_id != self._topic_id:
            message = f"{METADATA_TOPIC} had the id {self._topic_id}, and has {topic_id or 'an unknown one'} now"
            hint = "Was it deleted and recreated? Then the history is lost; see `tieredctl recover metadata`."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{message}: it is another topic.", hint=hint)

    def _note_ends(self, source: MetadataSource) -> bool:
        """Notes how far it was read, in all partitions or in none."""
        ends: dict[int, int] = {}
        for number in source.metadata_partitions():
            ends[number] = source.offset_range(number).end
            before = max(self._end_offsets.get(number, 0), self.read_before.get(number, 0))
            if ends[number] < before:
                message = f"{METADATA_TOPIC}-{number} ends at {ends[number]}, but was read up to {before} before."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Is this replica lagging?")
        earlier_ends, self._end_offsets = self._end_offsets, ends
        return earlier_ends != ends


@dataclass(slots=True)
class FollowedReplay:
    """The events of the partitions that are selected, and the state that they leave, as of the last `read`."""

    metadata: FollowedMetadata
    selects: Callable[[TopicIdPartition], bool] | None = None
    """Which user partitions; None for all."""
    keep_deleted: bool = False
    """Whether segments that are gone are known, too."""
    note: Callable[[EventChunk], None] = lambda _chunk: None
    """Called with all events of each chunk that is read, in order."""
    events: SegmentEvents = field(init=False)
    _known: ReplayedMetadata | None = None
    _known_events: int = -1

    def __post_init__(self) -> None:
        self.events = SegmentEvents(is_described=True, selects=self.selects)

    @property
    def known(self) -> ReplayedMetadata:
        """The state after all events; replayed only where some were added."""
        if self._known is None or self._known_events != self.events.count:
            self._known_events = self.events.count
            self._known = ReplayedMetadata(self.events, keep_deleted=self.keep_deleted)
        return self._known

    def read(self, judge: Callable[[EventStream], Iterable[Finding]]) -> None:
        """Reads what is new, up to now. `judge` returns the findings about it, once it is read. Raises TieredctlError
        as FollowedMetadata does."""

        def take(stream: EventStream) -> Iterable[Finding]:
            for chunk in decoded_chunks(stream):
                self.events.take(chunk)
                self.note(chunk)
            return judge(stream)

        self.metadata.read(take)
