"""What many keys say, at once.

A segment's keys end with a file name that is made alike everywhere: a start offset of 20 digits, a dash, a segment id
and a suffix. So a layout is asked once for each folder and suffix, with an offset and an id that stand for all; what
differs within them is cut out of the keys. Where a key is of another make, the layout is asked for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import binary_array, numbers_in
from tieredctl.formats.windows import Bytes, Flags, Ints, rows_at
from tieredctl.layouts.protocol import ExplainedKey, Layout
from tieredctl.model.ids import UUID_CHARACTERS, ZERO_UUID

_DIGITS = 20
_NAME_BYTES = _DIGITS + 1 + UUID_CHARACTERS
_STAND_IN = "0" * _DIGITS + "-" + ZERO_UUID
_HALF = 10**10
_LARGEST_HALF = (1 << 63) // _HALF - 1
_IS_DIGIT = np.isin(np.arange(256), np.frombuffer(b"0123456789", np.uint8))
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_IS_ID = np.isin(np.arange(256), np.frombuffer(_ALPHABET, np.uint8))
_ENDS_ID = np.isin(np.arange(256), np.frombuffer(b"AQgw", np.uint8))
_WEIGHTS = 10 ** np.arange(_DIGITS // 2 - 1, -1, -1, dtype=np.int64)
_SLASH, _DASH = ord("/"), ord("-")
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """A row for each key.

    `stems` says which of `explained` a key is like: the same but for start offset and segment id, which are in columns
    of their own. A stem of which the layout cannot say anything is None.
    """

    stems: Ints
    explained: list[ExplainedKey | None]
    start_offsets: Ints
    segment_ids: NDArray[np.uint8]
    """22 characters a row."""


class KeyExplainer:
    """Explains keys by a layout, and remembers what it said of each folder and suffix."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._stems: dict[tuple[bytes, bytes], int] = {}
        self.explained: list[ExplainedKey | None] = [None]
        self._nothing = 0

    def explain(self, keys: pa.BinaryArray) -> KeyColumns:
        """What each key says."""
        data, edges = _contents(keys)
        starts, ends = edges[:-1], edges[1:]
        names = _names(data, starts, ends)
        stems = np.full(len(keys), -1, np.int64)
        offsets = np.zeros(len(keys), np.int64)
        segment_ids = np.zeros((len(keys), UUID_CHARACTERS), np.uint8)
        # In blocks whose columns stay in the processor's cache.
        for block in (slice(first, first + _BLOCK) for first in range(0, len(keys), _BLOCK)):
            rows = rows_at(data, names[block], _NAME_BYTES)
            offsets[block], alike = _offsets(rows)
            segment_ids[block] = rows[:, _DIGITS + 1 :]
            alike &= _are_ids(segment_ids[block]) & (rows[:, _DIGITS] == _DASH)
            at = np.flatnonzero(alike & (ends[block] - names[block] >= _NAME_BYTES)) + block.start
            if len(at):
                stems[at] = self._stems_of(data, starts[at], names[at], ends[at])
        for row in np.flatnonzero(stems == -1).tolist():
            stems[row], offsets[row], segment_ids[row] = self._alone(bytes(data[starts[row] : ends[row]]))
        return KeyColumns(stems, self.explained, offsets, segment_ids)

    def _stems_of(self, data: Bytes, starts: Ints, names: Ints, ends: Ints) -> Ints:
        """The stem of each key, by its folder and suffix, of which a listing has few."""
        folders, folder_of = _distinct(data, starts, names)
        suffixes, suffix_of = _distinct(data, names + _NAME_BYTES, ends)
        pairs, pair_of = np.unique(folder_of * len(suffixes) + suffix_of, return_inverse=True)
        stems = [self._stem(folders[pair // len(suffixes)], suffixes[pair % len(suffixes)]) for pair in pairs.tolist()]
        return np.array(stems, np.int64)[pair_of]

    def _stem(self, folder: bytes, suffix: bytes) -> int:
        known = self._stems.get((folder, suffix))
        if known is None:
            known = self._stems[folder, suffix] = len(self.explained)
            self.explained.append(self._layout.explain(_text(folder) + _STAND_IN + _text(suffix)))
        return known

    def _alone(self, key: bytes) -> tuple[int, int, NDArray[np.uint8]]:
        explained = self._layout.explain(_text(key))
        segment_id = np.frombuffer((explained.segment_id if explained else ZERO_UUID).encode("ascii"), np.uint8)
        if explained is None:
            return self._nothing, 0, segment_id
        self.explained.append(explained)
        return len(self.explained) - 1, explained.start_offset, segment_id


def _contents(array: pa.BinaryArray) -> tuple[Bytes, Ints]:
    _, bounds, data = array.buffers()
    edges = np.frombuffer(bounds, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    return np.frombuffer(data or b"", np.uint8), edges


def _names(data: Bytes, starts: Ints, ends: Ints) -> Ints:
    """Where the last part of each key begins."""
    slashes = np.flatnonzero(data == _SLASH)
    if not len(slashes):
        return starts
    last = slashes[np.maximum(np.searchsorted(slashes, ends) - 1, 0)]
    return np.where((last >= starts) & (last < ends), last + 1, starts)


def _are_ids(rows: Bytes) -> Flags:
    return _IS_ID[rows].all(axis=1) & _ENDS_ID[rows[:, -1]]


def _offsets(rows: Bytes) -> tuple[Ints, Flags]:
    """The numbers that the first 20 characters of each row are, and which of them are numbers that fit."""
    digits = rows[:, :_DIGITS].astype(np.int64) - ord("0")
    half = _DIGITS // 2
    high, low = digits[:, :half] @ _WEIGHTS, digits[:, half:] @ _WEIGHTS
    fits: Flags = _IS_DIGIT[rows[:, :_DIGITS]].all(axis=1) & (high <= _LARGEST_HALF)
    return np.where(fits, high, 0) * _HALF + np.where(fits, low, 0), fits


def _distinct(data: Bytes, starts: Ints, ends: Ints) -> tuple[list[bytes], Ints]:
    """The different texts among spans that rise, and the number of each span's."""
    coded = binary_array(data, starts, ends).dictionary_encode()
    return coded.dictionary.to_pylist(), numbers_in(coded.indices).astype(np.int64)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
