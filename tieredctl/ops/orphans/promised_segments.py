"""Finds objects that the metadata promises and a store lacks: what looks orphaned beside them may be theirs.

A listing shows which are there, many at a time. The others are asked for by name, and the metadata is read again before
they count as missing, since retention deletes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import StoreSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata.completeness import demand_whole
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.judgement import NO_SEGMENT, Verdicts
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ops.orphans.segment_states import SegmentStates
from tieredctl.ops.remote.key_columns import offsets_agree
from tieredctl.ops.verification.judged_partitions import NO_PART, PARTS, Masks, any_segment, mask_of
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ops.verification.removed_keys import read_removed_keys
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.segment_events import SegmentEvents

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
_AT_ONCE = 10_000
_MOST_LOOKED_AT = 1_000
_CLOCKS_DIFFER_MS = 3_600_000
_Promised = dict[str, RemoteLogSegmentMetadata]
"""Segments by the keys of their promised objects."""


@dataclass(slots=True)
class PromisedSegments:
    """The segments in COPY_SEGMENT_FINISHED of topics that are not known to be gone, and what is listed of them."""

    segments: SegmentStates
    live_topics: LiveTopics
    layout: Layout
    _listed: Masks = field(init=False)

    def __post_init__(self) -> None:
        self._listed = np.zeros(len(self.segments.states), np.uint16)

    def take(self, objects: ObjectColumns, verdicts: Verdicts) -> None:
        """Objects of a listing, judged by these segments."""
        rows, explained, segments = verdicts.segments, objects.said, self.segments
        named = np.flatnonzero(rows != NO_SEGMENT)
        agrees = segments.owners[rows[named]] == objects.partitions[named]
        agrees &= offsets_agree(explained.start_offsets[named], segments.start_offsets[rows[named]])
        named = named[agrees]
        parts_of_stems = np.array([PARTS.index(one.part) if one else NO_PART for one in explained.explained], np.int8)
        parts = parts_of_stems[explained.stems[named]]
        for part in np.unique(parts).tolist():
            self._listed[rows[named[parts == part]]] |= np.uint16(1 << part)

    def take_parts(self, listed: Masks) -> None:
        """Which parts of each segment are listed, as others found."""
        self._listed |= listed

    def missing(self, store: ObjectStore, read: Callable[[], EventStream], key: bytes | None) -> list[str]:
        """The keys of promised objects that the store lacks. `read` opens the metadata from its beginning, up to its
        ends of the moment: it is called only where something is neither listed nor found by its name. `key` opens the
        seals of what tieredctl noted that it removed. Raises TieredctlError `metadata-incomplete` where it lacks
        events: nothing is known to be promised no more then."""
        if self.layout.form_outside is not None:
            return []  # what is promised is in another store
        absent = list(self._absent_rows(store))
        if not absent:
            return []
        partitions = {self.segments.partitions[owner] for owner in self.segments.owners[absent].tolist()}
        ids = self.segments.segment_ids.at(np.array(absent)).texts()

        def promised() -> _Promised:
            return _promised_by(read(), partitions, ids, self.layout)

        # Custom metadata may put an object elsewhere than its segment's name does.
        once = _not_there(store, list(promised()))
        again = promised() if once else {}
        return self._unexplained({name: again[name] for name in once if name in again}, store, key)

    def passed_over(self, store: ObjectStore, listed_ms: int) -> list[str]:
        """The keys of promised objects that the store has, and that a listing of it lacks, though they were there long
        before it began, at a time in ms. Looks at the first segments alone of which anything is not listed: one such
        object shows that the listing was short."""
        if self.layout.form_outside is not None:
            return []
        keys = [key for row in self._unlisted()[:_MOST_LOOKED_AT].tolist() for key in self._keys(row)]
        found = in_parallel(store, store.head, keys)
        return [one.key for one in found if one and 0 < one.last_modified_ms < listed_ms - _CLOCKS_DIFFER_MS]

    def _absent_rows(self, store: ObjectStore) -> Iterator[int]:
        """The rows of segments of which an object is neither listed nor found under the name that its segment gives
        it."""
        unlisted = iter(self._unlisted().tolist())
        while rows := list(islice(unlisted, _AT_ONCE)):
            keys = {key: row for row in rows for key in self._keys(row)}
            yield from dict.fromkeys(keys[key] for key in _not_there(store, list(keys)))

    def _unlisted(self) -> Ints:
        segments = self.segments
        masks = [mask_of(list(self.layout.promised_objects(any_segment(one)))) for one in segments.partitions]
        promised = np.array([*masks, 0], np.uint16)[segments.owners]
        counts = np.array([self._counts(number) for number in range(len(segments.partitions))] + [False], np.bool_)
        lacks = (self._listed & promised) != promised
        return np.flatnonzero((segments.states == _FINISHED) & counts[segments.owners] & lacks)

    def _counts(self, number: int) -> bool:
        is_live = self.live_topics.is_live(self.segments.partitions[number].topic_id)
        return number not in self.segments.partition_deletes and is_live is not False

    def _keys(self, row: int) -> Sequence[str]:
        """The keys of a segment's promised objects that are not listed, as its name alone gives them."""
        segments, listed = self.segments, int(self._listed[row])
        partition = segments.partitions[int(segments.owners[row])]
        (segment_id,) = segments.segment_ids.at(np.array([row])).texts()
        identity = _identity(partition, segment_id, int(segments.start_offsets[row]))
        keys = self.layout.promised_objects(identity)
        return [key for part, key in keys.items() if not listed & mask_of([part])]

    def _unexplained(
        self, lost: Mapping[str, RemoteLogSegmentMetadata], store: ObjectStore, key: bytes | None
    ) -> list[str]:
        """Without those that an own plan removed, by a sealed note, where nobody says whether their topic exists, and
        without segments that are there in another form."""
        if not lost:
            return []
        forms, removed = OtherForms(store, self.layout), read_removed_keys(store, key)
        return [
            name
            for name, segment in lost.items()
            if (not removed.is_proven(name) or self.live_topics.is_live(segment.topic_id_partition.topic_id))
            and forms.not_judged(segment) is None
        ]


def promised_objects_missing(missing: Sequence[str], store_url: str) -> Finding:
    """The finding that what looks orphaned in a store may be objects that the metadata promises. `missing` are their
    keys."""
    message = f"{lacks_promised(missing, store_url)}: what looks orphaned may be theirs"
    evidence = {"objects": len(missing), "key": min(missing)}
    return Finding(FindingCode.PROMISED_OBJECTS_MISSING, store_url, message, evidence)


def listing_was_short(passed_over: Sequence[str], store_url: str) -> Finding:
    """The finding that a listing lacked objects which the store had. `passed_over` are the keys of some."""
    lacked = counted(len(passed_over), "object that is promised", "objects that are promised")
    message = f"its listing lacked {lacked} and that it has, such as {min(passed_over)}: others may be left out, too"
    evidence = {"objects": len(passed_over), "key": min(passed_over)}
    return Finding(FindingCode.UNREADABLE, store_url, message, evidence, about=StoreSubject())


def lacks_promised(missing: Sequence[str], store_url: str) -> str:
    """Words for how many promised objects a store lacks."""
    return f"{store_url} lacks {counted(len(missing), 'object that is promised', 'objects that are promised')}"


def _identity(partition: TopicIdPartition, segment_id: str, start_offset: int) -> ExplainedKey:
    return ExplainedKey(partition.topic, partition.topic_id, partition.partition, start_offset, segment_id, Part.LOG)


def _promised_by(
    stream: EventStream, partitions: set[TopicIdPartition], segment_ids: Sequence[str], layout: Layout
) -> _Promised:
    """What a reading of the metadata promises of some segments."""
    events = SegmentEvents(is_described=True, selects=partitions.__contains__)
    read_events(stream, events)
    demand_whole(stream.findings)
    metadata = ReplayedMetadata(events)
    rows = metadata.named(segment_ids, metadata.in_states([_FINISHED]))
    return {
        key: segment.metadata
        for partition, segment in metadata.known(rows)
        if partition not in metadata.partition_deletes
        for key in layout.promised_objects(segment.metadata).values()
    }


def _not_there(store: ObjectStore, keys: Sequence[str]) -> list[str]:
    answers = in_parallel(store, store.head, keys)
    return [key for key, stored in zip(keys, answers, strict=True) if stored is None]
