"""The metadata of some partitions, by columns: read once, then only what was added since."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_reading import decoded_chunks
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import EventChunk, SegmentEvents


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
