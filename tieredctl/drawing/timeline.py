"""A partition over its offsets: what they are, in lanes that any width can show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tieredctl.drawing.scale import NO_OFFSETS, Cells, Ints, OffsetRanges, Scale
from tieredctl.model.local_log import LeaderEpochs


class Part(IntEnum):
    """What offsets are. A cell that has room for several shows the worst, which is the greatest."""

    COPIED = 1
    LOCAL = 2
    """On a broker's disk."""
    DELETED = 3
    UNREACHED = 4
    """Copied, but in no line of leaders that look-ups follow."""
    OVERLAP = 5
    """Copied more than once."""
    DELETING = 6
    COPYING = 7
    UNKNOWN = 8
    """In no segment that is known, where not all of the metadata was read."""
    GAP = 9
    """In no segment; a broker's disk may have them."""
    MISSING = 10
    """In no segment, and below what the leader has on its disk."""


LANES = {
    "copied": (Part.COPIED, Part.OVERLAP, Part.UNKNOWN, Part.GAP, Part.MISSING),
    "copying": (Part.COPYING,),
    "deleting": (Part.DELETING,),
    "deleted": (Part.DELETED,),
    "unreached": (Part.UNREACHED,),
    "local": (Part.LOCAL,),
}
MEANINGS = {
    Part.COPIED: "copied",
    Part.LOCAL: "on the disk:",
    Part.DELETED: "deleted",
    Part.UNREACHED: "copied, but no look-up reaches it",
    Part.OVERLAP: "copied more than once:",
    Part.DELETING: "being deleted",
    Part.COPYING: "being copied",
    Part.UNKNOWN: "unknown, since not all of the metadata was read:",
    Part.GAP: "gap: no segment holds",
    Part.MISSING: "missing: neither a segment nor the disk holds",
}
"""What to say of each; after a colon or a verb, offsets follow."""
TROUBLES = (Part.OVERLAP, Part.DELETING, Part.COPYING, Part.UNKNOWN, Part.GAP, Part.MISSING)


@dataclass(frozen=True, slots=True)
class PartRanges:
    """The offsets that are one thing."""

    ranges: OffsetRanges
    begins: Ints = field(default_factory=lambda: NO_OFFSETS.firsts)
    """Where segments begin."""
    segments: int = 0
    since_ms: int | None = None
    """The earliest of their last events, in ms since the epoch."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A line of a drawing."""

    name: str
    cells: Cells
    """The Part in each cell; 0 for nothing."""
    begins: NDArray[np.bool_]
    """In which cells a segment begins; none where there are too many to tell apart."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A partition over its offsets; only parts that it has are there. What is not known of its log is None."""

    parts: Mapping[Part, PartRanges]
    epochs: LeaderEpochs
    log_start_offset: int | None = None
    local_start_offset: int | None = None
    end_offset: int | None = None
    """Exclusive."""

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The first and the last offset of anything, both inclusive; None of an empty one."""
        all_of = [part.ranges for part in self.parts.values() if len(part.ranges)]
        if not all_of:
            return None
        return min(int(one.firsts.min()) for one in all_of), max(int(one.lasts.max()) for one in all_of)

    @property
    def worst(self) -> int:
        """How bad it is: the greatest trouble it has; 0 without any."""
        return max((int(part) for part in TROUBLES if part in self.parts), default=0)

    def of(self, part: Part) -> OffsetRanges:
        """The offsets of a part."""
        return self.parts[part].ranges if part in self.parts else NO_OFFSETS

    def scale(self, width: int) -> Scale:
        """All of its offsets on so many cells. Raises ValueError for an empty one."""
        if self.bounds is None:
            raise ValueError("nothing has no scale")
        return Scale(*self.bounds, width)

    def lanes(self, scale: Scale) -> list[Lane]:
        """What is to be drawn, from the top down: copies first, then lanes that have something."""
        return [
            Lane(name, scale.painted((part, self.of(part)) for part in parts), self._begins(parts, scale))
            for name, parts in LANES.items()
            if name == "copied" or any(part in self.parts for part in parts)
        ]

    def epochs_on(self, scale: Scale) -> list[tuple[int, int]]:
        """(cell, leader epoch) for each epoch that has offsets there, where it begins or the scale does."""
        starts = [start for _, start in self.epochs]
        ends = [*starts[1:], scale.last + 1]
        return [
            (scale.cell(start), epoch)
            for (epoch, start), end in zip(self.epochs, ends, strict=True)
            if start <= scale.last and end > scale.first
        ]

    def parts_at(self, offset: int) -> Sequence[Part]:
        """What an offset is, the worst last."""
        return [part for part in sorted(self.parts) if len(self.of(part).within(offset, offset))]

    def _begins(self, parts: Sequence[Part], scale: Scale) -> NDArray[np.bool_]:
        begins = np.concatenate(
            [self.parts[part].begins for part in parts if part in self.parts] or [NO_OFFSETS.firsts]
        )
        flags = np.zeros(scale.width, np.bool_)
        if 2 * len(begins) <= scale.width:
            flags[scale.cells(OffsetRanges(begins, begins))[0]] = True
        return flags
