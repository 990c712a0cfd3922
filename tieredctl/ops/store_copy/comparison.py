"""Two stores compared, object by object, in the words of `rclone check`.

Both list by ascending key, so that two streams are joined: memory does not grow with the number of objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, NamedTuple

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.result_row import Column, Main, Quantity, ResultRow, Size, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.comparison import BYTES, is_there, same_bytes, same_when_read
from tieredctl.ops.guards.in_parallel import in_turn
from tieredctl.ops.store_copy.unproven import Unproven
from tieredctl.ports.layout import Rewrapping
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject, list_unreserved
from tieredctl.process.progress import note

_PAIRS_A_THREAD = 4
SIZE_ALONE = "size"
"""How objects are said to be the same whose bytes nobody compared."""
OPENED = "opened"
"""How objects are said to be the same that hold the same key, wrapped for two key pairs."""
_REFUSED = CONCERN_EVERY_OBJECT | {ErrorCode.PRIVATE_KEY, ErrorCode.USAGE}
"""What keeps one object from being wrapped again keeps others, too."""


class By(StrEnum):
    """What of two objects is compared, once their sizes are the same."""

    SIZE = "size"
    CHECKSUM = "checksum"
    """A checksum that both stores keep; where there is none, all bytes of both."""
    CONTENT = "content"
    """All bytes of both, whatever the stores keep."""


class Mark(StrEnum):
    """`rclone check`'s own."""

    SAME = "="
    ONLY_IN_DESTINATION = "-"
    ONLY_IN_SOURCE = "+"
    DIFFERENT = "*"
    NOT_COMPARED = "!"

    @property
    def counted_as(self) -> str:
        """The name of its count in a summary."""
        return _COUNTED_AS[self]

    @property
    def exit_code(self) -> ExitCode:
        """What such an object means for a command whose answer it is."""
        if self is Mark.SAME:
            return ExitCode.CLEAN
        return ExitCode.INCOMPLETE if self is Mark.NOT_COMPARED else ExitCode.FINDINGS


_COUNTED_AS = {
    Mark.SAME: "same",
    Mark.ONLY_IN_DESTINATION: "onlyInDestination",
    Mark.ONLY_IN_SOURCE: "onlyInSource",
    Mark.DIFFERENT: "different",
    Mark.NOT_COMPARED: "notCompared",
}


class Pair(NamedTuple):
    """What two stores list under one key; at least one of them lists something."""

    key: str
    source: StoredObject | None
    destination: StoredObject | None


@dataclass(frozen=True, slots=True)
class ComparedObject(ResultRow):
    """What became of one key. Sizes in bytes, null where the store has no such object."""

    mark: Main[Annotated[str, Column("=")]]
    key: Main[str]
    size: Size[int | None]
    destination_size: Annotated[int | None, Column("DESTINATION", Quantity.SIZE)]
    compared_by: Wide[str | None]
    """`size`; the name of a checksum, with `-read` where one of them was read; `bytes`; `opened` for the same key,
    wrapped for two key pairs."""
    reason: Wide[str | None]
    """Why it could not be compared, or in what it differs."""


def paired(source: Iterator[StoredObject], destination: Iterator[StoredObject]) -> Iterator[Pair]:
    """The objects of two listings by ascending key, in the same order."""
    one, other = next(source, None), next(destination, None)
    while present := [stored for stored in (one, other) if stored is not None]:
        key = min(stored.key for stored in present)
        pair = Pair(key, _under(key, one), _under(key, other))
        yield pair
        one = one if pair.source is None else next(source, None)
        other = other if pair.destination is None else next(destination, None)


def _under(key: str, stored: StoredObject | None) -> StoredObject | None:
    return stored if stored is not None and stored.key == key else None


@dataclass(slots=True)
class StoreComparison:
    """A source and a destination, and what was found of their objects so far."""

    source: ObjectStore
    destination: ObjectStore
    by: By
    unproven: Unproven = field(default_factory=lambda: Unproven(None))
    """What of the destination is compared by checksum where others are by size."""
    rewrapping: Rewrapping | None = None
    """How the keys in the destination are wrapped, where that is not as in the source."""
    looked_at: int = 0
    """How many of these the last look compared."""
    doubtful: int = 0
    """How many of these it did not find to be the same."""
    is_ended: bool = False
    """Whether the last look came to its end: else there may be more than it counted."""
    counts: Counter[Mark] = field(default_factory=Counter)
    bytes: Counter[Mark] = field(default_factory=Counter)

    def compared(self) -> Iterator[tuple[Pair, ComparedObject]]:
        """Every key of both but tieredctl's own, in ascending order. Streams.

        Raises TieredctlError where a store cannot be listed, or what keeps it from reading one object, or from
        opening what is wrapped in it, concerns every other."""
        self.counts.clear()
        self.bytes.clear()
        self.looked_at = self.doubtful = 0
        self.is_ended = False
        pairs = paired(list_unreserved(self.source), list_unreserved(self.destination))
        threads = max(self.source.parallel_reads, self.destination.parallel_reads)
        by_listing = self.by is By.SIZE and self.unproven.since_ms is None and self.rewrapping is None
        at_once = threads == 1 or by_listing
        most = threads * _PAIRS_A_THREAD
        judged = map(self._judged, pairs) if at_once else in_turn(self._judged, pairs, threads, most=most)
        for number, (pair, row) in enumerate(judged, 1):
            mark = Mark(row.mark)
            if self._is_unproven(pair):
                self.looked_at += 1
                self.doubtful += mark is not Mark.SAME
            self.counts[mark] += 1
            self.bytes[mark] += row.destination_size or 0 if row.size is None else row.size
            note("objects compared", number)
            yield pair, row
        self.is_ended = True

    @property
    def in_destination(self) -> int:
        """How many of the keys that were compared so far the destination has."""
        return self.counts.total() - self.counts[Mark.ONLY_IN_SOURCE]

    def summary(self) -> Document:
        """Totals of what was compared so far, which is not `complete` where that is not all; bytes are the source's,
        or the destination's where the source has none."""
        return {
            "comparedBy": self.by.value,
            "complete": self.is_ended and not self.counts[Mark.NOT_COMPARED],
            **{mark.counted_as: self.counts[mark] for mark in Mark},
            "bytes": {mark.counted_as: self.bytes[mark] for mark in Mark},
        }

    def exit_code(self, *, besides: Collection[Mark] = ()) -> ExitCode:
        """What was found so far means, some marks aside."""
        return worst(*(mark.exit_code for mark in Mark if self.counts[mark] and mark not in besides))

    def _is_unproven(self, pair: Pair) -> bool:
        return pair.source is not None and pair.destination is not None and pair.destination in self.unproven

    def _judged(self, pair: Pair) -> tuple[Pair, ComparedObject]:
        mark, how, reason = self._judgement(pair)
        size, destination_size = (None if one is None else one.size for one in pair[1:])
        return pair, ComparedObject(mark.value, pair.key, size, destination_size, how, reason)

    def _judgement(self, pair: Pair) -> tuple[Mark, str | None, str | None]:
        _, source, destination = pair
        if source is None:
            return Mark.ONLY_IN_DESTINATION, None, None
        is_wrapped = self.rewrapping is not None and self.rewrapping.concerns(source.key)
        if destination is None:
            return Mark.ONLY_IN_SOURCE, None, self._why_not_wrapped(source) if is_wrapped else None
        return (self._judged_by_opening if is_wrapped else self._judged_by_bytes)(source, destination)

    def _judged_by_bytes(self, source: StoredObject, destination: StoredObject) -> tuple[Mark, str | None, str | None]:
        if source.size != destination.size:
            return Mark.DIFFERENT, SIZE_ALONE, f"{source.size} bytes in the source, {destination.size} there"
        if self.by is By.SIZE and destination not in self.unproven:
            return Mark.SAME, SIZE_ALONE, None
        try:
            how = self._how_same(source, destination)
            if how is not None:
                return Mark.SAME, how, None
            if is_there(self.source, source) and is_there(self.destination, destination):
                return Mark.DIFFERENT, BYTES, "the sizes are the same, the bytes are not"
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            return Mark.NOT_COMPARED, None, error.message
        return Mark.NOT_COMPARED, None, "it changed while it was compared"

    def _why_not_wrapped(self, source: StoredObject) -> str | None:
        """Why an object that is to be copied will not be; None where it is wrapped again."""
        assert self.rewrapping is not None
        try:
            self.rewrapping.rewrapped(source.key, self.source.read(source.key, 0, self.rewrapping.largest + 1))
        except TieredctlError as error:
            if error.code in _REFUSED:
                raise
            return error.message
        return None

    def _judged_by_opening(
        self, source: StoredObject, destination: StoredObject
    ) -> tuple[Mark, str | None, str | None]:
        assert self.rewrapping is not None
        end = self.rewrapping.largest + 1
        try:
            original, copy = (store.read(source.key, 0, end) for store in (self.source, self.destination))
            difference = self.rewrapping.difference(source.key, original, copy)
            if not (is_there(self.source, source) and is_there(self.destination, destination)):
                return Mark.NOT_COMPARED, None, "it changed while it was compared"
        except TieredctlError as error:
            if error.code in _REFUSED:
                raise
            return Mark.NOT_COMPARED, None, error.message
        how = BYTES if original == copy else OPENED
        return Mark.SAME if difference is None else Mark.DIFFERENT, how, difference

    def _how_same(self, source: StoredObject, destination: StoredObject) -> str | None:
        if self.by is By.CONTENT:
            return BYTES if same_when_read(self.source, source, self.destination, destination) else None
        found = same_bytes(self.source, source, destination, self.destination)
        return None if found is None else found.by
