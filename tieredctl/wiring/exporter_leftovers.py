"""`exporter`: of which copies and deletions that never ended tieredctl removed the objects, by a store that is asked
now and then."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from tieredctl.config.plan_key import usable_key
from tieredctl.errors import system_error
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.doctor.removed_leftovers import REMOVED, Leftovers, RemovalNotes, left_unfinished
from tieredctl.ops.metadata.state import unfinished
from tieredctl.ops.verification.removed_keys import read_removed_keys
from tieredctl.rlmm.cache import KnownSegment
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.wiring.places import StorePlace

_PAUSE_TIMES = 20
"""The store is asked about the same segments again no sooner than after so many times as long as it took."""


class KnownLeftovers(NamedTuple):
    """What is known to be removed of what never ended."""

    removed: frozenset[str] = frozenset()
    """The segments' ids."""
    findings: Sequence[Finding] = ()
    """That they were removed."""
    not_looked_at: Sequence[Finding] = ()
    """Why the store did not say."""

    def applied_to(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """The snapshot, whose metadata was read, with these apart from what is stuck."""
        left = [one for one in cluster.unfinished if one.metadata.segment_id not in self.removed]
        unseen = [*cluster.not_looked_at, *self.not_looked_at]
        return replace(cluster, unfinished=left, removed=self.findings, not_looked_at=unseen)


@dataclass(slots=True)
class LeftoversInStore:
    """Asks a store, where segments are stuck that it was not asked about lately."""

    place: StorePlace
    _known: KnownLeftovers = field(default_factory=KnownLeftovers)
    _asked_about: frozenset[str] = frozenset()
    _next_look: float = 0.0

    def of(self, metadata: ReplayedMetadata, clock: Clock) -> KnownLeftovers:
        """Those of a cluster's metadata. A store that does not answer leaves all of them stuck, with the reason."""
        old = [one for one in unfinished(metadata) if clock.now_ms - one.entered_ms > clock.older_than_ms]
        ids = frozenset(one.metadata.segment_id for one in old)
        began = time.monotonic()
        if ids == self._asked_about and (not ids or began < self._next_look):
            return self._known
        looking = Looking()
        left = looking.at(REMOVED, lambda: self._left(old, clock)) if old else None
        removed = frozenset[str]() if left is None else ids - {one.metadata.segment_id for one in left.unfinished}
        self._known = KnownLeftovers(removed, () if left is None else left.findings, looking.findings)
        self._asked_about, self._next_look = ids, began + (time.monotonic() - began) * (1 + _PAUSE_TIMES)
        return self._known

    def _left(self, old: Sequence[KnownSegment], clock: Clock) -> Leftovers:
        try:
            read_removed = partial(read_removed_keys, key=usable_key())
            return left_unfinished(old, clock, RemovalNotes(*self.place.open(), read_removed))
        except (OSError, MemoryError) as fault:
            raise system_error(fault) from None
