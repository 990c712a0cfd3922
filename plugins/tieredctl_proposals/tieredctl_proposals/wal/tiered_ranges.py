"""Which offsets of which leader epochs remote storage has (KIP-405's tier), for many partitions at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tieredctl.formats.columns import Lists
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_NONE = np.zeros(0, np.int64)


class EpochRanges(NamedTuple):
    """Ranges of offsets, one per row, both ends inclusive."""

    partitions: Ints
    epochs: Ints
    firsts: Ints
    lasts: Ints


NO_RANGES = EpochRanges(_NONE, _NONE, _NONE, _NONE)


class TieredRanges:
    """Joined ranges; adjacent ones of an epoch count as one."""

    def __init__(self, ranges: EpochRanges = NO_RANGES) -> None:
        partitions, epochs, firsts, lasts = ranges
        order = np.lexsort((firsts, epochs, partitions))
        partitions, epochs, firsts, lasts = (column[order] for column in ranges)
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (partitions[1:] != partitions[:-1]) | (epochs[1:] != epochs[:-1])
        reached = _running_maximum(lasts, np.cumsum(is_first))
        begins = is_first.copy()
        begins[1:] |= firsts[1:] > reached[:-1] + 1
        starts = np.flatnonzero(begins)
        ends = np.append(starts, len(order))[1:] - 1
        self._ranges = EpochRanges(partitions[starts], epochs[starts], firsts[starts], reached[ends])

    @classmethod
    def of(cls, metadata: ReplayedMetadata, numbers: Mapping[TopicIdPartition, int]) -> TieredRanges:
        """What a cluster's metadata has in COPY_SEGMENT_FINISHED, of the partitions that have a number. The events must
        be described."""
        rows = metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])
        wanted = np.array([numbers.get(partition, -1) for partition in metadata.partitions], np.int64)
        rows = rows[wanted[metadata.rows.partitions[rows]] >= 0]
        owners = wanted[metadata.rows.partitions[rows]]
        return cls(epoch_ranges(metadata.events.contents.starts.epoch_ranges(metadata.rows.starts[rows]), owners))

    def cover(self, asked: EpochRanges) -> Flags:
        """Flags the asked ranges that are covered in full."""
        ranges = self._ranges
        count = len(ranges.firsts)
        partitions, epochs, firsts = (
            np.concatenate([ours, theirs]) for ours, theirs in zip(ranges[:3], asked[:3], strict=True)
        )
        is_asked = np.arange(len(firsts)) >= count
        order = np.lexsort((is_asked, firsts, epochs, partitions))
        before = np.maximum.accumulate(np.where(is_asked[order], -1, order))
        covered = np.zeros(len(firsts), np.bool_)
        has_one = before >= 0
        if has_one.any():
            ours, theirs = before[has_one], order[has_one]
            same = (partitions[ours] == partitions[theirs]) & (epochs[ours] == epochs[theirs])
            lasts = np.concatenate([ranges.lasts, asked.lasts])
            covered[theirs] = same & (ranges.lasts[ours] >= lasts[theirs])
        return covered[count:]


def epoch_ranges(epochs: Lists, partitions: Ints) -> EpochRanges:
    """The ranges in a column of leader epochs with their first and last offsets, where each row is of a partition."""
    owners = np.repeat(partitions, np.diff(epochs.bounds))
    columns = (epochs.elements[name].astype(np.int64) for name in ("LeaderEpoch", "Offset", "LastOffset"))
    return EpochRanges(owners, *columns)


def _running_maximum(values: Ints, groups: Ints) -> Ints:
    """The greatest of its group so far, for each value; groups rise."""
    by_value = np.sort(values)
    ranks = np.searchsorted(by_value, values)
    reached = np.maximum.accumulate(groups * (len(values) + 1) + ranks)
    maxima: Ints = by_value[reached - groups * (len(values) + 1)] if len(values) else values
    return maxima
