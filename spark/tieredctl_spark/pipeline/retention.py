"""When `retention.ms` lets brokers delete what is stored, of a replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

DAY_MS = 86_400_000
_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_LAST_DAY = 2_932_896
"""31 December 9999, in days since the epoch."""


def expiring(metadata: ReplayedMetadata, retention_ms: Mapping[str, int | None]) -> Iterator[dict[str, Any]]:
    """How many finished segments, and bytes, of each topic expire on which day: by the newest record of each and of
    those before it in its partition, since brokers delete the oldest first. `retention_ms` is by topic id; None is
    unknown, negative is no limit."""
    rows = metadata.in_states([_FINISHED])
    newest = metadata.max_timestamps(rows)
    owners, sizes = metadata.rows.partitions[rows].astype(np.int64), metadata.sizes(rows)
    edges = np.flatnonzero(np.diff(owners, prepend=-1, append=-1))
    for first, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        partition = metadata.partitions[int(owners[first])]
        limit = retention_ms.get(partition.topic_id)
        named = {"topic": partition.topic, "topicId": partition.topic_id}
        some = sizes[first:end]
        if limit is None or limit < 0:
            yield named | _expiry(None, "unknown" if limit is None else "no-limit", some)
            continue
        # As Python's integers, which do not overflow, where either is beyond any calendar.
        highest = np.maximum.accumulate(newest[first:end])
        days = np.array([(one + limit) // DAY_MS for one in highest.tolist()], object)
        for day in sorted(set(days.tolist())):
            which = sizes[first:end][days == day]
            is_date = 0 <= day <= _LAST_DAY
            yield named | _expiry(day if is_date else None, None if is_date else "out-of-range", which)


def _expiry(day: int | None, reason: str | None, sizes: Ints) -> dict[str, Any]:
    is_known = bool((sizes >= 0).all())
    return {"expires": day, "reason": reason, "segments": len(sizes), "bytes": int(sizes.sum()) if is_known else None}
