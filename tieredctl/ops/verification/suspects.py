"""Finds segments that have something to report, by the listing: a row each of `ReplayedMetadata.rows`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.verification.judged_partitions import PARTS, Masks, any_segment, mask_of
from tieredctl.ops.verification.listed_objects import ANY_PART, ARCHIVED, ListedObjects
from tieredctl.ops.verification.object_check import PromisedTransactionIndexes
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_LOG, _TRANSACTION_INDEX = mask_of([Part.LOG]), mask_of([Part.TRANSACTION_INDEX])
_AT_ONCE = 1 << 16


class IdentifiedSegment(NamedTuple):
    """A `SegmentIdentity`, with nothing else."""

    topic_id_partition: TopicIdPartition
    segment_id: str
    start_offset: int
    custom_metadata: bytes | None


@dataclass
class Suspects:
    """What columns show about each segment."""

    metadata: ReplayedMetadata
    listed: ListedObjects
    clock: Clock
    transaction_indexes: PromisedTransactionIndexes

    @cached_property
    def finished(self) -> Flags:
        """Flags the segments in COPY_SEGMENT_FINISHED whose objects are promised."""
        finished: Flags = self.metadata.rows.states == RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        return finished & self._are_promised

    @cached_property
    def rows(self) -> Flags:
        """Flags the segments to be looked at one by one. Of a finished one an object is not listed, lies in an archive,
        has another size than the metadata says, or is a transaction index that must be there; an unfinished one is
        stuck."""
        suspects = self.finished & ~(self._are_complete & ~self._are_archived & self._have_right_sizes)
        suspects[self._without_transaction_index[self._need_transaction_index]] = True
        return suspects | self._are_stuck

    @cached_property
    def sound(self) -> Flags:
        """Finished ones with all their objects, as they should be."""
        return self.finished & ~self.rows

    @property
    def transaction_indexes_unknown(self) -> int:
        """For how many of them the listing does not show whether they lack a transaction index that they need."""
        return int(self.sound[self._without_transaction_index].sum())

    @cached_property
    def moved(self) -> dict[int, set[str]]:
        """The keys of those whose custom metadata puts them elsewhere than their identity would, by row."""
        return {row: keys for row, keys, _ in self._described if keys is not None}

    @property
    def parts(self) -> Masks:
        """The parts of each segment that are listed."""
        return self.listed.flags & np.uint16(ANY_PART)

    @property
    def _layout(self) -> Layout:
        return self.listed.judged.layout

    @cached_property
    def _are_promised(self) -> Flags:
        promised: Flags = ~self.listed.judged.are_gone[self.metadata.rows.partitions]
        return promised

    @property
    def _are_archived(self) -> Flags:
        archived: Flags = (self.listed.flags & ARCHIVED) != 0
        return archived

    @cached_property
    def _are_complete(self) -> Flags:
        promised = self.listed.judged.promised[self.metadata.rows.partitions]
        complete: Flags = (self.listed.flags & promised) == promised
        return complete

    @property
    def _have_right_sizes(self) -> Flags:
        right = self._have_right_log_sizes
        for row, keys, size in self._described:
            right[row] &= keys is None and size in (None, int(self.listed.promised_sizes[row]))
        return right

    @property
    def _have_right_log_sizes(self) -> Flags:
        """Where a layout knows a log's size by other parts, each segment is looked at."""
        right = np.ones(len(self.finished), np.bool_)
        for mask in np.flatnonzero(np.bincount(self.parts[self.finished])).tolist():
            parts = [part for number, part in enumerate(PARTS) if mask & 1 << number]
            if self._layout.original_log_size(dict.fromkeys(parts, 0)) is not None:
                right[self.parts == mask] = False
        if Part.LOG in self._layout.verbatim_parts:
            rows = np.flatnonzero(~right)
            sizes = self.metadata.sizes(rows)
            right[rows] = (self.listed.log_sizes[rows] == sizes) | (sizes < 0)  # what is not known contradicts nothing
        return right

    @cached_property
    def _described(self) -> list[tuple[int, set[str] | None, int | None]]:
        """What custom metadata says of finished segments that have any: the row; the keys if they are others; the size
        of the promised objects."""
        finished = np.flatnonzero(self.finished)
        rows = finished[self.metadata.have_custom_metadata(finished)]
        return [
            (row, self._keys_elsewhere(segment), self._layout.stored_size(segment))
            for row, segment in zip(rows.tolist(), self.identified(rows), strict=True)
        ]

    def identified(self, rows: Ints) -> Iterator[IdentifiedSegment]:
        """Some rows as what layouts ask for."""
        for first in range(0, len(rows), _AT_ONCE):
            some = rows[first : first + _AT_ONCE]
            partitions = self.metadata.rows.partitions[some].tolist()
            ids = self.metadata.rows.segment_ids.at(some).texts()
            offsets, customs = self.metadata.start_offsets(some).tolist(), self.metadata.custom_metadata(some)
            for number, segment_id, offset, custom in zip(partitions, ids, offsets, customs, strict=True):
                yield IdentifiedSegment(self.metadata.partitions[number], segment_id, offset, custom)

    def _keys_elsewhere(self, segment: IdentifiedSegment) -> set[str] | None:
        keys, plain = self._keys(segment), self._keys(segment._replace(custom_metadata=None))
        return None if keys == plain else set(keys.values())

    def _keys(self, segment: IdentifiedSegment) -> dict[Part, str]:
        return possible_objects(self._layout, segment)

    @cached_property
    def _without_transaction_index(self) -> Ints:
        """Complete ones that may need a transaction index, and of which none is listed."""
        optional = self.listed.judged.optional[self.metadata.rows.partitions]
        may_have = ((optional & _TRANSACTION_INDEX) != 0) & ~self.metadata.txn_idx_empty
        lacks = ((self.listed.flags & _TRANSACTION_INDEX) == 0) & ((self.listed.flags & _LOG) != 0)
        return np.flatnonzero(self.finished & self._are_complete & may_have & lacks)

    @property
    def _need_transaction_index(self) -> Flags:
        rows = self._without_transaction_index
        return self.transaction_indexes.have(self.metadata.authors(rows), self.metadata.event_timestamps(rows))

    @property
    def _are_stuck(self) -> Flags:
        rows = np.flatnonzero(~self.finished & self._are_promised)
        stuck = np.zeros(len(self.finished), np.bool_)
        stuck[rows] = self.clock.now_ms - self.metadata.entered_ms(rows) > self.clock.older_than_ms
        return stuck


def explainable(layout: Layout, partition: TopicIdPartition) -> bool:
    """Whether the layout recognizes the keys that it promises of a partition's segments."""
    segment = any_segment(partition)
    keys = layout.promised_objects(segment).values()
    return all((explained := layout.explain(key)) and explained.topic_id_partition == partition for key in keys)
