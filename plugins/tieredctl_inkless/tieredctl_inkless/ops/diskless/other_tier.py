"""Offsets of diskless partitions that no batch has: they are in tiered segments or classic logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tieredctl.model.ids import uuid_text
from tieredctl.ops.documents import Document
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables
from tieredctl_inkless.ops.diskless.batch_rows import column, whole_numbers

_MOST_NAMED = 100
_NOTHING = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class OtherTier:
    """Partitions that have such offsets, and how many there are."""

    partitions: int = 0
    offsets: int = 0
    ranges: Sequence[Document] = field(default_factory=list)
    """The ranges of the first of these partitions, by topic id; offsets are inclusive."""

    def document(self) -> Document:
        return {"partitions": self.partitions, "offsets": self.offsets, "ranges": list(self.ranges)}


def other_tier(tables: ControlPlaneTables) -> OtherTier:
    """From the first offset that a partition serves in any tier to that of the diskless one. Where its remote start is
    not known, it is taken to begin at its log start."""
    logs = tables.logs
    log_starts, remote_starts = column(logs, "logStartOffset"), logs["remoteLogStartOffset"].fill_null(_NOTHING)
    begins = np.minimum(log_starts, whole_numbers(remote_starts))
    ends = np.maximum(log_starts, column(logs, "disklessStartOffset"))
    # What was announced as the diskless start may not be reached yet.
    ends = np.minimum(ends, column(logs, "highWatermark"))
    rows = np.flatnonzero(begins < ends)
    named = logs.take(rows[:_MOST_NAMED]).select(["topic", "topicId", "partition"]).to_pylist()
    ranges = [
        {**log, "topicId": uuid_text(log["topicId"]), "offsets": [first, after - 1]}
        for log, first, after in zip(named, begins[rows].tolist(), ends[rows].tolist(), strict=False)
    ]
    return OtherTier(len(rows), int((ends - begins)[rows].sum()), ranges)
