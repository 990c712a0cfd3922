"""Which segments must have a transaction index, judging by their broker's other segments.

Since Kafka 4.0 a broker says `txnIdxEmpty` of a segment without aborted transactions. Of one with, it says what every
release before says of all: nothing. So only if a broker said it of other segments, a while before and a while after,
means something by its silence: it was neither upgraded nor downgraded between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

NEAR_MS = 3_600_000
"""How far before and after a segment its broker may have said it of others."""
_BY_THE_COPIER = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)


@dataclass(frozen=True, slots=True)
class PromisedTransactionIndexes:
    """When each broker said of a segment that it has none, in milliseconds, rising."""

    said: Mapping[int, Ints]

    @classmethod
    def by(cls, metadata: ReplayedMetadata) -> PromisedTransactionIndexes:
        """What the brokers of a cluster wrote."""
        empty = np.flatnonzero(metadata.txn_idx_empty & np.isin(metadata.rows.states, _BY_THE_COPIER))
        authors, times = metadata.authors(empty), metadata.event_timestamps(empty)
        order = np.lexsort((times, authors))
        brokers, firsts = np.unique(authors[order], return_index=True)
        return cls(dict(zip(brokers.tolist(), np.split(times[order], firsts[1:]), strict=False)))

    def has(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Whether this segment must have a transaction index. False where unknown."""
        columns = np.array([metadata.author], np.int64), np.array([metadata.event_timestamp_ms], np.int64)
        return not metadata.txn_idx_empty and bool(self.have(*columns)[0])

    def have(self, authors: Ints, times: Ints) -> Flags:
        """Whether segments must have one that do not say that they have none, by whose broker wrote their last events,
        and when, in ms. False where unknown."""
        found = np.zeros(len(authors), np.bool_)
        for author in np.unique(authors).tolist():
            said = self.said.get(author)
            if said is None:
                continue
            rows = np.flatnonzero(authors == author)
            at = times[rows]
            later = np.searchsorted(said, at, side="right")
            between = (later > 0) & (later < len(said))
            before, after = said[np.maximum(later - 1, 0)], said[np.minimum(later, len(said) - 1)]
            found[rows] = between & (at - before <= NEAR_MS) & (after - at <= NEAR_MS)
        return found
