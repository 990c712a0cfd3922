"""A segment's metadata, rebuilt from its objects as the broker had it that copied it (RemoteLogManager)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.formats.columns import NULL, Spans
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import SEGMENT_METADATA_UPDATE
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.formats.windows import Bytes
from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.broker_events import by_brokers
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.transactions import AbortedTransactions
from tieredctl.ports.layout import UNNAMED_OFFSET, ExplainedKey, Layout, Part, RecordedMetadata, SegmentReader
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved
from tieredctl.rlmm.segment_events import EventChunk

_NO_TIMESTAMP = -1
_CONCERN_THE_SEGMENT = (ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE)


class Unfit(Exception):
    """A segment whose objects contradict each other, or are not what they should be. The text says how."""


def rebuild(
    stored: StoredSegment, store: ObjectStore, layout: Layout, traits: BrokerTraits
) -> RemoteLogSegmentMetadata:
    """The metadata of a segment in COPY_SEGMENT_FINISHED whose log and leader epochs are there.

    Broker id and event time are no longer known. Raises Unfit, and TieredctlError if the store does not answer.
    """
    try:
        recorded = layout.recorded_metadata(store, stored.identity)
        if recorded is None:
            recorded = _read_parts(stored, layout.open_segment(store, stored.identity), traits.tells_txn)
        _demand_agreement(recorded, stored)
    except TieredctlError as error:
        if error.code in _CONCERN_THE_SEGMENT:
            raise Unfit(error.message) from None
        raise
    metadata = RemoteLogSegmentMetadata(
        topic_id_partition=stored.identity.topic_id_partition,
        segment_id=stored.identity.segment_id,
        start_offset=stored.identity.start_offset,
        end_offset=recorded.end_offset,
        author=NO_BROKER,
        max_timestamp_ms=recorded.max_timestamp_ms,
        event_timestamp_ms=stored.stored_ms,
        segment_leader_epochs=recorded.segment_leader_epochs,
        segment_size_in_bytes=recorded.segment_size_in_bytes,
        custom_metadata=layout.custom_metadata(stored.identity, stored.stored_bytes, traits.custom_metadata),
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        txn_idx_empty=bool(recorded.txn_idx_empty),
        form=traits.form,
    )
    _demand_own_objects(layout.promised_objects(metadata), stored)
    return metadata


def as_started(metadata: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadata:
    """The event with which a broker starts a copy: the storage manager's custom metadata is not known then."""
    return replace(metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED, custom_metadata=None)


def read_lineage(stored: StoredSegment, store: ObjectStore, layout: Layout) -> list[EpochEntry]:
    """The leader epochs up to a segment's end, from the beginning of the log of its time. Raises DecodeError."""
    return leader_epoch_entries(layout.open_segment(store, stored.identity).read(Part.LEADER_EPOCH))


def _read_parts(stored: StoredSegment, reader: SegmentReader, tells_txn: bool) -> RecordedMetadata:
    size = stored.objects[Part.LOG].size
    log = _read_log(reader, size, stored.identity.start_offset)
    max_timestamp = log.max_timestamp_ms
    if max_timestamp == _NO_TIMESTAMP:
        max_timestamp = stored.objects[Part.LOG].last_modified_ms  # as LogSegment.largestTimestamp takes the file's
    return RecordedMetadata(
        end_offset=log.last_offset,
        max_timestamp_ms=max_timestamp,
        segment_leader_epochs=epochs_of_log(reader.read(Part.LEADER_EPOCH), log.epochs, stored.identity.start_offset),
        segment_size_in_bytes=size,
        # If the index is lost, brokers that take it for empty would never look for a restored one.
        txn_idx_empty=tells_txn and not log.may_abort and not _indexes_transactions(stored),
        stored_sizes={},
    )


class EpochRun(NamedTuple):
    """Batches of one leader epoch, one after another: `first` and `last` are their offsets, both inclusive."""

    epoch: int
    first: int
    last: int


class _ReadLog(NamedTuple):
    """What a log that is sound to its end shows about its segment."""

    last_offset: int
    """Inclusive."""
    max_timestamp_ms: int
    epochs: Sequence[EpochRun]
    """The leader epochs of its batches."""
    may_abort: bool
    """Whether there is an ABORT marker of a transaction that has data, or may have some before the segment."""


def _read_log(reader: SegmentReader, size: int, start_offset: int) -> _ReadLog:
    last_offset, max_timestamp, aborted = -1, _NO_TIMESTAMP, AbortedTransactions()
    epochs: list[EpochRun] = []
    for block in scan_log(reader.stream(Part.LOG), size, AsColumns(), start_offset):
        if isinstance(block, Damage):
            raise Unfit(f"its log cannot be read at byte {block.position}: {block.reason}")
        headers = block.headers
        last_offset = max(last_offset, int((headers["baseOffset"] + headers["lastOffsetDelta"]).max()))
        max_timestamp = max(max_timestamp, int(headers["maxTimestamp"].max()))
        aborted.feed(block)
        epochs += epoch_runs(headers)
    if last_offset < start_offset:
        raise Unfit("its log holds no batch")
    with_data = any(one.first_offset is not None or one.may_begin_before for one in aborted.markers)
    return _ReadLog(last_offset, max_timestamp, epochs, with_data or bool(aborted.unreadable))


def epoch_runs(headers: HeaderColumns) -> list[EpochRun]:
    """The leader epochs of batches, one run per change."""
    epochs = headers["partitionLeaderEpoch"]
    begins = np.flatnonzero(np.append(True, epochs[1:] != epochs[:-1]))
    ends = np.append(begins[1:], len(epochs)) - 1
    lasts = headers["baseOffset"][ends] + headers["lastOffsetDelta"][ends]
    columns = (epochs[begins], headers["baseOffset"][begins], lasts)
    return [EpochRun(*run) for run in zip(*(column.tolist() for column in columns), strict=True)]


def epochs_of_log(checkpoint: bytes, log: Sequence[EpochRun], start_offset: int) -> tuple[tuple[int, int], ...]:
    """The leader epochs of a segment, by the checkpoint that was copied with it, which its log has to confirm.

    A checkpoint has no checksum: one altered digit gives another lineage, and brokers delete segments that belong to
    another lineage. Where compaction left no record, nothing contradicts it. Raises Unfit.
    """
    try:
        entries = leader_epoch_entries(checkpoint)
    except DecodeError as error:
        raise Unfit(f"its leader-epoch checkpoint is damaged at byte {error.position}: {error.reason}") from None
    within = epochs_within(entries, start_offset, log[-1].last)
    starts = [offset for _, offset in within]
    for run in log:
        for offset in (run.first, run.last):
            index = bisect_right(starts, offset) - 1
            if index < 0 or within[index][0] != run.epoch:
                epoch = "no leader epoch" if index < 0 else f"leader epoch {within[index][0]}"
                raise Unfit(f"its leader-epoch checkpoint gives offset {offset} {epoch}, its log {run.epoch}")
    return within


def epochs_within(entries: Sequence[EpochEntry], start_offset: int, end_offset: int) -> tuple[tuple[int, int], ...]:
    """The leader epochs of the offsets from `start_offset` to `end_offset` (inclusive), the first cut to
    `start_offset` (LeaderEpochFileCache.epochEntriesInRange). Raises Unfit if there are none."""
    before = [entry for entry in entries if entry.start_offset <= start_offset]
    within = [entry for entry in entries if start_offset < entry.start_offset <= end_offset]
    cut = [EpochEntry(before[-1].epoch, start_offset)] if before else []
    if not cut and not within:
        raise Unfit("its leader-epoch checkpoint has no epoch for its offsets")
    return tuple((entry.epoch, entry.start_offset) for entry in (*cut, *within))


def _indexes_transactions(stored: StoredSegment) -> bool:
    index = stored.objects.get(Part.TRANSACTION_INDEX)
    return index is not None and index.size > 0


def _demand_own_objects(promised: Mapping[Part, str], stored: StoredSegment) -> None:
    """Raises Unfit if brokers would look for the segment's objects elsewhere."""
    for part, key in promised.items():
        stored_object = stored.objects.get(part)
        if stored_object is not None and stored_object.key != key:
            raise Unfit(f"its metadata would name {key}, but the object is {stored_object.key}")


def _demand_agreement(recorded: RecordedMetadata, stored: StoredSegment) -> None:
    """Raises Unfit if a size shows that an object was cut short, or belongs to another segment."""
    for part, size in recorded.stored_sizes.items():
        stored_object = stored.objects[part]
        if stored_object.size != size:
            raise Unfit(f"{stored_object.key} has {stored_object.size} of {size} bytes")


class BrokerTraits(NamedTuple):
    """How a cluster's brokers write events: rebuilt ones have to look the same. By default, as the latest releases
    do."""

    custom_metadata: bytes | None = None
    """Some segment's, which shows the fields that the storage manager is configured to give."""
    form: RecordForm = RecordForm.KAFKA
    tells_txn: bool = False
    """Whether brokers record that a segment has no aborted transaction (Kafka 4.0 and later)."""

    def shown_by(self, chunk: EventChunk) -> BrokerTraits:
        """What is known after more events."""
        traits = self
        for shown in sorted(_shown(chunk), key=lambda one: one.number):
            traits = BrokerTraits(
                shown.custom_metadata or traits.custom_metadata, shown.form, traits.tells_txn or shown.tells_txn
            )
        return traits


class _Shown(NamedTuple):
    """What a broker's event shows."""

    number: int
    """The number of its record."""
    form: RecordForm
    custom_metadata: bytes | None = None
    tells_txn: bool = False


def _shown(chunk: EventChunk) -> Iterator[_Shown]:
    """The events that show most, of each kind and form; in no order."""
    for group in chunk.groups:
        yield from _shown_by_group(chunk.data, group)
    for number, record in chunk.records:
        yield from _shown_by_record(number, record)


def _shown_by_group(data: Bytes, group: EventGroup) -> Iterator[_Shown]:
    rows = by_brokers(group)
    if not len(rows):
        return
    tells_txn = "TxnIndexEmpty" in group.columns and bool(group.columns["TxnIndexEmpty"][rows].any())
    yield _Shown(int(group.rows[rows[-1]]), group.form, tells_txn=tells_txn)
    if group.api_key == SEGMENT_METADATA_UPDATE and "CustomMetadata" in group.columns:
        spans: Spans = group.columns["CustomMetadata"]
        filled = rows[(spans.starts[rows] != NULL) & (spans.ends[rows] > spans.starts[rows])]
        for row in filled[-1:].tolist():
            yield _Shown(int(group.rows[row]), group.form, data[spans.starts[row] : spans.ends[row]].tobytes())


def _shown_by_record(number: int, record: EventRecord) -> Iterator[_Shown]:
    event = record.event
    if isinstance(event, RemoteLogSegmentMetadataSnapshot) or event.author == NO_BROKER:
        return
    custom = event.custom_metadata if isinstance(event, RemoteLogSegmentMetadataUpdate) else None
    tells_txn = isinstance(event, RemoteLogSegmentMetadata) and event.txn_idx_empty
    yield _Shown(number, event.form, custom, tells_txn)


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What the store has of one segment."""

    identity: ExplainedKey
    objects: Mapping[Part, StoredObject]

    @property
    def stored_ms(self) -> int:
        """When its last object was written: nothing else in a store shows which copy came later."""
        return max(stored.last_modified_ms for stored in self.objects.values())

    @property
    def stored_bytes(self) -> int:
        """The bytes of all its objects, as stored."""
        return sum(stored.size for stored in self.objects.values())

    def missing(self, layout: Layout) -> list[Part]:
        """The promised objects that are not there."""
        return [part for part in layout.promised_objects(self.identity) if part not in self.objects]


@dataclass(slots=True)
class StoreListing:
    """Lists a store, a partition at a time."""

    store: ObjectStore
    layout: Layout
    selection: Selection
    objects: int = 0
    """Objects that were listed."""
    unexplained: int = 0
    """How many objects have keys that the layout does not know."""
    others: set[TopicIdPartition] = field(default_factory=set)
    """Partitions that are not selected."""

    def partitions(self) -> Iterator[tuple[TopicIdPartition, list[StoredSegment]]]:
        """Every partition with its segments, by start offset. Keys come sorted, so a partition's are together."""
        for partition, rows in groupby(self._explained(), key=itemgetter(0)):
            by_segment: dict[str, tuple[ExplainedKey, dict[Part, StoredObject]]] = {}
            for _, explained, stored in rows:
                by_segment.setdefault(explained.segment_id, (explained, {}))[1][explained.part] = stored
            segments = [StoredSegment(explained, objects) for explained, objects in by_segment.values()]
            yield partition, sorted(segments, key=lambda one: (one.identity.start_offset, one.identity.segment_id))

    def _explained(self) -> Iterator[tuple[TopicIdPartition, ExplainedKey, StoredObject]]:
        for stored in list_unreserved(self.store):
            self.objects += 1
            explained = self.layout.explain(stored.key)
            if explained is None:
                self.unexplained += 1
            elif explained.start_offset == UNNAMED_OFFSET:
                message = f"The keys of layout {self.layout.name} do not name the offset at which a segment starts."
                raise TieredctlError(ErrorCode.USAGE, message, hint="Recover the metadata from a broker's folder.")
            elif self.selection.has(partition := explained.topic_id_partition):
                yield partition, explained, stored
            else:
                self.others.add(partition)
