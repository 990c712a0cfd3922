"""Record batches whose bytes are sound, of any magic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.legacy_messages import LegacyBatch, legacy_fields
from tieredctl.formats.record_batches import BatchHeader, ControlType, read_control_type, read_records
from tieredctl.formats.record_fields import MalformedBatch, RecordFields, record_fields
from tieredctl.formats.windows import Flags, Ints


@dataclass(frozen=True, slots=True)
class SoundBatches:
    """Batches in the order of the log. `buffer[0]` lies at `file_position` in the segment's log."""

    buffer: bytes
    file_position: int
    positions: Ints
    """Where each begins in the buffer."""
    headers: HeaderColumns
    legacy: Sequence[LegacyBatch] | None = None
    """What was read of batches of magic 0 and 1; None where the magic is 2."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def first_offsets(self) -> Ints:
        offsets: Ints = self.headers["baseOffset"].astype(np.int64)
        return offsets

    @property
    def last_offsets(self) -> Ints:
        offsets: Ints = self.first_offsets + self.headers["lastOffsetDelta"]
        return offsets

    @property
    def file_positions(self) -> Ints:
        return self.positions + self.file_position

    def at(self, rows: Ints) -> SoundBatches:
        """Some of them, by their numbers."""
        legacy = None if self.legacy is None else [self.legacy[row] for row in rows.tolist()]
        return SoundBatches(self.buffer, self.file_position, self.positions[rows], self.headers[rows], legacy)

    def where(self, kept: Flags) -> SoundBatches:
        """Some of them."""
        return self if kept.all() else self.at(np.flatnonzero(kept))

    def is_abort_marker(self, row: int) -> bool:
        """Whether a control batch that ends a transaction aborts it. Raises DecodeError where it is malformed."""
        header = BatchHeader._make(self.headers[row].item())
        records = read_records(self.buffer, int(self.positions[row]), header)
        return ControlType.ABORT in [read_control_type(one) for one in records]

    def fields(self, most_unfolded: int | None = None) -> Iterator[RecordFields | MalformedBatch]:
        """Their records. `most_unfolded` is `decompress`'s limit for each batch; old messages are unfolded by now."""
        if self.legacy is None:
            return record_fields(self.buffer, self.positions, self.headers, most_unfolded)
        return iter([legacy_fields(self.legacy)] if len(self) else [])
