"""A point in the past, up to which metadata is believed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.quantities import time_ms

_LARGEST_OFFSET_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class AsOf:
    """The last metadata offset to believe in each metadata partition (inclusive; a partition that is not named has
    none), or the last record timestamp in ms (inclusive)."""

    offsets: Mapping[int, int] | None = None
    timestamp_ms: int | None = None

    @classmethod
    def given(cls, text: str) -> AsOf:
        """A time, or a file of metadata offsets in the form of Kafka's _rlmm_committed_offsets. Raises TieredctlError
        `usage` for anything else."""
        # Only a name that is not a time is looked for, so that no file in the current folder can hide a time.
        try:
            return cls(timestamp_ms=time_ms(text))
        except TieredctlError as error:
            if not text or not os.path.isfile(text):
                message = f"{text!r} is neither a time nor a file."
                raise TieredctlError(ErrorCode.USAGE, message, hint=error.hint) from None
        return cls(offsets=_metadata_offsets(Path(text)))

    def cut(self, metadata_partition: int, chunk: RecordChunk) -> RecordChunk:
        """The records of a chunk that were there."""
        import numpy as np

        offsets, timestamps = (np.asarray(column, np.int64) for column in (chunk.offsets, chunk.timestamps))
        were_there = np.ones(len(offsets), np.bool_)
        if self.offsets is not None:
            were_there &= offsets <= self.offsets.get(metadata_partition, -1)
        if self.timestamp_ms is not None:
            were_there &= timestamps <= self.timestamp_ms
        return chunk.at(np.flatnonzero(were_there))


def _metadata_offsets(file: Path) -> dict[int, int]:
    from tieredctl.formats.committed_offsets import read_committed_offsets

    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_OFFSET_FILE + 1)
        if len(data) > _LARGEST_OFFSET_FILE:
            raise DecodeError("it is far too large", _LARGEST_OFFSET_FILE)
        offsets = dict(read_committed_offsets(data).offsets)
        if not offsets:
            raise DecodeError("it has no offset", 0)
        return offsets
    except DecodeError as error:
        hint = "One `<metadata partition> <offset>` per line, as in _rlmm_committed_offsets."
        raise TieredctlError(
            ErrorCode.USAGE, f"{file} is not a file of metadata offsets: {error.message}.", hint=hint
        ) from None
