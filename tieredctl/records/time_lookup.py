"""The first offset of a time: by metadata, then by a time index, then by the batches from its entry on."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.record_batches import Attributes
from tieredctl.formats.record_fields import MalformedBatch
from tieredctl.formats.segment_parts import time_index_entries
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.lost_records import Loss, SegmentLosses, read_twice
from tieredctl.records.segment_log import INDEXED_FROM_BYTES, SegmentLog
from tieredctl.records.served_spans import ServedSpan
from tieredctl.records.sound_batches import SoundBatches

_ENTRY_BYTES = 12
_CONTROL = int(Attributes.CONTROL)


def offset_of_time(
    store: ObjectStore,
    layout: SegmentObjects,
    spans: Sequence[ServedSpan],
    timestamp_ms: int,
    *,
    most_unfolded: int | None = None,
) -> Generator[Loss, None, int | None]:
    """The offset of the first record of a time or later, None where none is; yields what could not be read before it.
    Where that record is in a batch that cannot be read, the batch is yielded too, and the offset is that after it.
    `most_unfolded` is as `RecordRequest` has it. Raises TieredctlError where nothing can be read from the store."""
    for span in spans:
        if span.segment.max_timestamp_ms < timestamp_ms:
            continue
        look_up = partial(_in_span, layout=layout, span=span, timestamp_ms=timestamp_ms, most_unfolded=most_unfolded)
        found = yield from read_twice(store, look_up)
        if found is not None:
            return found
    return None


def _in_span(
    store: ObjectStore, layout: SegmentObjects, span: ServedSpan, timestamp_ms: int, most_unfolded: int | None
) -> Generator[Loss, None, int | None]:
    losses = SegmentLosses(layout, span.segment)

    def log_of(some: ServedSpan) -> Iterator[SoundBatches | Loss]:
        return SegmentLog(store, layout, some, most_unfolded=most_unfolded).batches()

    size = span.segment.known_size
    entry = None
    if not span.is_on_disk and (size is None or size > INDEXED_FROM_BYTES):
        entry = yield from _last_entry_before(store, layout, span, timestamp_ms)
    if entry is not None:
        row, reached, offset = entry
        if span.first < offset <= span.last:
            seen: list[SoundBatches | Loss] = []
            parts = log_of(span._replace(first=offset))
            if _is_confirmed(parts, seen, offset, reached):
                return (yield from _first_in(chain(seen, parts), span, timestamp_ms, losses, most_unfolded))
            if not any(isinstance(part, Loss) for part in seen):
                reason = f"no batch with offset {offset} has the latest timestamp {reached}"
                at = row * _ENTRY_BYTES
                yield losses.loss(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, reason, position=at)
    return (yield from _first_in(log_of(span), span, timestamp_ms, losses, most_unfolded))


def _is_confirmed(
    parts: Iterator[SoundBatches | Loss], seen: list[SoundBatches | Loss], offset: int, timestamp_ms: int
) -> bool:
    """Whether a batch that holds the offset has that latest timestamp: an index has no CRC. Adds what was read."""
    for part in parts:
        seen.append(part)
        if isinstance(part, SoundBatches):
            holding = np.flatnonzero((part.first_offsets <= offset) & (part.last_offsets >= offset))
            if len(holding):
                return int(part.headers["maxTimestamp"][holding[0]]) == timestamp_ms
            if int(part.first_offsets[-1]) > offset:
                return False
    return False


def _last_entry_before(
    store: ObjectStore, layout: SegmentObjects, span: ServedSpan, timestamp_ms: int
) -> Generator[Loss, None, tuple[int, int, int] | None]:
    """The number of the last entry of the time index whose timestamp is earlier, that timestamp and its offset; None
    where there is none, or the index cannot be used."""
    losses = SegmentLosses(layout, span.segment)
    try:
        entries = time_index_entries(layout.open_segment(store, span.segment).read(Part.TIME_INDEX))
    except DecodeError as error:
        yield losses.loss(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, error.reason, position=error.position)
        return None
    except TieredctlError as error:
        if error.code in CONCERN_EVERY_OBJECT:
            raise
        yield losses.unread(Part.TIME_INDEX, error)
        return None
    falls = np.flatnonzero((np.diff(entries.timestamps) <= 0) | (np.diff(entries.relative_offsets) <= 0))
    if len(falls):
        at = (int(falls[0]) + 1) * _ENTRY_BYTES
        yield losses.loss(FindingCode.INDEX_DAMAGED, Part.TIME_INDEX, "its entries do not rise", position=at)
        return None
    row = int(np.searchsorted(entries.timestamps, timestamp_ms)) - 1
    if row < 0:
        return None
    return row, int(entries.timestamps[row]), int(entries.relative_offsets[row]) + span.segment.start_offset


def _first_in(
    parts: Iterator[SoundBatches | Loss],
    span: ServedSpan,
    timestamp_ms: int,
    losses: SegmentLosses,
    most_unfolded: int | None,
) -> Generator[Loss, None, int | None]:
    for part in parts:
        if isinstance(part, Loss):
            yield part
            continue
        late = (part.headers["maxTimestamp"] >= timestamp_ms) & ((part.headers["attributes"] & _CONTROL) == 0)
        late &= (part.last_offsets >= span.first) & (part.first_offsets <= span.last)
        for row in np.flatnonzero(late).tolist():
            batch = part.at(np.array([row]))
            for fields in batch.fields(most_unfolded):
                if isinstance(fields, MalformedBatch):  # its header says that the record is one of its own
                    yield losses.malformed(batch, fields, (span.first, span.last))
                    return int(batch.last_offsets[0]) + 1
                matching = np.flatnonzero((fields.timestamps >= timestamp_ms) & (fields.offsets >= span.first))
                if len(matching):
                    offset = int(fields.offsets[matching[0]])
                    return offset if offset <= span.last else None
    return None
