"""Which segments went on since the metadata was read: the deletion of one that seemed stuck may have ended. Metadata is
read again only where an orphan's segment may go on at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tieredctl.formats.uuid_lookup import NOT_FOUND
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.completeness import lost_between
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import SegmentStates, segment_states
from tieredctl.rlmm.segment_events import SegmentEvents

_GO_ON = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)


@dataclass(slots=True)
class MovedSegments:
    """Asks metadata that is read a second time, after the first, when it is needed first."""

    read_metadata: Callable[[], EventStream]
    first: EventStream
    """The first reading."""
    lost: list[Finding] = field(default_factory=list)
    """What the second reading lacks: then nothing is known to have moved."""
    _now: SegmentStates | None = None

    def have_moved(self, then: SegmentStates, rows: Ints) -> Flags:
        """Of rows of `then`, whether their segments are in another state by now. Raises TieredctlError as reading the
        metadata does."""
        may_go_on = np.isin(then.states[rows], _GO_ON)
        moved = np.zeros(len(rows), np.bool_)
        if not may_go_on.any():
            return moved
        now, rows = self._read(), rows[may_go_on]
        if self.lost:
            return moved
        found = now.rows.rows_of(then.segment_ids.at(rows))
        is_known = found != NOT_FOUND
        same = np.zeros(len(rows), np.bool_)
        same[is_known] = now.states[found[is_known]] == then.states[rows[is_known]]
        moved[may_go_on] = ~same
        return moved

    def _read(self) -> SegmentStates:
        if self._now is None:
            events = SegmentEvents()
            stream = self.read_metadata()
            read_events(stream, events)
            self.lost = lost_between(self.first, stream)
            self._now = segment_states(events)
        return self._now
