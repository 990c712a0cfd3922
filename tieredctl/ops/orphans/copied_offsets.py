"""Which offsets of each partition metadata proves to be in finished copies, and so elsewhere than in an object.

Of a copy that began, and by its events never ended, the offsets are known. Of an object that metadata never named:

An object's name says where its segment begins, not where it ends. A leader copies its log without gaps, from the
highest offset that it knows to be copied (RemoteLogManager.copyLogSegment), and keeps what it has not copied. So where
finished copies hold an object's first offset and all known ones after it, and a leader began one of them when the store
had the object already, then that leader had the rest of its records still, and copies them too. A finished copy that
Kafka deleted since proves as much. Which leader epochs the records are of is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tieredctl.formats.windows import Flags, Ints


@dataclass(frozen=True, slots=True)
class CopiedStretches:
    """Offsets that finished copies hold without a gap: a row for each stretch, by partition, then by offset. Offsets
    are inclusive."""

    owners: Ints
    firsts: Ints
    lasts: Ints

    @classmethod
    def of(cls, owners: Ints, starts: Ints, ends: Ints) -> CopiedStretches:
        """Of finished copies, a row each, in no order."""
        order = np.lexsort((starts, owners))
        owners, starts, ends = owners[order], starts[order], ends[order]
        highest = _highest_so_far(owners, ends)
        begins = np.ones(len(owners), np.bool_)
        begins[1:] = (owners[1:] != owners[:-1]) | (starts[1:] - 1 > highest[:-1])
        edges = np.append(np.flatnonzero(begins), len(owners))
        return cls(owners[edges[:-1]], starts[edges[:-1]], highest[edges[1:] - 1])

    def hold(self, owners: Ints, starts: Ints, ends: Ints) -> Flags:
        """Whether all offsets of some ranges are in one stretch."""
        if not len(self.owners):
            return np.zeros(len(owners), np.bool_)
        # Ranks instead of offsets, so that both fit into one number that rises.
        distinct = np.unique(self.firsts)
        places = self.owners * (len(distinct) + 1) + np.searchsorted(distinct, self.firsts)
        wanted = owners * (len(distinct) + 1) + np.searchsorted(distinct, starts, side="right") - 1
        rows = np.maximum(np.searchsorted(places, wanted, side="right") - 1, 0)
        held: Flags = (self.owners[rows] == owners) & (self.firsts[rows] <= starts) & (ends <= self.lasts[rows])
        return held


NEVER = -1
"""When a copy began that no broker did: what `recover metadata` registers again has the time of the recovery."""
NOTHING = (int(np.iinfo(np.int64).max), -1, NEVER)
"""The row of a partition of which nothing is known to be copied."""


@dataclass(frozen=True, slots=True)
class CopiedOffsets:
    """A row for each partition, then one that stands for all others. Offsets are inclusive, times in ms."""

    firsts: Ints
    """From where on finished copies hold every offset,"""
    lasts: Ints
    """up to the highest that any of them holds."""
    begun_ms: Ints
    """When the last of them began that a broker began, by its event; NEVER if none did."""

    @classmethod
    def none(cls, partitions: int) -> CopiedOffsets:
        """Nothing is known to be copied."""
        return cls(*(np.full(partitions + 1, one, np.int64) for one in NOTHING))

    @classmethod
    def of(cls, partitions: int, stretches: CopiedStretches, owners: Ints, begun_ms: Ints) -> CopiedOffsets:
        """By the stretches of so many partitions, and when each of the finished copies in them began."""
        found = cls.none(partitions)
        # Of the rows of one partition, the last stays.
        found.firsts[stretches.owners] = stretches.firsts
        found.lasts[stretches.owners] = stretches.lasts
        np.maximum.at(found.begun_ms, owners, begun_ms)
        return found

    def hold(self, partitions: Ints, start_offsets: Ints, modified_ms: Ints) -> Flags:
        """Whether they prove that the records of objects of these partitions are elsewhere, by where the objects begin
        and since when, at the latest, the store has had them."""
        held: Flags = (self.firsts[partitions] <= start_offsets) & (start_offsets <= self.lasts[partitions])
        return held & (modified_ms <= self.begun_ms[partitions])


def _highest_so_far(owners: Ints, ends: Ints) -> Ints:
    """The highest end of each owner's rows up to each; rows of an owner stand together, and owners rise."""
    # Ranks instead of offsets, so that both fit into one number that rises.
    distinct, ranks = np.unique(ends, return_inverse=True)
    highest = np.maximum.accumulate(owners * len(distinct) + ranks)
    return distinct[highest - owners * len(distinct)]
