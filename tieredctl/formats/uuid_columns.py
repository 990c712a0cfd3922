"""Many ids as two columns of numbers, which compare, sort and are looked up faster than 16 bytes or 22 characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.windows import Bytes, Flags, Ints
from tieredctl.model.ids import UUID_BYTES, UUID_CHARACTERS, uuid_bytes

if TYPE_CHECKING:
    import pyarrow as pa


Halves = NDArray[np.uint64]

_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_PAIRS = np.stack([np.repeat(_ALPHABET, 64), np.tile(_ALPHABET, 64)], axis=1).copy().view(np.uint16)[:, 0]
_NO_PAIR = -1
# The finalizer of MurmurHash3, which spreads consecutive numbers as well as random ones.
_FOLD, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)


@dataclass(frozen=True, slots=True)
class UuidColumns:
    """One id per row: its first and last eight bytes as big-endian numbers."""

    high: Halves
    low: Halves

    def __len__(self) -> int:
        return len(self.high)

    def halves(self) -> tuple[Halves, Halves]:
        """Both columns."""
        return self.high, self.low

    def at(self, rows: Ints) -> UuidColumns:
        """The ids of some rows."""
        return UuidColumns(self.high[rows], self.low[rows])

    def equal(self, other: UuidColumns) -> Flags:
        """Row by row."""
        same: Flags = (self.high == other.high) & (self.low == other.low)
        return same

    def changes(self) -> Flags:
        """Flags the rows that have another id than the row before; the first has."""
        changed = np.ones(len(self), np.bool_)
        changed[1:] = (self.high[1:] != self.high[:-1]) | (self.low[1:] != self.low[:-1])
        return changed

    def hashes(self) -> Halves:
        """Equal for equal ids, and nearly always different for others, in their upper bits too."""
        mixed = self.high ^ (self.low * _FOLD)
        for factor in (_FIRST, _SECOND):
            mixed ^= mixed >> _SHIFT
            mixed *= factor
        mixed ^= mixed >> _SHIFT
        return mixed

    def bytes_of(self, row: int) -> bytes:
        """The 16 bytes of one id."""
        return b"".join(int(half[row]).to_bytes(UUID_BYTES // 2) for half in (self.high, self.low))

    def octets(self) -> Bytes:
        """A row of 16 bytes for each id."""
        halves = np.stack([self.high, self.low], axis=1).astype(">u8")
        return halves.view(np.uint8).reshape(len(self), UUID_BYTES)

    def texts(self) -> list[str]:
        """The ids as Kafka prints them."""
        characters = self.characters().tobytes().decode("ascii")
        return [characters[start : start + UUID_CHARACTERS] for start in range(0, len(characters), UUID_CHARACTERS)]

    def text_array(self) -> pa.StringArray:
        """The ids as texts, for Arrow."""
        import pyarrow as pa

        bounds = np.arange(0, (len(self) + 1) * UUID_CHARACTERS, UUID_CHARACTERS, dtype=np.int32)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(bounds), pa.py_buffer(self.characters()))

    def characters(self) -> Bytes:
        """A row of 22 characters for each id, by twelve bits at a time."""
        count = len(self)
        padded = np.zeros((count, 18), np.uint8)
        padded[:, :UUID_BYTES] = self.octets()
        triples = padded.reshape(count, 6, 3).astype(np.uint16)
        pairs = np.empty((count, 6, 2), np.uint16)
        pairs[:, :, 0] = _PAIRS[triples[:, :, 0] << 4 | triples[:, :, 1] >> 4]
        pairs[:, :, 1] = _PAIRS[(triples[:, :, 1] & 15) << 8 | triples[:, :, 2]]
        return np.ascontiguousarray(pairs.reshape(count, 12).view(np.uint8)[:, :UUID_CHARACTERS])


def uuid_columns(ids: NDArray[np.void]) -> UuidColumns:
    """Ids of 16 bytes each."""
    halves = np.ascontiguousarray(ids).view(">u8").reshape(len(ids), 2)
    return UuidColumns(halves[:, 0].astype(np.uint64), halves[:, 1].astype(np.uint64))


def joined_uuids(parts: Sequence[UuidColumns]) -> UuidColumns:
    """All ids in a row; at least one part."""
    return UuidColumns(np.concatenate([one.high for one in parts]), np.concatenate([one.low for one in parts]))


def uuids_of_texts(texts: Sequence[str]) -> tuple[UuidColumns, list[int]]:
    """The ids among some texts, and which of the texts they are."""
    numbered_ids = [(number, data) for number, text in enumerate(texts) if (data := _uuid_bytes(text)) is not None]
    ids = uuid_columns(np.frombuffer(b"".join(data for _, data in numbered_ids), np.dtype((np.void, UUID_BYTES))))
    return ids, [number for number, _ in numbered_ids]


def uuids_in_text(characters: Bytes) -> tuple[UuidColumns, Flags]:
    """The ids in rows of 22 characters, and which rows are an id as Kafka would print it."""
    pairs = np.ascontiguousarray(np.ascontiguousarray(characters).view(np.uint16).T)
    bits = _PAIR_BITS[pairs]
    *whole, last = bits
    # The last pair has four bits more than an id: they are zero, so that each id has one text.
    valid: Flags = (np.bitwise_or.reduce(bits) >= 0) & (last & 0xF == 0)
    high, low = (np.zeros(len(characters), np.uint64) for _ in range(2))
    for pair, shift in zip(whole[:5], (52, 40, 28, 16, 4), strict=True):
        high |= pair.astype(np.uint64) << np.uint64(shift)
    split = whole[5]
    high |= (split >> 8).astype(np.uint64)
    low |= split.astype(np.uint64) << np.uint64(56)
    for pair, shift in zip(whole[6:], (44, 32, 20, 8), strict=True):
        low |= pair.astype(np.uint64) << np.uint64(shift)
    low |= (last >> 4).astype(np.uint64)
    return UuidColumns(high, low), valid


def _uuid_bytes(text: str) -> bytes | None:
    try:
        return uuid_bytes(text)
    except ValueError:
        return None


def _pair_bits() -> NDArray[Any]:
    """By two characters as a native number: the twelve bits that they encode, or _NO_PAIR."""
    sixes = np.full(256, _NO_PAIR, np.int16)
    sixes[_ALPHABET] = np.arange(len(_ALPHABET))
    both = np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    first, second = sixes[both[:, 0]], sixes[both[:, 1]]
    return np.where((first < 0) | (second < 0), np.int16(_NO_PAIR), first << 6 | second)


_PAIR_BITS = _pair_bits()


NOT_FOUND = -1
_HASH_BITS = 64


class UuidLookup:
    """Rows by id.

    Rows are laid out in buckets, about one per row, by the upper bits of their ids' hashes. All ids that
    are looked for step through their buckets together, which are seldom longer than a few rows.
    """

    def __init__(self, ids: UuidColumns) -> None:
        """`ids` are all different."""
        self._shift = np.uint64(_HASH_BITS - max(len(ids).bit_length(), 1))
        buckets = self._buckets(ids)
        self._ids = ids
        self._rows: Ints | None = None
        """The row of each of `_ids`; None where they came by bucket already."""
        if (buckets[1:] < buckets[:-1]).any():
            self._rows = np.argsort(buckets, kind="stable")
            self._ids = ids.at(self._rows)
        sizes = np.bincount(buckets, minlength=1 << (_HASH_BITS - int(self._shift)))
        self._edges = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, dtype=np.int32, out=self._edges[1:])

    def rows_of(self, ids: UuidColumns) -> Ints:
        """The row of each id; NOT_FOUND where there is none."""
        rows = np.full(len(ids), NOT_FOUND, np.int64)
        buckets = self._buckets(ids)
        places, ends = self._edges[buckets].astype(np.int64), self._edges[buckets + 1]
        open_ = np.flatnonzero(places < ends)
        while len(open_):
            here = places[open_]
            hits = self._ids.at(here).equal(ids.at(open_))
            rows[open_[hits]] = here[hits] if self._rows is None else self._rows[here[hits]]
            open_ = open_[~hits]
            places[open_] += 1
            open_ = open_[places[open_] < ends[open_]]
        return rows

    def _buckets(self, ids: UuidColumns) -> Ints:
        return (ids.hashes() >> self._shift).astype(np.int64)


class UuidSet:
    """Ids to which many others are compared."""

    def __init__(self, ids: UuidColumns) -> None:
        _, self._lookup = first_of_each(ids)

    def has(self, ids: UuidColumns) -> Flags:
        """Flags the ids that are among these."""
        are_present: Flags = self._lookup.rows_of(ids) != NOT_FOUND
        return are_present


def first_of_each(ids: UuidColumns) -> tuple[Ints, UuidLookup]:
    """The first row of each id, and what finds an id's place among these rows."""
    order, by_hash = grouped(ids)
    first = np.flatnonzero(by_hash.changes())
    return order[first], UuidLookup(by_hash.at(first))


def grouped(ids: UuidColumns) -> tuple[Ints, UuidColumns]:
    """A stable order of the rows in which equal ids are adjacent; and the ids in this order.

    Hashes are sorted with the number of the row in their lower bits, so that only numbers are moved.
    """
    row_bits = np.uint64(len(ids).bit_length())
    keys = (ids.hashes() >> row_bits << row_bits) | np.arange(len(ids), dtype=np.uint64)
    keys.sort()
    order = (keys & ((np.uint64(1) << row_bits) - np.uint64(1))).astype(np.int64)
    by_hash = ids.at(order)
    prefixes = keys >> row_bits
    clashes = by_hash.changes()[1:] & (prefixes[1:] == prefixes[:-1])
    if clashes.any():
        clashing = np.flatnonzero(np.isin(prefixes, prefixes[1:][clashes]))
        rows = order[clashing]
        order[clashing] = rows[np.lexsort((rows, ids.low[rows], ids.high[rows], prefixes[clashing]))]
        by_hash = ids.at(order)
    return order, by_hash
