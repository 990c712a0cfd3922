"""The parts of a segment in remote storage, read strictly: each must be exactly as a broker writes it.

A broker reads its own files more leniently, because it repairs them; a part that was copied is never written again, so
whatever is unusual about it is damage. Index entries may be out of order: each is compared with the log separately.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import fixed_dtype
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint, read_leader_epoch_checkpoint
from tieredctl.formats.index_columns import OffsetIndexColumns, TimeIndexColumns
from tieredctl.formats.indexes import (
    ABORTED_TRANSACTION,
    ABORTED_TRANSACTION_VERSION,
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    AbortedTransaction,
)
from tieredctl.formats.schema import Struct


def leader_epoch_entries(data: bytes) -> list[EpochEntry]:
    """The lineage up to a segment's end, from where the log began then; at least one epoch, and ascending.

    A lenient reader would not notice that the last offset lost its last digits. Raises DecodeError.
    """
    entries = read_leader_epoch_checkpoint(data)
    written = encode_leader_epoch_checkpoint(entries)
    if not entries:
        raise DecodeError("checkpoint has no leader epoch", 0)
    if data != written:
        same = next((at for at, (one, other) in enumerate(zip(data, written, strict=False)) if one != other), None)
        raise DecodeError("checkpoint is not as a broker writes it", len(data) if same is None else same)
    if min(entries[0]) < 0 or any(later <= one for pair in pairwise(entries) for one, later in zip(*pair, strict=True)):
        raise DecodeError("its leader epochs and start offsets do not rise", 0)
    return entries


def offset_index_entries(data: bytes) -> OffsetIndexColumns:
    """All entries: a segment's index in remote storage has no preallocated tail. Raises DecodeError."""
    rows = _rows(OFFSET_INDEX_ENTRY, data)
    return OffsetIndexColumns(rows["relativeOffset"].astype(np.int64), rows["position"].astype(np.int64))


def time_index_entries(data: bytes) -> TimeIndexColumns:
    """All entries: a segment's index in remote storage has no preallocated tail. Raises DecodeError."""
    rows = _rows(TIME_INDEX_ENTRY, data)
    return TimeIndexColumns(rows["timestamp"].astype(np.int64), rows["relativeOffset"].astype(np.int64))


def transaction_index_entries(data: bytes) -> list[AbortedTransaction]:
    """All entries. Raises DecodeError where one has a version that no release writes."""
    rows = _rows(ABORTED_TRANSACTION, data)
    unknown = np.flatnonzero(rows["version"] != ABORTED_TRANSACTION_VERSION)
    if len(unknown):
        row = int(unknown[0])
        raise DecodeError(f"aborted transaction has version {rows['version'][row]}", row * rows.itemsize)
    return [AbortedTransaction._make(fields) for _, *fields in rows.tolist()]


def _rows(schema: Struct, data: bytes) -> NDArray[Any]:
    dtype = fixed_dtype(schema)
    surplus = len(data) % dtype.itemsize
    if surplus:
        raise DecodeError(f"index ends inside an entry of {dtype.itemsize} bytes", len(data) - surplus)
    return np.frombuffer(data, dtype)
