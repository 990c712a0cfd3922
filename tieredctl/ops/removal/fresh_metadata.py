"""What the metadata says now of objects that are planned to be removed.

What was added since the last look is read, and everything judged anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.model.findings import Finding
from tieredctl.model.ownership import ObjectStatus, OrphanCause
from tieredctl.model.removal import PlannedObject
from tieredctl.ops.event_stream import EventStream
from tieredctl.ops.followed_metadata import FollowedMetadata
from tieredctl.ops.orphans.judgement import Judge, verdict_of
from tieredctl.ops.orphans.listing import SpooledListing
from tieredctl.ops.orphans.live_topics import KnownTopics, LiveTopics, TopicSources, live_topics
from tieredctl.ops.orphans.object_columns import KnownOwners, object_columns
from tieredctl.ops.orphans.segment_events import SegmentEvents
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.storage.protocol import StoredObject

Verdict = tuple[ObjectStatus, OrphanCause | None]


@dataclass(slots=True)
class FreshMetadata:
    """The metadata of a plan's cluster, as of the last `refresh`."""

    metadata: FollowedMetadata
    layout: Layout
    min_age_ms: int
    topic_sources: TopicSources
    """Where it is said which topics there are at the moment."""
    clock_ms: Callable[[], int]
    partitions_are_sure: bool = False
    """Whether all metadata partitions were surely read: else what has no event may have some in another."""
    _events: SegmentEvents = field(default_factory=SegmentEvents)
    _states: SegmentStates | None = None
    _live: LiveTopics | None = None
    _judge: Judge | None = None
    _known: KnownOwners | None = None

    def refresh(self) -> None:
        """Reads what is new, up to now.

        Raises TieredctlError as FollowedMetadata does.
        """
        source, went_further = self.metadata.read(self._take)
        if went_further or self._states is None:
            self._states = segment_states(self._events)
        # Not before: what is asked about has to be older than the answer.
        live = self._live = live_topics(self.topic_sources, self._events.first_events_ms, source)
        self._judge = Judge(self._states, self.clock_ms(), self.min_age_ms, live, True, self.partitions_are_sure)
        self._known = KnownOwners(self._events.partitions, KnownTopics(self._events.first_events_ms, live))

    def verdicts(self, objects: Iterable[StoredObject]) -> list[Verdict]:
        """Whose each object is, by what was read last."""
        assert self._judge is not None
        assert self._known is not None
        return verdicts_on(objects, self.layout, self._known, self._judge)

    def topic_is_live(self, key: str) -> bool | None:
        """Whether the topic of an object is known to be there, by what was read last; None where nobody says."""
        explained = self.layout.explain(key)
        return None if explained is None or self._live is None else self._live.is_live(explained.topic_id)

    def demand_unchanged(self, batch: Sequence[PlannedObject]) -> None:
        """Raises TieredctlError `world-changed` where an object is no longer of the status that it was planned for."""
        verdicts = self.verdicts(StoredObject(one.key, one.size, one.last_modified_ms, "") for one in batch)
        for planned, (status, _) in zip(batch, verdicts, strict=True):
            if status.value != planned.status:
                message = f"{planned.key} was {planned.status}, and is {status.value} now."
                raise TieredctlError("world-changed", message)

    def _take(self, stream: EventStream) -> list[Finding]:
        self._events.read(stream)
        self.partitions_are_sure = stream.coverage.is_certain
        return stream.findings


def verdicts_on(objects: Iterable[StoredObject], layout: Layout, known: KnownOwners, judge: Judge) -> list[Verdict]:
    """Whose each of some objects is."""
    with SpooledListing(objects) as listing:
        return [
            verdict_of(code)
            for columns in object_columns(listing.batches(), layout, known)
            for code in judge.judge(columns).codes.tolist()
        ]
