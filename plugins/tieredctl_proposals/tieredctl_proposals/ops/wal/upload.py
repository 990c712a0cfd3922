"""Packs brokers' active segments into combined objects, in the order of KIP-1176's upload: events that it begins, the
object, events that it ended.

Whatever interrupts it, the next run goes on: what was begun and not ended is not believed, and is uploaded again under
another id. Only objects whose end is on record count as uploaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.process.interruption import critical_section, mark_complete
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.model.wal_events import RemoteWalLogSegmentMetadata, RemoteWalLogSegmentMetadataUpdate
from tieredctl_proposals.ops.wal.both_tiers import NOTHING_REMOTE, RemoteSegments
from tieredctl_proposals.ops.wal.contents import demand_whole, read_events
from tieredctl_proposals.ops.wal.due_logs import DueLog, due_logs
from tieredctl_proposals.ops.wal.event_log import METADATA_PARTITIONS, EventLog
from tieredctl_proposals.ops.wal.local_batches import LocalActiveLog, LocalBatch, latest_epoch
from tieredctl_proposals.wal.combiner import CombinerSettings, packed
from tieredctl_proposals.wal.leadership import deletions_beyond
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.replayed import WalPartition
from tieredctl_proposals.wal.sections import QueueItem, queue_item
from tieredctl_proposals.wal.steps import Publish, PutObject
from tieredctl_proposals.wal.upload import upload_steps

UNKNOWN_BROKER = -1
"""Where no log directory says whose it is."""


@dataclass(frozen=True, slots=True)
class UploadedSegment(ResultRow):
    """A segment in an object; what only an upload decides is None before."""

    topic: str
    topic_id: JsonOnly[str]
    partition: int
    start_offset: Annotated[int, Column("START")]
    end_offset: Annotated[int, Column("END")]
    segment_size_in_bytes: Size[int]
    object: int
    segment_id: Annotated[str | None, Column(wide=True, after="key")] = None
    combined_segment_id: JsonOnly[str | None] = None
    key: Wide[str | None] = None
    start_file_position: Annotated[int | None, Column("POSITION", wide=True)] = None
    end_file_position: JsonOnly[int | None] = None


@dataclass(slots=True, kw_only=True)
class UploadOutcome(Outcome):
    """What was uploaded. Planned and done are segments in objects, bytes those of the objects."""

    segments: list[UploadedSegment] = field(default_factory=list)
    objects: int = 0
    deleted: int = 0
    """Segments of earlier leaders that the logs do not have: deleted by events."""


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """What would be uploaded now."""

    url: str
    segments: list[UploadedSegment]
    objects: int
    deleted: int
    """Segments of earlier leaders that the logs do not have, and that would be deleted by events."""
    damage: list[Finding]

    def source(self) -> Document:
        return {"kind": "log-dir", "store": self.url}

    def rows(self) -> list[UploadedSegment]:
        return self.segments

    def summary(self) -> Document:
        size = sum(row.segment_size_in_bytes for row in self.segments)
        return {"planned": len(self.segments), "objects": self.objects, "bytes": size, "deleted": self.deleted}

    def findings(self) -> list[Finding]:
        return self.damage


def plan_upload(
    store: ObjectStore, logs: Sequence[LocalActiveLog], upload_bytes: int, remote: RemoteSegments = NOTHING_REMOTE
) -> UploadPlan:
    """What an upload of what neither tier has would do. Raises TieredctlError if nothing may be uploaded."""
    events = read_events(store)
    demand_whole(events, store.url)
    findings: list[Finding] = []
    due = due_logs(events, logs, findings, remote)
    packing = _Packing(due, upload_bytes, UNKNOWN_BROKER, 0)
    uploads = [[item.metadata for item in items] for items in packing.uploads()]
    rows = [_row(metadata, number) for number, some in enumerate(uploads) for metadata in some]
    findings += packing.gaps()
    return UploadPlan(store.url, rows, len(uploads), _beyond(due), findings)


def _beyond(due: Sequence[DueLog]) -> int:
    return sum(len(one.beyond) for one in due)


@dataclass(slots=True)
class _Packing:
    """What goes into which object, in the order of the logs."""

    due: Sequence[DueLog]
    upload_bytes: int
    broker_id: int
    now_ms: int
    _added: list[list[tuple[int, int]]] = field(init=False)
    """The offsets in each log's items."""

    def __post_init__(self) -> None:
        self._added = [[] for _ in self.due]

    def uploads(self) -> Iterator[tuple[QueueItem, ...]]:
        """Streams: no more than an object is held."""
        return packed(self._items(), CombinerSettings(upload_bytes=self.upload_bytes))

    def gaps(self) -> list[Finding]:
        """The findings about gaps that uploads made, after they were given."""
        pairs = zip(self.due, self._added, strict=True)
        return [finding for one, added in pairs for finding in one.gaps_beside(added)]

    def _items(self) -> Iterator[QueueItem]:
        for one, added in zip(self.due, self._added, strict=True):
            for batches in self._sections(one):
                item = self._item(one, batches)
                added.append((item.metadata.start_offset, item.metadata.end_offset))
                yield item

    def _sections(self, one: DueLog) -> Iterator[list[LocalBatch]]:
        """Batches that become a segment: none that the store has is between them."""
        batches: list[LocalBatch] = []
        size = 0
        for batch in one.batches():
            is_apart = batches and one.has_between(batches[-1], batch)
            if batches and (is_apart or size + len(batch.data) > self.upload_bytes):
                yield batches
                batches, size = [], 0
            batches.append(batch)
            size += len(batch.data)
        if batches:
            yield batches

    def _item(self, one: DueLog, batches: Sequence[LocalBatch]) -> QueueItem:
        return queue_item(
            one.log.partition,
            _random_id(),
            b"".join(batch.data for batch in batches),
            broker_id=self.broker_id,
            leader_epoch=latest_epoch(one.leader),
            event_timestamp_ms=self.now_ms,
        )


def _never(deleted: int) -> None:
    message = f"Deleting {counted(deleted, 'segment')} of earlier leaders needs confirmation."
    raise TieredctlError(ErrorCode.NOT_CONFIRMED, message)


@dataclass(slots=True)
class ActiveSegmentsUpload:
    """One run."""

    store: WritableObjectStore
    logs: Sequence[LocalActiveLog]
    broker_id: int
    clock_ms: Callable[[], int]
    upload_bytes: int
    confirm: Callable[[int], None] = _never
    """Raises TieredctlError unless so many segments of earlier leaders may be deleted by events."""
    without_lease: bool = False
    tell: Callable[[UploadOutcome], None] = lambda _outcome: None
    remote: RemoteSegments = field(default_factory=dict)
    """What remote storage has (KIP-405)."""

    def run(self) -> UploadOutcome:
        """Uploads what neither tier has yet. Raises TieredctlError if nothing may be uploaded."""
        outcome = UploadOutcome()
        with lease_held(self.store, "wal upload", self.clock_ms, unguarded=self.without_lease) as lease:
            events = read_events(self.store)
            demand_whole(events, self.store.url)
            log = EventLog(self.store, events.log.end_offsets, lease.clock)
            due = due_logs(events, self.logs, outcome.findings, self.remote)
            if deleted := _beyond(due):
                self.confirm(deleted)
            packing = _Packing(due, self.upload_bytes, self.broker_id, lease.clock())
            try:
                uploads = packing.uploads()
                items = next(uploads, ())
                while items:
                    lease.renew()
                    with critical_section():
                        self._upload(log, items, outcome)
                        items = next(uploads, ())
                        if not (items or deleted):
                            mark_complete()
                    self.tell(outcome)
                if deleted:
                    lease.renew()
                    with critical_section():
                        self._cut(log, due, outcome)
                        mark_complete()
                outcome.findings += packing.gaps()
            except TieredctlError as error:
                outcome.stopped = error
            self._look_again(outcome)
        return outcome

    def _cut(self, log: EventLog, due: Sequence[DueLog], outcome: UploadOutcome) -> None:
        """Deletes by events what a new leader does not have of its partition, as it would itself. What of that it has
        is uploaded again by now."""
        for one in due:
            steps = deletions_beyond(
                WalPartition(one.beyond),
                one.leader,
                broker_id=self.broker_id,
                leader_epoch=latest_epoch(one.leader),
                clock_ms=self.clock_ms,
            )
            log.append(list(steps))
            outcome.deleted += len(one.beyond)

    def _look_again(self, outcome: UploadOutcome) -> None:
        """Counts as done what readers find now."""
        if not outcome.segments:
            return
        try:
            events = read_events(self.store)
            demand_whole(events, self.store.url)
        except TieredctlError as error:
            outcome.stopped = outcome.stopped or error
            return
        readable = {one.segment_id for one in events.segments() if one.is_readable}
        unread = [row for row in outcome.segments if row.segment_id not in readable]
        outcome.segments = [row for row in outcome.segments if row.segment_id in readable]
        outcome.done, outcome.failed = len(outcome.segments), len(unread)
        outcome.findings += map(_not_taken, unread)

    def _upload(self, log: EventLog, items: Sequence[QueueItem], outcome: UploadOutcome) -> None:
        combined_id = _random_id()
        steps = upload_steps(
            items,
            combined_id,
            broker_id=self.broker_id,
            metadata_partitions=METADATA_PARTITIONS,
            clock_ms=self.clock_ms,
        )
        ended = dict[str, RemoteWalLogSegmentMetadataUpdate]()
        # Consecutive events are one file of the log: nothing is done between them.
        for is_publishing, some in groupby(steps, lambda step: isinstance(step, Publish)):
            if is_publishing:
                published = [step for step in some if isinstance(step, Publish)]
                log.append(published)
                events = [one.event for one in published]
                updates = [one for one in events if isinstance(one, RemoteWalLogSegmentMetadataUpdate)]
                ended |= {one.segment_id: one for one in updates}
                continue
            for step in some:
                assert isinstance(step, PutObject)
                self._write(step)
                outcome.bytes += len(step.data)
        rows = [_row(item.metadata, outcome.objects, ended[item.metadata.segment_id]) for item in items]
        outcome.segments += rows
        outcome.planned += len(rows)
        outcome.objects += 1

    def _write(self, step: PutObject) -> None:
        """Writes the object, and looks whether it is there: what is on record as uploaded must be."""
        self.store.write(step.key, step.data)
        stored = self.store.head(step.key)
        if stored is None or stored.size != len(step.data):
            message = f"{self.store.url} reported {step.key} as written, but does not have it."
            raise TieredctlError(ErrorCode.UNWRITABLE, message)


def _not_taken(row: UploadedSegment) -> Finding:
    named = f"{row.topic}-{row.partition}"
    message = f"offsets {row.start_offset} to {row.end_offset} of {named} were uploaded, and no reader takes them"
    evidence = {"combinedSegmentId": row.combined_segment_id, "key": row.key, "partitions": [named]}
    evidence |= {"segmentId": row.segment_id}
    return Finding(ProposalCode.WAL_UPLOAD_UNFINISHED, str(row.key), message, evidence)


def _random_id() -> str:
    """A random id like Kafka's: none begins with a dash."""
    while (text := uuid_text(uuid4().bytes)).startswith("-"):
        pass
    return text


def _row(
    begun: RemoteWalLogSegmentMetadata, number: int, ended: RemoteWalLogSegmentMetadataUpdate | None = None
) -> UploadedSegment:
    segment = (begun.start_offset, begun.end_offset, begun.segment_size_in_bytes)
    if ended is None:
        return UploadedSegment(*begun.topic_id_partition.names, *segment, number)
    combined_id = ended.combined_segment_id
    return UploadedSegment(
        *(*begun.topic_id_partition.names, *segment, number, ended.segment_id, combined_id, object_key(combined_id)),
        *(ended.start_file_position, ended.end_file_position),
    )
