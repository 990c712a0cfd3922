"""Reads what a segment serves: only the bytes that are needed, as sound batches in order, and what is damaged."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.record_batches import HEADER_BYTES, LOG_OVERHEAD
from tieredctl.formats.segment_parts import offset_index_entries
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.remote.log_bytes import LogBytes
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.process.progress import note_more
from tieredctl.records.batch_order import BatchOrder
from tieredctl.records.leaders_tail import LayoutWithLeaders
from tieredctl.records.legacy_log import begins_with_legacy, legacy_batches
from tieredctl.records.lost_records import Loss, SegmentLosses
from tieredctl.records.served_spans import ServedSpan
from tieredctl.records.sound_batches import SoundBatches

PIECE_BYTES = 1 << 23
_PIECES_IN_FLIGHT = 4
"""At least, where a request says how much of a log is in flight: memory follows the pieces, too."""
INDEXED_FROM_BYTES = 1 << 20
"""The size from which on a log's index is asked for: it would take longer than the rest of the log."""
_ENTRY_BYTES = 8
_MORE_BYTES = 1 << 16
"""What is read first beyond what was thought to be enough."""
_BASE_OFFSET = struct.Struct(">q")


class _Place(NamedTuple):
    """Where reading begins: the offset and the number of the index's entry that says so, if one does; and up to where
    what is asked for reaches, None for the end."""

    position: int
    offset: int | None
    end: int | None
    row: int


class _DoubtfulEntry(Exception):
    """That the log at a place is not what the index says."""


class SegmentLog:
    """The part of a segment's log that holds some of its offsets."""

    def __init__(
        self,
        store: ObjectStore,
        layout: SegmentObjects,
        span: ServedSpan,
        *,
        reads_on: bool = False,
        bytes_in_flight: int | None = None,
        most_unfolded: int | None = None,
    ) -> None:
        """`reads_on` and `bytes_in_flight` as `LogBytes` has them, `most_unfolded` as `RecordRequest` has it."""
        self._span = span
        self._leaders = layout if span.is_on_disk and isinstance(layout, LayoutWithLeaders) else None
        self._metadata = span.segment
        self._reader = layout.open_segment(store, span.segment)
        at_once = 1 if span.is_on_disk else store.parallel_reads
        self._log = LogBytes(self._reader, at_once, reads_on=reads_on, bytes_in_flight=bytes_in_flight)
        own = PIECE_BYTES if bytes_in_flight is None else bytes_in_flight // _PIECES_IN_FLIGHT
        self._piece_bytes = min(PIECE_BYTES, own)
        self._most_unfolded = most_unfolded
        self._losses = SegmentLosses(layout, span.segment)
        self._order = BatchOrder(span, self._losses, self._log)

    @property
    def bytes_read(self) -> int:
        """The bytes that were read of the log, as the broker wrote it."""
        return self._log.bytes_read

    def ask(self) -> None:
        """Reads a small log before it is its turn."""
        size = self._metadata.known_size
        if size and size <= min(INDEXED_FROM_BYTES, self._piece_bytes) and not self._span.is_on_disk:
            self._log.ask(size)

    def batches(self) -> Iterator[SoundBatches | Loss]:
        """Sound batches with offsets of the span, and perhaps others before and after them; and what is lost. Raises
        TieredctlError where nothing can be read from the store."""
        if self._leaders is not None:
            yield from self._leaders.served_batches(self._span)
            return
        try:
            yield from self._batches()
        except DecodeError as error:
            yield self._losses.loss(
                *(FindingCode.MANIFEST_DAMAGED, Part.MANIFEST, error.reason),
                position=error.position,
                offsets=self._unread,
            )
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            yield self._losses.unread(Part.LOG, error, self._unread)

    @property
    def _unread(self) -> tuple[int, int]:
        return self._order.reached + 1, self._span.last

    def _batches(self) -> Iterator[SoundBatches | Loss]:
        size = self._metadata.known_size
        if size is None:
            size = self._reader.parts().get(Part.LOG, 0)
        whole = (self._metadata.start_offset, self._metadata.end_offset)
        place = None
        is_small = size <= INDEXED_FROM_BYTES or self._span.is_on_disk
        if not is_small and (self._span.first, self._span.last) != whole:
            try:
                place = self._looked_up(size)
            except DecodeError as error:
                yield self._losses.loss(
                    FindingCode.INDEX_DAMAGED, Part.OFFSET_INDEX, error.reason, position=error.position
                )
            except TieredctlError as error:
                if error.code in CONCERN_EVERY_OBJECT:
                    raise
                yield self._losses.unread(Part.OFFSET_INDEX, error)
        suspect = None
        if place is not None:
            try:
                yield from self._from(place, size)
            except _DoubtfulEntry:
                suspect = place
            else:
                return
        yield from self._from(_Place(0, None, None, 0), size, suspect)

    def _looked_up(self, size: int) -> _Place | None:
        """Where the span's first offset is by the offset index, and where what follows its last one begins."""
        index = offset_index_entries(self._reader.read(Part.OFFSET_INDEX))
        offsets, positions = index.relative_offsets + self._metadata.start_offset, index.positions
        falls = np.flatnonzero((np.diff(offsets) <= 0) | (np.diff(positions) <= 0))
        if len(falls) or (len(offsets) and int(positions[-1]) >= size):
            row = int(falls[0]) + 1 if len(falls) else len(offsets) - 1
            raise DecodeError("its entries do not rise, or lie beyond the log", row * _ENTRY_BYTES)
        row = int(np.searchsorted(offsets, self._span.first, side="right")) - 1
        # The batch of the entry after the last offset may hold that offset, too; it ends before the next entry.
        behind = int(np.searchsorted(offsets, self._span.last, side="right")) + 1
        end = int(positions[behind]) + HEADER_BYTES if behind < len(positions) else None
        if row < 0:
            return _Place(0, None, end, 0)
        return _Place(int(positions[row]), int(offsets[row]), end, row)

    def _from(self, place: _Place, size: int, suspect: _Place | None = None) -> Iterator[SoundBatches | Loss]:
        """Raises _DoubtfulEntry, before anything is handed out, where the place does not fit the log. `suspect` is one
        that did not, to be reported unless the log itself is to blame."""
        is_whole = place.position == 0 and self._is_to_end
        order, pieces = self._order, _Pieces(self._log, size, place, self._piece_bytes, is_whole=is_whole)
        order.restart()
        there: int | None = None
        is_enough = False
        for number, part in enumerate(self._scanned(pieces, place.position, size)):
            if number == 0 and place.offset is not None:
                _demand_fitting(place, part)
            for found in order.take(part):
                if suspect is not None and isinstance(found, SoundBatches):
                    there = _offset_at(found, suspect.position, there)
                yield found
            is_enough = isinstance(part, SoundBatches) and self._is_enough(part, pieces)
            del part  # before the next is read, so that its memory can be reused
            if is_enough:
                break
        for found in order.finish():
            if suspect is not None and isinstance(found, SoundBatches):
                there = _offset_at(found, suspect.position, there)
            yield found
        if not is_enough:
            is_longer = False
            if pieces.reached >= size and order.reached < self._span.last and not order.is_damaged:
                is_longer = bool(self._reader.read(Part.LOG, size, size + 1))
            yield from order.end_of_log(pieces.reached, size, is_longer=is_longer)
        if suspect is None or order.is_damaged_at(suspect.position):
            return
        if there is None or there > (suspect.offset or 0):
            yield self._wrong_entry(suspect)

    @property
    def _is_to_end(self) -> bool:
        return self._span.reaches_end

    def _wrong_entry(self, place: _Place) -> Loss:
        reason = f"no batch at byte {place.position} of the log holds offset {place.offset}"
        at = place.row * _ENTRY_BYTES
        return self._losses.loss(FindingCode.INDEX_DAMAGED, Part.OFFSET_INDEX, reason, position=at)

    def _scanned(self, pieces: _Pieces, position: int, size: int) -> Iterator[SoundBatches | Damage]:
        rest: Iterator[bytes] = iter(pieces)
        first = next(rest, b"")
        rest = chain([first], rest)
        if begins_with_legacy(first):
            del first
            rest, position = yield from legacy_batches(rest, position, self._most_unfolded)
        else:
            del first
        for part in scan_log(rest, size - position, AsColumns(), self._metadata.start_offset):
            if isinstance(part, Damage):
                yield Damage(part.position + position, part.end + position, part.reason, part.header, part.torn)
            else:
                places = np.asarray(part.positions, np.int64)
                yield SoundBatches(part.buffer, part.file_position + position, places, part.headers)
            del part  # as above

    def _is_enough(self, part: SoundBatches, pieces: _Pieces) -> bool:
        """Whether the span's last offset is in a batch that the next one proves to be in its place."""
        lasts = part.last_offsets
        reaching = np.flatnonzero(lasts >= self._span.last)
        if not len(reaching) or self._span.reaches_end:
            return False
        row = int(reaching[0])
        if row + 1 < len(part):
            return int(part.first_offsets[row + 1]) > int(lasts[row])
        if part.legacy is not None:
            return False
        header = part.headers[row]
        following = int(part.file_positions[row]) + int(header["batchLength"]) + LOG_OVERHEAD
        return pieces.base_offset_at(following) > int(lasts[row])


def _demand_fitting(place: _Place, part: SoundBatches | Damage) -> None:
    """Raises _DoubtfulEntry unless the batch that begins there may be the entry's. An entry names the last offset of
    its batch or of several that were appended together, in old releases the first."""
    assert place.offset is not None
    if isinstance(part, Damage) or int(part.file_positions[0]) != place.position:
        raise _DoubtfulEntry
    bases, lasts = part.first_offsets, part.last_offsets
    if int(bases[0]) > place.offset:
        raise _DoubtfulEntry
    is_named = bool((lasts == place.offset).any() or (bases == place.offset).any())
    if not is_named and int(lasts.max()) >= place.offset:
        raise _DoubtfulEntry


def _offset_at(batches: SoundBatches, position: int, known: int | None) -> int | None:
    """The first offset of the batch that begins at a position of the log, once it is met."""
    rows = np.flatnonzero(batches.file_positions == position)
    return int(batches.first_offsets[rows[0]]) if len(rows) else known


class _Pieces:
    """The log's bytes from a place on, as far as they are asked for."""

    def __init__(self, log: LogBytes, size: int, place: _Place, piece_bytes: int, *, is_whole: bool) -> None:
        self._log, self._size, self._place, self._is_whole = log, size, place, is_whole
        self._piece_bytes = piece_bytes
        self._last = b""
        self.reached = place.position
        """Up to where the log was read."""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._log.whole(self._size, self._piece_bytes) if self._is_whole else self._ranges():
            note_more("bytes read", len(piece))
            self.reached += len(piece)
            self._last = piece
            yield piece

    def _ranges(self) -> Iterator[bytes]:
        end, more = self._place.end, _MORE_BYTES
        while self.reached < self._size:
            begin = self.reached
            until = self._size if end is None else min(self._size, end)
            yield from self._log.pieces(begin, until, self._piece_bytes)
            if self.reached < until:
                return  # the log ends before its size
            if end is not None:
                end, more = until + more, min(more * 4, self._piece_bytes)

    def base_offset_at(self, position: int) -> int:
        """The offset with which the header of a batch there begins; -1 where it was not read."""
        at = position - (self.reached - len(self._last))
        if not 0 <= at <= len(self._last) - _BASE_OFFSET.size:
            return -1
        return int(_BASE_OFFSET.unpack_from(self._last, at)[0])
