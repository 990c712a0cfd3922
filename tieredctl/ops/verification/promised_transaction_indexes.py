"""Which segments must have a transaction index, judging by their broker's other segments.

Since Kafka 4.0 a broker says `txnIdxEmpty` of a segment without aborted transactions. Of one with, it says what every
release before says of all: nothing. So only if a broker said it of other segments, a while before and a while after,
means something by its silence: it was neither upgraded nor downgraded between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

NEAR_MS = 3_600_000
"""How far before and after a segment its broker may have said it of others."""
_BY_THE_COPIER = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)


@dataclass(frozen=True, slots=True)
class PromisedTransactionIndexes:
    """When each broker said of a segment that it has none, in milliseconds, rising."""

    said: Mapping[int, list[int]]

    @classmethod
    def by(cls, metadata: ReplayedMetadata) -> PromisedTransactionIndexes:
        """What the brokers of a cluster wrote."""
        empty = np.flatnonzero(metadata.txn_idx_empty & np.isin(metadata.rows.states, _BY_THE_COPIER))
        authors, times = metadata.authors(empty), metadata.event_timestamps(empty)
        order = np.lexsort((times, authors))
        brokers, firsts = np.unique(authors[order], return_index=True)
        groups = np.split(times[order], firsts[1:])
        return cls(dict(zip(brokers.tolist(), (one.tolist() for one in groups), strict=False)))

    def has(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Whether this segment must have a transaction index. False where unknown."""
        if metadata.txn_idx_empty:
            return False
        times, at = self.said.get(metadata.author, []), metadata.event_timestamp_ms
        later = bisect_right(times, at)
        return 0 < later < len(times) and at - times[later - 1] <= NEAR_MS and times[later] - at <= NEAR_MS
