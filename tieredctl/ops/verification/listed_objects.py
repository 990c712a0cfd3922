"""The store's listing compared with the metadata: what of each known segment is listed, and which objects nobody knows.

A row is one of `ReplayedMetadata.rows`. Objects themselves are put aside in a temporary file, with the row and the part
that each is of; few of them are looked at again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.uuid_columns import NOT_FOUND, UuidColumns, UuidLookup, grouped
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import StoreSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.inventory import Inventory, prefix_of
from tieredctl.ops.remote.key_columns import KeyColumns, KeyExplainer, offsets_agree
from tieredctl.ops.remote.listing import LISTING_SCHEMA, SpooledBatches, record_batches, stored_object
from tieredctl.ops.verification.judged_partitions import (
    NO_PART,
    PARTS,
    Elsewhere,
    JudgedPartitions,
    KeyPlaces,
    Masks,
    Place,
)
from tieredctl.ops.verification.object_check import unreferenced
from tieredctl.ops.verification.options import RemovedSegments
from tieredctl.ops.verification.report import ARCHIVES
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject, list_unreserved
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_rows import SegmentRows

NAMED = 1 << len(PARTS)
"""A flag of a segment: some object's key names it."""
ANY_PART = NAMED - 1
"""The flags of a segment's parts, all of them."""
ARCHIVED = NAMED << 1
"""A flag of a segment: one of its objects is in an archive."""
OBJECT_SCHEMA = pa.schema([*LISTING_SCHEMA, ("partition", pa.int32()), ("row", pa.int32()), ("part", pa.int8())])
"""An object; the number of the judged partition and the row of the segment that its key names, negative where there is
none; and its part, `NO_PART` where it is not under the key of one."""
_AT_ONCE = 1 << 14
_LOG = PARTS.index(Part.LOG)


@dataclass
class ListedObjects:
    """A listing, once it was read."""

    metadata: ReplayedMetadata
    judged: JudgedPartitions
    overlap: Overlap
    are_selected: Flags
    """Which rows count where the objects of deleted topics are counted."""
    findings: list[Finding] = field(default_factory=list)
    partitions: dict[int, None] = field(default_factory=dict)
    """Those with listed objects, in the order of the listing."""
    are_together: bool = True
    """Whether all objects of each segment are listed one after the other."""
    _last: int = NOT_FOUND
    """The row of the last object whose segment is known."""

    def __post_init__(self) -> None:
        segments, partitions = len(self.metadata.rows), len(self.judged.partitions)
        self.flags: Masks = np.zeros(segments, np.uint16)
        """The flags of each segment: the parts that are listed, NAMED, ARCHIVED."""
        self.log_sizes: Ints = np.zeros(segments, np.int64)
        """The size of each segment's log, in bytes, as stored."""
        self.promised_sizes: Ints = np.zeros(segments, np.int64)
        """The size of each segment's promised objects in all."""
        self.counted_objects, self.counted_bytes = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
        """The objects and bytes of the segments that count, by partition whose topic is deleted."""

    def read(self, places: KeyPlaces) -> SpooledBatches:
        """What lists the store once it is entered, to be left by the caller. A listing that ends too early is a
        finding: objects can still be asked for by name. Entering raises TieredctlError where it does not even begin."""
        self._spool = SpooledBatches(self._judged_batches(places), OBJECT_SCHEMA)
        return self._spool

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All objects by OBJECT_SCHEMA, in the order of the listing."""
        return self._spool.batches()

    def _judged_batches(self, places: KeyPlaces) -> Iterator[pa.RecordBatch]:
        store, explainer = self.overlap.store, KeyExplainer(self.overlap.layout)
        known_segments = KnownSegments(self.metadata.rows)
        for batch in self._batches(store, prefix_of(places.selection, self.overlap.layout)):
            explained = explainer.explain(batch.column("key"))
            places.extend(explained.explained)
            yield self._take(batch, explained, places, known_segments)

    def _batches(self, store: ObjectStore, prefix: str) -> Iterator[pa.RecordBatch]:
        failures: list[TieredctlError] = []

        def listed() -> Iterator[StoredObject]:
            try:
                yield from list_unreserved(store, prefix)
            except TieredctlError as error:
                failures.append(error)

        yield from record_batches(listed(), _AT_ONCE)
        for error in failures:
            if not self.overlap.listed:
                raise error
            self.overlap.of_known_topics += 1  # what was not listed may have it
            message = f"its listing ended too early: {error.message}"
            evidence = {"store": store.url, "error": error.code.value}
            self.findings.append(Finding(FindingCode.UNREADABLE, store.url, message, evidence, about=StoreSubject()))

    def _take(
        self, batch: pa.RecordBatch, explained: KeyColumns, places: KeyPlaces, known_segments: KnownSegments
    ) -> pa.RecordBatch:
        where, partitions = places.places[explained.stems], places.partitions[explained.stems]
        self._count(where, places.of_known_topics[explained.stems], places.elsewhere)
        judged = where == Place.JUDGED
        rows = np.full(len(where), NOT_FOUND, np.int64)
        rows[judged] = known_segments.rows_of(explained.named_segments, explained.names[judged], partitions[judged])
        parts = np.where(self._are_under_their_keys(rows, explained), places.parts[explained.stems], np.int8(NO_PART))
        self._note(rows, parts, batch)
        self._count_of_deleted(rows, numbers_in(batch.column("size")))
        self.partitions.update(dict.fromkeys(_in_order(partitions[judged])))
        nobodys = (where == Place.STRANGE) | (judged & (rows == NOT_FOUND)) | (where == Place.UNEXPLAINED)
        for place in np.flatnonzero(nobodys).tolist():
            self._add_unreferenced(stored_object(batch, place), explained.of(place))
        columns = [number_array(partitions), number_array(rows.astype(np.int32)), number_array(parts)]
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=OBJECT_SCHEMA)

    def _count(self, where: NDArray[np.int8], known_topic: Flags, elsewhere: Elsewhere) -> None:
        listed = int((where != Place.NOT_SELECTED).sum())
        self.overlap.listed += listed
        self.overlap.explained += listed - int((where == Place.UNEXPLAINED).sum())
        objects = int((where == Place.ELSEWHERE).sum())
        elsewhere.objects += objects
        self.overlap.of_known_topics += objects + int(known_topic.sum())

    def _are_under_their_keys(self, rows: Ints, explained: KeyColumns) -> Flags:
        named = np.flatnonzero(rows != NOT_FOUND)
        same = np.zeros(len(rows), np.bool_)
        same[named] = offsets_agree(explained.start_offsets[named], self.metadata.start_offsets(rows[named]))
        return same

    def _note(self, rows: Ints, parts: NDArray[np.int8], batch: pa.RecordBatch) -> None:
        named = rows[rows != NOT_FOUND]
        self._note_together(rows[parts != NO_PART])
        self.flags[named] |= np.uint16(NAMED)
        sizes, archived = numbers_in(batch.column("size")), _are_archived(batch)
        for part in np.unique(parts).tolist():
            if part == NO_PART:
                continue
            places = np.flatnonzero(parts == part)
            here, bit = rows[places], 1 << part
            self.flags[here] |= np.uint16(bit)
            self.flags[here[archived[places]]] |= np.uint16(ARCHIVED)
            promised = (self.judged.promised[self.metadata.rows.partitions[here]] & bit) != 0
            self.promised_sizes[here[promised]] += sizes[places[promised]]
            if part == _LOG:
                self.log_sizes[here] = sizes[places]

    def _note_together(self, named: Ints) -> None:
        """Whether objects come of segments that were left already; the last one may go on."""
        if not len(named):
            return
        begins = named[np.append([True], named[1:] != named[:-1])]
        later = begins[1:] if int(begins[0]) == self._last else begins
        if len(np.unique(begins)) < len(begins) or (self.flags[later] & ANY_PART).any():
            self.are_together = False
        self._last = int(named[-1])

    def _count_of_deleted(self, rows: Ints, sizes: Ints) -> None:
        if not self.judged.are_gone.any():
            return
        named = np.flatnonzero(rows != NOT_FOUND)
        partitions = self.metadata.rows.partitions[rows[named]]
        gone = self.judged.are_gone[partitions] & self.are_selected[rows[named]]
        np.add.at(self.counted_objects, partitions[gone], 1)
        np.add.at(self.counted_bytes, partitions[gone], sizes[named[gone]])

    def _add_unreferenced(self, stored: StoredObject, explained: ExplainedKey | None) -> None:
        if explained is None and self.overlap.layout.other_form(stored.key) is not None:
            self.overlap.of_known_topics += 1  # it may hold what is promised
            return
        self.findings.append(unreferenced(stored, explained))


def _in_order(numbers: NDArray[np.int32]) -> list[int]:
    """Numbers without those that repeat the one before."""
    if not len(numbers):
        return []
    distinct: list[int] = numbers[np.append([True], numbers[1:] != numbers[:-1])].tolist()
    return distinct


def _are_archived(batch: pa.RecordBatch) -> Flags:
    classes = batch.column("storageClass")
    archives = np.array([name in ARCHIVES for name in classes.dictionary.to_pylist()], np.bool_)
    archived: Flags = archives[numbers_in(classes.indices)]
    return archived


class KnownSegments:
    """Rows by segment id and partition: nothing keeps two partitions from claiming one id."""

    def __init__(self, rows: SegmentRows) -> None:
        self._partitions = rows.partitions
        self._order: Ints | None = None
        """Lookup position to row; None if ids are unique."""
        self._shared: dict[tuple[int, bytes], int] = {}
        ids = rows.segment_ids
        if not _are_all_different(ids):
            order, grouped_ids = grouped(ids)
            first = grouped_ids.changes()
            self._shared = _shared(rows, order, first)
            self._order = order[first]
            ids = grouped_ids.at(np.flatnonzero(first))
        self._lookup = UuidLookup(ids)

    def rows_of(self, ids: UuidColumns, names: Ints, partitions: NDArray[np.int32]) -> Ints:
        """The row of each object, by the place of its segment's id among `ids` and its partition; NOT_FOUND where the
        metadata does not know the segment."""
        lookup_rows = self._lookup.rows_of(ids)
        if self._order is not None:
            lookup_rows = np.where(lookup_rows == NOT_FOUND, NOT_FOUND, self._order[lookup_rows])
        rows = lookup_rows[names]
        if not len(self._partitions):
            return rows
        others = np.flatnonzero((rows != NOT_FOUND) & (self._partitions[rows] != partitions))
        rows[others] = [
            self._shared.get((int(partitions[place]), ids.bytes_of(int(names[place]))), NOT_FOUND)
            if self._shared
            else NOT_FOUND
            for place in others.tolist()
        ]
        return rows


def _are_all_different(ids: UuidColumns) -> bool:
    """Whether they come in the order of their hashes, as they do after a replay, and none comes twice."""
    hashes = ids.hashes()
    return bool((hashes[1:] > hashes[:-1]).all())


def _shared(rows: SegmentRows, order: Ints, first: Flags) -> dict[tuple[int, bytes], int]:
    """The rows with an id that another row has too."""
    again = ~first
    again[:-1] |= ~first[1:]
    shared = order[again]
    return {(int(rows.partitions[row]), rows.segment_ids.bytes_of(row)): row for row in shared.tolist()}


_ASKED_BY_NAME = 16
"""How many segments' objects are asked for before a store is called another cluster's: a listing may be older than
they are, and custom metadata may put them under keys that explain nothing."""


@dataclass(slots=True)
class Overlap:
    """How many objects were listed: all, those that the layout explains, and those of topics in the metadata."""

    store: ObjectStore
    layout: Layout
    listed: int = 0
    explained: int = 0
    of_known_topics: int = 0

    def demand(
        self,
        promised: Iterable[RemoteLogSegmentMetadata],
        known_topic_ids: Container[str],
        selection: Selection,
        removed: RemovedSegments,
    ) -> None:
        """Raises TieredctlError `no-overlap` where segments are promised and the store has nothing of their cluster.

        An empty store may have been emptied, or the URL may be mistyped: the error names both.
        """
        if self.of_known_topics or self.layout.form_outside is not None:
            return
        asked = list(islice(promised, _ASKED_BY_NAME))
        if not asked or any(self._has(segment) or self._had(segment, removed) for segment in asked):
            return
        if selection != Selection() and self._looks_right(known_topic_ids):
            return
        raise self._error()

    def _has(self, segment: RemoteLogSegmentMetadata) -> bool:
        try:
            return any(self.store.head(key) for key in self.layout.promised_objects(segment).values())
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            return True  # that it is unknown is reported for each object

    def _had(self, segment: RemoteLogSegmentMetadata, removed: RemovedSegments) -> bool:
        """Whether tieredctl removed one of its objects from here: then this is the store."""
        return removed.plan_of_any(self.layout.promised_objects(segment).values()) is not None

    def _looks_right(self, known_topic_ids: Container[str]) -> bool:
        """Whether the rest of the store, outside the selection, has anything of the metadata's topics."""
        self.listed = self.explained = 0
        for listed in Inventory(self.store, self.layout, Selection()).objects():
            self.listed += 1
            if listed.explained:
                self.explained += 1
                if listed.explained.topic_id in known_topic_ids:
                    return True
            elif self.layout.other_form(listed.stored.key) is not None:
                return True
        return False

    def _error(self) -> TieredctlError:
        url = self.store.url
        if not self.listed:
            return promised_elsewhere(url)
        if not self.explained:
            message = f"No object in {url} has layout {self.layout.name}, and none of the promised ones is there."
        else:
            message = f"{url} has no objects of the topics in the metadata: they belong to different clusters."
        return TieredctlError(ErrorCode.NO_OVERLAP, message)


def promised_elsewhere(url: str) -> TieredctlError:
    """What is to be said of an empty store."""
    message = (
        f"{url} is empty, but the metadata promises segments: it is another bucket or prefix, or everything in it "
    )
    return TieredctlError(ErrorCode.NO_OVERLAP, f"{message}was deleted.")
