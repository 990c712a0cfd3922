"""`orphans scan`: whose is every object of a store?

The store is listed first, then the metadata is read, to its end offsets of a moment after the listing: whatever had an
owner while it was listed has it still in what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tieredctl.formats.windows import Ints
from tieredctl.layouts.protocol import ExplainedKey, Layout
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import ObjectStatus, OrphanCause
from tieredctl.ops.documents import Document
from tieredctl.ops.event_stream import EventStream
from tieredctl.ops.inventory import ListedObject, iso_8601, object_document
from tieredctl.ops.orphans.judgement import NO_SEGMENT, Judge, Verdicts, verdict_of
from tieredctl.ops.orphans.listing import Listing
from tieredctl.ops.orphans.object_columns import KnownOwners, ObjectColumns, object_columns
from tieredctl.ops.orphans.segment_events import SegmentEvents
from tieredctl.ops.orphans.segment_states import NO_STATE, segment_states
from tieredctl.ops.selection import Selection
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.storage.protocol import StoredObject


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How to judge. Times in ms; `live_topic_ids` None where it is not known which topics there are."""

    now_ms: int
    min_age_ms: int
    live_topic_ids: frozenset[str] | None = None
    selection: Selection = Selection()


@dataclass(slots=True)
class GroupTotals:
    """How much a verdict was given to: bytes as stored, the oldest and newest time of modification in ms."""

    objects: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None

    def add(self, sizes: Ints, times: Ints) -> None:
        """More objects, at least one."""
        self.objects += len(sizes)
        self.bytes += int(sizes.sum())
        oldest, newest = int(times.min()), int(times.max())
        self.oldest_ms = oldest if self.oldest_ms is None else min(self.oldest_ms, oldest)
        self.newest_ms = newest if self.newest_ms is None else max(self.newest_ms, newest)


_Group = tuple[str, str, ObjectStatus, OrphanCause | None]


@dataclass(slots=True)
class Scan:
    """A scan that runs while its documents are read."""

    listing: Listing
    layout: Layout
    subject: str
    """What findings name: the store."""
    read_metadata: Callable[[], EventStream]
    """Opens the metadata, up to its end offsets of the moment; called after the store was listed."""
    options: ScanOptions
    stream: EventStream | None = None
    """The metadata, once it was opened."""
    groups: dict[_Group, GroupTotals] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    """What was odd about the metadata, and one finding for each cause of orphans; there when the last document was
    read."""

    def documents(self) -> Iterator[Document]:
        """Every object that was selected, in the order of the listing, with its verdict and the evidence for it."""
        for judge, objects, verdicts in self._judged():
            codes, segments = verdicts.codes.tolist(), verdicts.segments.tolist()
            for row in self._selected(objects).tolist():
                yield self._document(judge, objects, row, codes[row], segments[row])

    def run(self) -> None:
        """Reads all, for the totals alone."""
        for _ in self._judged():
            pass

    def _judged(self) -> Iterator[tuple[Judge, ObjectColumns, Verdicts]]:
        with self.listing as listing:
            self.stream = stream = self.read_metadata()
            events = SegmentEvents()
            events.read(stream)
            judge = self._judge(events)
            for objects in object_columns(listing, self.layout, self._known(events)):
                verdicts = judge.judge(objects)
                self._count(objects, verdicts)
                yield judge, objects, verdicts
        self.findings += [*stream.findings, *self._orphan_findings()]

    def totals(self) -> list[Document]:
        """A row for each topic id and verdict, of what was read so far: orphans first, the most bytes first."""
        ranked = sorted(
            self.groups.items(), key=lambda group: (group[0][2] is not ObjectStatus.ORPHAN, -group[1].bytes)
        )
        return [_total_document(group, totals) for group, totals in ranked]

    def summary(self) -> Document:
        """Objects and bytes by status, orphans by cause, and whether the metadata was whole."""
        return {
            "objects": sum(totals.objects for totals in self.groups.values()),
            "bytes": sum(totals.bytes for totals in self.groups.values()),
            "status": {status.value: self._sum(status) for status in ObjectStatus},
            "causes": {cause.value: self._sum(cause) for cause in OrphanCause},
            "complete": self.metadata_is_whole,
        }

    @property
    def metadata_is_whole(self) -> bool:
        """Whether every event could be read."""
        findings = self.stream.findings if self.stream else []
        return all(finding.severity in (Severity.INFO, Severity.WARNING) for finding in findings)

    def _orphan_findings(self) -> Iterator[Finding]:
        for cause in OrphanCause:
            totals = self._sum(cause)
            if totals["objects"]:
                message = f"{totals['objects']} objects, {totals['bytes']} bytes, belong to nobody: {cause.value}"
                yield Finding("object-unreferenced", self.subject, message, {"cause": cause.value, **totals})

    def _judge(self, events: SegmentEvents) -> Judge:
        states, options = segment_states(events), self.options
        return Judge(states, options.now_ms, options.min_age_ms, options.live_topic_ids, self.metadata_is_whole)

    def _known(self, events: SegmentEvents) -> KnownOwners:
        topic_ids = {partition.topic_id for partition in events.partitions}
        return KnownOwners(events.partitions, frozenset(topic_ids) | (self.options.live_topic_ids or frozenset()))

    def _selected(self, objects: ObjectColumns) -> Ints:
        selection = self.options.selection
        if selection == Selection():
            return np.arange(len(objects.sizes))
        stems = [stem is not None and selection.has(stem.topic_id_partition) for stem in objects.said.explained]
        rows = np.flatnonzero(np.array([*stems, False], np.bool_)[objects.said.stems])
        if selection.segment_id is not None:
            wanted = np.frombuffer(selection.segment_id.encode("ascii"), np.uint8)
            rows = rows[(objects.said.segment_ids[rows] == wanted).all(axis=1)]
        return rows

    def _count(self, objects: ObjectColumns, verdicts: Verdicts) -> None:
        rows = self._selected(objects)
        stems, codes = objects.said.stems[rows], verdicts.codes[rows].astype(np.int64)
        kinds, kind_of = np.unique(stems << 8 | codes, return_inverse=True)
        order = np.argsort(kind_of, kind="stable")
        edges = np.searchsorted(kind_of[order], np.arange(len(kinds) + 1))
        for kind, first, last in zip(kinds.tolist(), edges[:-1], edges[1:], strict=True):
            stem = objects.said.explained[kind >> 8]
            topic, topic_id = (stem.topic, stem.topic_id) if stem else ("", "")
            group = (topic, topic_id, *verdict_of(kind & 0xFF))
            chosen = rows[order[first:last]]
            totals = self.groups.setdefault(group, GroupTotals())
            totals.add(objects.sizes[chosen], objects.last_modified_ms[chosen])

    def _document(self, judge: Judge, objects: ObjectColumns, row: int, code: int, segment: int) -> Document:
        explained = objects.explained(row)
        status, cause = verdict_of(code)
        key = objects.keys[row].as_py().decode("utf-8", "surrogateescape")
        stored = StoredObject(key, int(objects.sizes[row]), int(objects.last_modified_ms[row]), "")
        return object_document(ListedObject(stored, explained)) | {
            "status": status.value,
            "cause": cause.value if cause else None,
            "topicLive": judge.is_live(explained.topic_id) if explained else None,
            "evidence": self._evidence(judge, segment, explained),
        }

    def _evidence(self, judge: Judge, segment: int, explained: ExplainedKey | None) -> Document | None:
        """The last event of an object's segment, or up to where (exclusive) there is none."""
        if explained is None or self.stream is None:
            return None
        if segment == NO_SEGMENT:
            return _absence(self.stream, explained.topic_id_partition)
        segments = judge.segments
        state = int(segments.states[segment])
        return {
            "state": None if state == NO_STATE else RemoteLogSegmentState(state).name,
            "metadataPartition": int(segments.metadata_partitions[segment]),
            "metadataOffset": int(segments.metadata_offsets[segment]),
        }

    def _sum(self, verdict: ObjectStatus | OrphanCause) -> Document:
        """How much has a status, or a cause."""
        totals = [totals for group, totals in self.groups.items() if verdict in group[2:]]
        return {"objects": sum(one.objects for one in totals), "bytes": sum(one.bytes for one in totals)}


def _absence(stream: EventStream, partition: TopicIdPartition) -> Document:
    known = stream.source.metadata_partitions()
    number = metadata_partition(partition.topic_id, partition.partition, len(known))
    return {"metadataPartition": number, "noEventBefore": stream.source.offset_range(number).end}


def _total_document(group: _Group, totals: GroupTotals) -> Document:
    topic, topic_id, status, cause = group
    return {
        "status": status.value,
        "cause": cause.value if cause else None,
        "topic": topic or None,
        "topicId": topic_id or None,
        "objects": totals.objects,
        "bytes": totals.bytes,
        "oldest": None if totals.oldest_ms is None else iso_8601(totals.oldest_ms),
        "newest": None if totals.newest_ms is None else iso_8601(totals.newest_ms),
    }
