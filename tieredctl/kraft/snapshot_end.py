"""Whether a snapshot is of the log beside it: both have the last record that the snapshot contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.kraft.replica import SnapshotId


class LastBatch(NamedTuple):
    """The log's batch that has the last record of a snapshot."""

    last_offset: int
    epoch: int
    timestamp: int
    """Its greatest (ms)."""


def disagreements(snapshot: SnapshotId, last_contained_ms: int | None, last: LastBatch) -> Iterator[str]:
    """How a snapshot, by its name and the time in its header (ms; None where unknown), contradicts the log.

    A controller ends a snapshot with a batch, names it after that batch's offset and epoch, and writes the batch's time
    into the header (KIP-630, Validation of Snapshot and Log).
    """
    offset = snapshot.end_offset - 1
    if last.last_offset != offset:
        yield f"offset {offset} is not the last of its batch in the log"
    if last.epoch != snapshot.epoch:
        yield f"offset {offset} is of epoch {last.epoch} in the log"
    if last_contained_ms not in (None, last.timestamp):
        yield f"its header says {last_contained_ms} ms for offset {offset}, the log {last.timestamp} ms"
