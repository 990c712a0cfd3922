"""What many keys say, at once.

A segment's keys end with a file name that is made alike everywhere: a start offset of 20 digits, a dash, a segment id
and a suffix. So a layout is asked once for each folder and suffix, with an offset and an id that stand for all; what
differs within them is cut out of the keys. Where a key is of another make, the layout is asked for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import binary_array, contents, distinct_numbers, numbers_in
from tieredctl.formats.digit_columns import numbers_in_digits
from tieredctl.formats.uuid_columns import UuidColumns, joined_uuids, uuid_columns, uuids_in_text
from tieredctl.formats.windows import Bytes, Flags, Ints, rows_at
from tieredctl.model.ids import UUID_BYTES, UUID_CHARACTERS, ZERO_UUID, uuid_bytes, uuid_text
from tieredctl.model.key_text import key_text
from tieredctl.ports.layout import UNNAMED_OFFSET, ExplainedKey, Layout

_DIGITS = 20
_NAME_BYTES = _DIGITS + 1 + UUID_CHARACTERS
_STAND_IN = "0" * _DIGITS + "-" + ZERO_UUID
_SLASH, _DASH = ord("/"), ord("-")
_BLOCK = 1 << 14
_NOTHING = 0


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """A row for each key.

    `stems` says which of `explained` a key is like: the same but for start offset and segment id, which are in columns
    of their own. A stem of which the layout cannot say anything is None. Keys of one segment stand together in a
    listing: what they have in common is in the columns `named_…`, and `names` says in which row of those.
    """

    stems: Ints
    explained: list[ExplainedKey | None]
    names: Ints
    named_offsets: Ints
    named_segments: UuidColumns

    @property
    def start_offsets(self) -> Ints:
        """The start offset of each key."""
        return self.named_offsets[self.names]

    @property
    def segment_ids(self) -> NDArray[np.uint8]:
        """The segment id of each key: 22 characters a row."""
        return self.named_segments.characters()[self.names]

    def of(self, row: int) -> ExplainedKey | None:
        """What one key says."""
        stem = self.explained[int(self.stems[row])]
        if stem is None:
            return None
        name = int(self.names[row])
        segment_id = uuid_text(self.named_segments.bytes_of(name))
        return stem._replace(start_offset=int(self.named_offsets[name]), segment_id=segment_id)


def offsets_agree(named: Ints, start_offsets: Ints) -> Flags:
    """Whether the offsets that keys name are those of segments, as far as keys name any."""
    agree: Flags = (named == start_offsets) | (named == UNNAMED_OFFSET)
    return agree


class KeyExplainer:
    """Explains keys by a layout, and remembers what it said of each folder and suffix."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._stems: dict[tuple[bytes, bytes], int] = {}
        self._others: dict[ExplainedKey, int] = {}
        self.explained: list[ExplainedKey | None] = [None]

    def explain(self, keys: pa.BinaryArray) -> KeyColumns:
        """What each key says."""
        data, edges = contents(keys)
        parts = [
            # In blocks whose columns stay in the processor's cache.
            self._explain_block(data, edges[first : first + _BLOCK + 1])
            for first in range(0, max(len(keys), 1), _BLOCK)
        ]
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _explain_block(self, data: Bytes, edges: Ints) -> KeyColumns:
        starts, ends = edges[:-1], edges[1:]
        files = _file_names(data, starts, ends)
        heads = rows_at(data, files, _NAME_BYTES)
        changes = np.ones(len(heads), np.bool_)
        opaque = heads.view(np.dtype((np.void, _NAME_BYTES)))[:, 0]
        changes[1:] = opaque[1:] != opaque[:-1]
        names = np.cumsum(changes) - 1
        distinct = heads[changes]
        offsets, alike = numbers_in_digits(distinct[:, :_DIGITS])
        segments, are_ids = uuids_in_text(distinct[:, _DIGITS + 1 :])
        alike &= are_ids & (distinct[:, _DIGITS] == _DASH)
        are_alike = alike[names] & (ends - files >= _NAME_BYTES)
        stems = np.full(len(starts), _NOTHING, np.int64)
        at = np.flatnonzero(are_alike)
        if len(at):
            stems[at] = self._stems_of(data, starts[at], files[at], ends[at])
        block = KeyColumns(stems, self.explained, names, offsets, segments)
        others = np.flatnonzero(~are_alike)
        if not len(others):
            return block
        return self._with_others(block, others, [bytes(data[starts[row] : ends[row]]) for row in others.tolist()])

    def _with_others(self, block: KeyColumns, rows: Ints, keys: list[bytes]) -> KeyColumns:
        """A block whose keys in these rows are of another make."""
        stems, offsets, segment_ids = zip(*map(self._alone, keys), strict=True)
        block.stems[rows] = stems
        block.names[rows] = len(block.named_offsets) + np.arange(len(rows))
        segments = uuid_columns(np.frombuffer(b"".join(segment_ids), np.dtype((np.void, UUID_BYTES))))
        return replace(
            block,
            named_offsets=np.concatenate([block.named_offsets, np.array(offsets, np.int64)]),
            named_segments=joined_uuids([block.named_segments, segments]),
        )

    def _stems_of(self, data: Bytes, starts: Ints, files: Ints, ends: Ints) -> Ints:
        """The stem of each key, by its folder and suffix, of which a listing has few."""
        folders, folder_of = _distinct(data, starts, files)
        suffixes, suffix_of = _distinct(data, files + _NAME_BYTES, ends)
        pairs, pair_of = distinct_numbers(folder_of * len(suffixes) + suffix_of)
        stems = [self._stem(folders[pair // len(suffixes)], suffixes[pair % len(suffixes)]) for pair in pairs.tolist()]
        return np.array(stems, np.int64)[pair_of]

    def _stem(self, folder: bytes, suffix: bytes) -> int:
        stem = self._stems.get((folder, suffix))
        if stem is None:
            stem = self._stems[folder, suffix] = len(self.explained)
            self.explained.append(self._layout.explain(key_text(folder) + _STAND_IN + key_text(suffix)))
        return stem

    def _alone(self, key: bytes) -> tuple[int, int, bytes]:
        """The stem, the start offset and the segment id of one key."""
        explained = self._layout.explain(key_text(key))
        if explained is None:
            return _NOTHING, 0, uuid_bytes(ZERO_UUID)
        stem = explained._replace(start_offset=0, segment_id=ZERO_UUID)
        number = self._others.setdefault(stem, len(self.explained))
        if number == len(self.explained):
            self.explained.append(stem)
        return number, explained.start_offset, uuid_bytes(explained.segment_id)


def _joined(parts: list[KeyColumns]) -> KeyColumns:
    """Concatenated; all from one explainer."""
    starts = np.cumsum([0, *(len(part.named_offsets) for part in parts[:-1])])
    return KeyColumns(
        np.concatenate([part.stems for part in parts]),
        parts[0].explained,
        np.concatenate([part.names + first for part, first in zip(parts, starts, strict=True)]),
        np.concatenate([part.named_offsets for part in parts]),
        joined_uuids([part.named_segments for part in parts]),
    )


def _file_names(data: Bytes, starts: Ints, ends: Ints) -> Ints:
    """Where the last part of each key begins."""
    if not len(starts):
        return starts
    slashes = np.flatnonzero(data[starts[0] : ends[-1]] == _SLASH) + starts[0]
    if not len(slashes):
        return starts
    per_key = len(slashes) // len(starts)
    if len(slashes) == per_key * len(starts):
        first, last = slashes[::per_key], slashes[per_key - 1 :: per_key]
        if (first >= starts).all() and (last < ends).all():
            # As many in every key, as nearly always: nothing has to be searched.
            names: Ints = last + 1
            return names
    last = slashes[np.maximum(np.searchsorted(slashes, ends) - 1, 0)]
    return np.where((last >= starts) & (last < ends), last + 1, starts)


def _distinct(data: Bytes, starts: Ints, ends: Ints) -> tuple[list[bytes], Ints]:
    """The different texts among spans that rise, and the number of each span's."""
    coded = binary_array(data, starts, ends).dictionary_encode()
    return coded.dictionary.to_pylist(), numbers_in(coded.indices).astype(np.int64)
