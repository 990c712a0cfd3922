"""Packs brokers' active segments into combined objects, in the order of KIP-1176's upload: events that it begins, the
object, events that it ended.

Whatever interrupts it, the next run goes on: what was begun and not ended is not believed, and is uploaded again under
another id. Only objects whose end is on record count as uploaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple
from uuid import uuid4

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.leader_log import LeaderLog
from tieredctl.model.wal_events import NO_LEADER, RemoteWalLogSegmentMetadata, RemoteWalLogSegmentMetadataUpdate
from tieredctl.ops.change import Outcome
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.wal.contents import KnownEvents, demand_whole, read_events
from tieredctl.ops.wal.event_log import METADATA_PARTITIONS, EventLog
from tieredctl.ops.wal.local_batches import LocalActiveLog, LocalBatch, latest_epoch
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.storage.protocol import ObjectStore, WritableObjectStore
from tieredctl.wal.combiner import Combiner, CombinerSettings
from tieredctl.wal.leadership import deletions_beyond, segments_beyond, upload_from
from tieredctl.wal.places import object_key
from tieredctl.wal.replayed import KnownWalSegment, WalPartition
from tieredctl.wal.sections import QueueItem, queue_item
from tieredctl.wal.steps import Publish, PutObject
from tieredctl.wal.upload import upload_steps

_UNKNOWN_BROKER = -1


@dataclass(slots=True, kw_only=True)
class UploadOutcome(Outcome):
    """What was uploaded. Planned and done are segments in objects, bytes those of the objects."""

    segments: list[Document] = field(default_factory=list)
    objects: int = 0
    deleted: int = 0
    """Segments of earlier leaders that the logs do not have: deleted by events."""


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """What would be uploaded now."""

    url: str
    segments: list[Document]
    objects: int
    deleted: int
    """Segments of earlier leaders that the logs do not have, and that would be deleted by events."""
    damage: list[Finding]

    def source(self) -> Document:
        return {"kind": "log-dir", "store": self.url}

    def rows(self) -> list[Document]:
        return self.segments

    def summary(self) -> Document:
        size = sum(row["segmentSizeInBytes"] for row in self.segments)
        return {"planned": len(self.segments), "objects": self.objects, "bytes": size, "deleted": self.deleted}

    def findings(self) -> list[Finding]:
        return self.damage


def plan_upload(store: ObjectStore, logs: Sequence[LocalActiveLog], upload_bytes: int) -> UploadPlan:
    """What an upload would do. Raises TieredctlError if nothing may be uploaded."""
    events = read_events(store)
    demand_whole(events, store.url)
    findings: list[Finding] = []
    due = _due(events, logs, findings)
    packing = _Packing(due, upload_bytes, _UNKNOWN_BROKER, 0, findings)
    uploads = list(packing.uploads())
    rows = [_row(item.metadata, number) for number, items in enumerate(uploads) for item in items]
    return UploadPlan(store.url, rows, len(uploads), sum(len(one.beyond) for one in due), findings)


class _DueLog(NamedTuple):
    """A log of which something may be due for upload."""

    log: LocalActiveLog
    leader: LeaderLog
    wal: WalPartition
    from_offset: int
    beyond: Sequence[KnownWalSegment]
    """What earlier leaders uploaded, and this log does not have."""


def _due(events: KnownEvents, logs: Sequence[LocalActiveLog], findings: list[Finding]) -> list[_DueLog]:
    """The logs that are of the leader that uploaded last, or of a later one."""
    due = []
    for log in logs:
        leader, wal = log.leader_log(), events.replayed.partition(log.partition)
        beyond = [one for one in segments_beyond(wal, leader) if one.is_readable]
        uploaded_by = max((one.leader_epoch for one in wal.segments.values() if one.is_readable), default=NO_LEADER)
        if beyond and latest_epoch(leader) <= uploaded_by:
            findings.append(_behind(log, leader, max(one.metadata.end_offset for one in beyond)))
        else:
            due.append(_DueLog(log, leader, wal, upload_from(wal, RemoteLogMetadataCache(), leader), beyond))
    return due


@dataclass(slots=True)
class _Packing:
    """What goes into which object, in the order of the logs."""

    due: Sequence[_DueLog]
    upload_bytes: int
    broker_id: int
    now_ms: int
    findings: list[Finding]

    def uploads(self) -> Iterator[tuple[QueueItem, ...]]:
        """Streams: no more than an object is held."""
        settings = CombinerSettings(upload_bytes=self.upload_bytes)
        combiner = Combiner(settings)
        for item in self._items():
            combiner.offer(item, 0)
            while upload := combiner.next_upload(0):
                yield upload.items
        while upload := combiner.next_upload(settings.interval_ms):
            yield upload.items

    def _items(self) -> Iterator[QueueItem]:
        for one in self.due:
            batches: list[LocalBatch] = []
            size = 0
            for batch in one.log.batches(one.from_offset, self.findings):
                if batches and size + len(batch.data) > self.upload_bytes:
                    yield self._item(one, batches)
                    batches, size = [], 0
                batches.append(batch)
                size += len(batch.data)
            if batches:
                yield self._item(one, batches)

    def _item(self, one: _DueLog, batches: Sequence[LocalBatch]) -> QueueItem:
        partition = one.log.partition
        try:
            return queue_item(
                partition,
                _random_id(),
                b"".join(batch.data for batch in batches),
                broker_id=self.broker_id,
                leader_epoch=latest_epoch(one.leader),
                event_timestamp_ms=self.now_ms,
            )
        except DecodeError as error:
            offset = batches[0].header.base_offset
            message = f"The log of {partition.topic}-{partition.partition} cannot be uploaded from offset {offset}: "
            raise TieredctlError(ErrorCode.UNDECODABLE, f"{message}{error.reason}.") from None


@dataclass(slots=True)
class ActiveSegmentsUpload:
    """One run."""

    store: WritableObjectStore
    logs: Sequence[LocalActiveLog]
    broker_id: int
    clock_ms: Callable[[], int]
    upload_bytes: int
    without_lease: bool = False
    tell: Callable[[UploadOutcome], None] = lambda _outcome: None

    def run(self) -> UploadOutcome:
        """Uploads what the store does not have yet. Raises TieredctlError if nothing may be uploaded."""
        outcome = UploadOutcome()
        with lease_held(self.store, "wal upload", self.clock_ms, unguarded=self.without_lease) as lease:
            events = read_events(self.store)
            demand_whole(events, self.store.url)
            log = EventLog(self.store, events.log.end_offsets, lease.clock)
            due = _due(events, self.logs, outcome.findings)
            packing = _Packing(due, self.upload_bytes, self.broker_id, lease.clock(), outcome.findings)
            try:
                self._cut(log, due, outcome)
                for items in packing.uploads():
                    lease.renew()
                    self._upload(log, items, outcome)
                    self.tell(outcome)
            except TieredctlError as error:
                outcome.stopped = error
        return outcome

    def _cut(self, log: EventLog, due: Sequence[_DueLog], outcome: UploadOutcome) -> None:
        """As a new leader does: what it does not have of its partition is deleted, by events, before it uploads."""
        for one in due:
            steps = deletions_beyond(
                one.wal,
                one.leader,
                broker_id=self.broker_id,
                leader_epoch=latest_epoch(one.leader),
                clock_ms=self.clock_ms,
            )
            log.append(list(steps))
            outcome.deleted += len(one.beyond)

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
        outcome.done += len(rows)
        outcome.objects += 1

    def _write(self, step: PutObject) -> None:
        """Writes the object, and looks whether it is there: what is on record as uploaded must be."""
        self.store.write(step.key, step.data)
        found = self.store.head(step.key)
        if found is None or found.size != len(step.data):
            message = f"{self.store.url} reported {step.key} as written, but does not have it."
            raise TieredctlError(ErrorCode.UNWRITABLE, message)


def _behind(log: LocalActiveLog, leader: LeaderLog, uploaded: int) -> Finding:
    partition = log.partition
    message = (
        f"it ends at offset {leader.end_offset} of leader epoch {latest_epoch(leader)}, and this or a later leader "
        f"uploaded offsets up to {uploaded} that it does not have: nothing of it was added"
    )
    evidence = {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "file": str(log.folder),
        "logEndOffset": leader.end_offset,
        "uploadedEndOffset": uploaded + 1,
    }
    about = PartitionSubject(partition)
    return Finding(FindingCode.WAL_LOG_BEHIND, str(log.folder), message, evidence, about=about)


def _random_id() -> str:
    """As Kafka makes them: none begins with a dash."""
    while (text := uuid_text(uuid4().bytes)).startswith("-"):
        pass
    return text


def _row(
    begun: RemoteWalLogSegmentMetadata, number: int, ended: RemoteWalLogSegmentMetadataUpdate | None = None
) -> Document:
    """A segment in an object; what only an upload decides is null before."""
    partition = begun.topic_id_partition
    return {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "startOffset": begun.start_offset,
        "endOffset": begun.end_offset,
        "segmentSizeInBytes": begun.segment_size_in_bytes,
        "object": number,
        "segmentId": ended and ended.segment_id,
        "combinedSegmentId": ended and ended.combined_segment_id,
        "key": ended and object_key(ended.combined_segment_id),
        "startFilePosition": ended and ended.start_file_position,
        "endFilePosition": ended and ended.end_file_position,
    }
