"""Which offsets of a partition were in finished copies that are deleted, or being deleted.

Retention deletes by leader epoch, so after a change of leader later offsets may go before earlier ones: a hole that
deletions explain is no loss, whatever lies around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeletedOffsets:
    """Stretches of offsets, both ends inclusive, in no order."""

    stretches: Sequence[tuple[int, int]] = ()

    @property
    def highest(self) -> int | None:
        """None where nothing was deleted."""
        return max((last for _, last in self.stretches), default=None)

    def not_among(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """What of the offsets from `first` to `last` was never in a deleted segment."""
        for start, end in sorted(self.stretches):
            if end < first:
                continue
            if start > last:
                break
            if start > first:
                yield first, start - 1
            first = end + 1
        if first <= last:
            yield first, last


NOTHING_DELETED = DeletedOffsets()
