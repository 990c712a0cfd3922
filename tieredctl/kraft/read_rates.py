"""How much a broker reads to keep a log short, as KIP-630's "Loading State and Frequency of Compaction" reckons it."""

from __future__ import annotations

from typing import NamedTuple


class ReadRates(NamedTuple):
    """Bytes a second."""

    head: float
    """From the head of the log, to update the in-memory state: all that snapshots need."""
    offset_map: float
    """Once more, to map keys to offsets: compaction."""
    old_segments: float
    """From the segments that compaction copies."""

    @property
    def with_snapshots(self) -> float:
        return self.head

    @property
    def with_compaction(self) -> float:
        return sum(self)


def read_rates(state_bytes: float, change_per_second: float, dirty_bytes: float) -> ReadRates:
    """Of a log whose changes are compacted whenever there are so many bytes of them."""
    seconds = dirty_bytes / change_per_second
    return ReadRates(change_per_second, change_per_second, (state_bytes + dirty_bytes) / seconds)


def least_dirty_bytes(state_bytes: float, clean_ratio: float) -> float:
    """How many bytes of changes make the given share of the whole log dirty, as Kafka's min.cleanable.dirty.ratio."""
    return state_bytes * clean_ratio / (1 - clean_ratio)
