"""Whether a transaction index fits the markers of its log, as far as these can be read: an index has no CRC."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.indexes import AbortedTransaction
from tieredctl.formats.record_batches import Attributes
from tieredctl.records.lost_records import Loss
from tieredctl.records.sound_batches import SoundBatches

_TRANSACTIONAL, _CONTROL = int(Attributes.TRANSACTIONAL), int(Attributes.CONTROL)


def index_contradiction(
    entries: Sequence[AbortedTransaction],
    start_offset: int,
    log: Iterable[SoundBatches | Loss],
    open_before: Mapping[int, int] | None,
    open_after: Mapping[int, int] | None,
) -> str | None:
    """Why the entries of a segment's index cannot be right; None where nothing speaks against them. `open_before` and
    `open_after` are the first offsets of the transactions that producer snapshots have open at its ends, by producer
    id; None where they are not known."""
    facts = _Facts({entry.last_offset: entry for entry in entries})
    for part in log:
        reason = facts.take(part)
        if reason is not None:
            return reason
    for entry in facts.left.values():
        producer, first, last, _ = entry
        named = f"it has a transaction of producer {producer} with offsets {first} to {last}"
        if not facts.is_lost(last):
            return f"{named}, where the log has no marker"
        if first >= start_offset:
            if facts.producers.get(first) != producer and not facts.is_lost(first):
                return f"{named}, but the log has none that begins there"
        elif open_before is not None and open_before.get(producer) != first:
            return f"{named}, but the producer snapshot before has none that begins there"
        if any(first <= offset < last for offset in facts.markers.get(producer, ())):
            return f"{named}, but the log has a marker between them"
        if open_after is not None and first <= open_after.get(producer, last + 1) <= last:
            return f"{named}, but the producer snapshot has it open"
    return None


@dataclass(slots=True)
class _Facts:
    left: dict[int, AbortedTransaction]
    """By last offset, the entries whose markers were not met."""
    markers: dict[int, list[int]] = field(default_factory=dict)
    producers: dict[int, int] = field(default_factory=dict)
    """By first offset of those batches with which transactions begin by the index, the producer id."""
    _lost: list[tuple[int, int]] = field(default_factory=list)
    _begun: dict[int, int] = field(default_factory=dict)
    """By producer id, the first offset that was met of its transaction."""
    _named: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._named = {entry.first_offset for entry in self.left.values()}

    def is_lost(self, offset: int) -> bool:
        return any(first <= offset <= last for first, last in self._lost)

    def take(self, part: SoundBatches | Loss) -> str | None:
        """Why the entries cannot be right beside this."""
        if isinstance(part, Loss):
            if part.offsets is not None:
                self._lost.append(part.offsets)
                self._begun.clear()
            return None
        attributes, offsets = part.headers["attributes"], part.first_offsets
        for row in np.flatnonzero(attributes & _TRANSACTIONAL).tolist():
            offset, producer = int(offsets[row]), int(part.headers["producerId"][row])
            if not int(attributes[row]) & _CONTROL:
                self._begun.setdefault(producer, offset)
                if offset in self._named:
                    self.producers[offset] = producer
                continue
            try:
                reason = self._marker(producer, offset, is_abort=part.is_abort_marker(row))
            except DecodeError:
                continue  # a malformed marker says nothing
            if reason is not None:
                return reason
        return None

    def _marker(self, producer: int, offset: int, *, is_abort: bool) -> str | None:
        entry, begun = self.left.pop(offset, None), self._begun.pop(producer, None)
        before = self.markers.setdefault(producer, [])
        before.append(offset)
        if not is_abort:
            return None if entry is None else f"it has an aborted transaction that the marker at {offset} committed"
        if entry is None:
            # An aborted transaction without a record has no entry.
            return None if begun is None else f"it lacks the transaction that the marker at {offset} aborted"
        beyond = begun is not None and entry.first_offset > begun
        if entry.producer_id != producer or beyond or (len(before) > 1 and entry.first_offset <= before[-2]):
            return f"its entry is not of the transaction that the marker at {offset} aborted"
        return None
