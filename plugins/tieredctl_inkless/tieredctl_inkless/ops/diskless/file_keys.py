"""The control plane's files by the keys of their objects, for many keys at once; and which keys its brokers write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import contents, numbers_in
from tieredctl.formats.uuid_columns import uuids_in_text
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ids import UUID_CHARACTERS

NO_FILE = -1
_SLASH = ord("/")


class FileKeys:
    """A key for each file, by number."""

    def __init__(self, keys: pa.ChunkedArray) -> None:
        """Keys of text, all different."""
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: int) -> str:
        key: str = self._keys[number].as_py()
        return key

    def numbers_of(self, keys: pa.BinaryArray) -> Ints:
        """The number of the file with each key, NO_FILE where there is none. Keys that lie close together, as in a
        batch of a listing, are found soonest."""
        numbers, ascending = self._ascending
        ends = pc.min_max(keys)
        first, after = _bounds(ascending, ends["min"].as_py(), ends["max"].as_py()) if len(keys) else (0, 0)
        places = numbers_in(pc.fill_null(pc.index_in(keys, ascending.slice(first, after - first)), -1))
        file_numbers = np.full(len(keys), NO_FILE, np.int64)
        is_there = places >= 0
        file_numbers[is_there] = numbers[places[is_there] + first]
        return file_numbers

    def are_uploads(self, keys: pa.BinaryArray) -> tuple[Flags, Flags]:
        """Whether each key ends as those that brokers write do, in the text of a random id; and whether one that does
        is in a folder into which the brokers of these files write."""
        named = _are_named_by_ids(keys)
        folders = pc.binary_slice(keys, 0, -UUID_CHARACTERS)
        in_folders = np.asarray(pc.is_in(folders, self._folders).to_numpy(zero_copy_only=False), np.bool_)
        return named, named & in_folders

    @cached_property
    def _ascending(self) -> tuple[Ints, pa.Array]:
        """The numbers of all files, and their keys, by ascending key."""
        keys = self._keys.cast(pa.binary())
        numbers = pc.sort_indices(keys)
        sorted_keys = keys.take(numbers)
        whole = sorted_keys.combine_chunks() if isinstance(sorted_keys, pa.ChunkedArray) else sorted_keys
        return numbers_in(numbers).astype(np.int64), whole

    @cached_property
    def _folders(self) -> pa.Array:
        """The files' folders, each with its last slash: the root and a folder without a name are different places."""
        return pc.unique(pc.replace_substring_regex(self._keys, r"[^/]*\z", "")).cast(pa.binary())


def _bounds(ascending: pa.Array, least: bytes, greatest: bytes) -> tuple[int, int]:
    """Where keys from the least to the greatest (inclusive) are among ascending ones."""

    def at(place: int) -> bytes:
        key: bytes = ascending[place].as_py()
        return key

    places = range(len(ascending))
    return bisect_left(places, least, key=at), bisect_right(places, greatest, key=at)


def _are_named_by_ids(keys: pa.BinaryArray) -> Flags:
    """Whether what follows the last slash is the text of a random id."""
    data, edges = contents(keys)
    begins, ends = edges[:-1], edges[1:]
    named = ends - begins >= UUID_CHARACTERS
    rows = np.flatnonzero(ends - begins > UUID_CHARACTERS)
    named[rows] = data[ends[rows] - UUID_CHARACTERS - 1] == _SLASH
    rows = np.flatnonzero(named)
    names = data[(ends[rows] - UUID_CHARACTERS)[:, np.newaxis] + np.arange(UUID_CHARACTERS)]
    _, named[rows] = uuids_in_text(names)
    return named
