"""Sound segments of any shape, written as a broker would, with all files beside them.

Follows Kafka's LogSegment: 4.0 and later index each batch, releases before index each append, of which a follower's
may have many batches.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.compression import Codec
from tieredctl.formats.indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    encode_offset_index,
    encode_time_index,
    encode_transaction_index,
)
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot
from tieredctl.formats.record_batches import (
    Attributes,
    BatchHeader,
    ControlType,
    Record,
    encode_batch,
    read_batch_header,
)
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ports.layout import Part

FIRST_TIMESTAMP = 1_700_000_000_000
PARTITION = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "made", 0)
_COORDINATOR_EPOCH = 9


class Indexing(Enum):
    """What makes an entry of an index."""

    BY_BATCH = "Kafka 4.0 and later"
    BY_APPEND = "Kafka 3.9 and earlier"


@dataclass(frozen=True)
class WrittenBatch:
    """A batch as it lies in the log: `position` is its first byte, `end` the one after its last."""

    position: int
    header: BatchHeader

    @property
    def end(self) -> int:
        return self.position + self.header.size


@dataclass(frozen=True)
class WrittenSegment:
    """A segment's metadata in COPY_SEGMENT_FINISHED, the bytes of its parts, and the batches of its log."""

    metadata: RemoteLogSegmentMetadata
    parts: dict[Part, bytes]
    batches: tuple[WrittenBatch, ...]

    @property
    def records(self) -> int:
        return sum(batch.header.records_count for batch in self.batches)


@dataclass
class _Producer:
    entry: ProducerEntry
    transaction_begin: int | None = None


@dataclass
class SegmentWriter:
    """Appends batches, and closes the segment as a broker does that rolls it."""

    start_offset: int = 0
    indexing: Indexing = Indexing.BY_BATCH
    leader_epoch: int = 0
    index_interval_bytes: int = 4_096
    seed: int = 1
    partition: TopicIdPartition = PARTITION
    epochs_before: tuple[tuple[int, int], ...] = ()
    """Leader epochs that ended before this segment began."""
    next_offset: int = field(init=False)
    timestamp: int = FIRST_TIMESTAMP

    def __post_init__(self) -> None:
        self.next_offset = self.start_offset
        self._random = random.Random(self.seed)
        self._log = bytearray()
        self._batches: list[WrittenBatch] = []
        self._epochs: list[tuple[int, int]] = [(self.leader_epoch, self.start_offset)]
        self._producers: dict[int, _Producer] = {}
        self._aborted: list[AbortedTransaction] = []
        self._offset_entries: list[OffsetIndexEntry] = []
        self._time_entries: list[TimeIndexEntry] = []
        self._bytes_since_entry = 0
        self._latest = (-1, 0)

    def data(
        self, records: int = 1, value_bytes: int = 100, *, producer: int | None = None, codec: Codec = Codec.NONE
    ) -> bytes:
        """A batch of the next offsets; with a producer, a part of its transaction."""
        written = []
        for offset in range(self.next_offset, self.next_offset + records):
            written.append(Record(offset, self.timestamp, None, self._random.randbytes(value_bytes)))
            self.timestamp += 1
        self.next_offset += records
        if producer is None:
            return encode_batch(written, partition_leader_epoch=self.leader_epoch, codec=codec)
        state = self._producers.setdefault(producer, _Producer(ProducerEntry(producer, 0, -1, -1, 0, 0, -1, -1)))
        if state.transaction_begin is None:
            state.transaction_begin = written[0].offset
        sequence = state.entry.last_sequence + 1
        state.entry = state.entry._replace(
            last_sequence=sequence + records - 1,
            last_offset=written[-1].offset,
            offset_delta=records - 1,
            timestamp=written[-1].timestamp,
        )
        return encode_batch(
            written,
            partition_leader_epoch=self.leader_epoch,
            codec=codec,
            attributes=Attributes.TRANSACTIONAL,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
        )

    def marker(self, producer: int, control_type: ControlType) -> bytes:
        """The end of a producer's transaction, which the transaction index remembers if it is an abort."""
        state = self._producers[producer]
        offset, first = self.next_offset, state.transaction_begin
        state.transaction_begin = None
        state.entry = state.entry._replace(timestamp=self.timestamp, coordinator_epoch=_COORDINATOR_EPOCH)
        if control_type is ControlType.ABORT and first is not None:
            begun = [
                state.transaction_begin for state in self._producers.values() if state.transaction_begin is not None
            ]
            self._aborted.append(AbortedTransaction(producer, first, offset, min(begun, default=offset + 1)))
        key = b"\0\0" + int(control_type).to_bytes(2)
        record = Record(offset, self.timestamp, key, b"\0\0" + _COORDINATOR_EPOCH.to_bytes(4))
        self.next_offset += 1
        return encode_batch(
            [record],
            partition_leader_epoch=self.leader_epoch,
            attributes=Attributes.TRANSACTIONAL | Attributes.CONTROL,
            producer_id=producer,
            producer_epoch=0,
        )

    def know_producers_of(self, before: SegmentWriter) -> None:
        """The snapshot has those too that wrote in the segment before, as they are now."""
        self._producers = before._producers

    def begin_epoch(self, leader_epoch: int) -> None:
        """Batches from here on are a later leader's."""
        self.leader_epoch = leader_epoch
        self._epochs.append((leader_epoch, self.next_offset))

    def restart(self) -> None:
        """A broker that is stopped cleanly adds a time index entry, and begins to count the interval again."""
        self._add_time_entry()
        self._bytes_since_entry = 0

    def append(self, *batches: bytes) -> None:
        """One append: a leader's has one batch, a follower's as many as it fetched."""
        position = len(self._log)
        added = []
        for batch in batches:
            added.append(WrittenBatch(len(self._log), read_batch_header(batch, 0, len(batch))))
            self._log += batch
        self._batches += added
        if self.indexing is Indexing.BY_BATCH:
            for one in added:
                self._index([one], one.position)
        else:
            self._index(added, position)

    def _index(self, appended: Sequence[WrittenBatch], position: int) -> None:
        for batch in appended:
            if batch.header.max_timestamp > self._latest[0]:
                self._latest = (batch.header.max_timestamp, batch.header.last_offset)
        if self._bytes_since_entry > self.index_interval_bytes:
            self._offset_entries.append(OffsetIndexEntry(appended[-1].header.last_offset - self.start_offset, position))
            self._add_time_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += appended[-1].end - position

    def _add_time_entry(self) -> None:
        timestamp, offset = self._latest
        if not self._time_entries or timestamp > self._time_entries[-1].timestamp:
            self._time_entries.append(TimeIndexEntry(timestamp, offset - self.start_offset))

    def close(self, segment_id: str | None = None, *, txn_idx_empty: bool | None = None) -> WrittenSegment:
        """The segment as it is copied. Kafka before 4.0 never says that the transaction index is empty."""
        self._add_time_entry()
        empty = not self._aborted and self.indexing is Indexing.BY_BATCH
        producers = [
            state.entry._replace(
                current_txn_first_offset=-1 if state.transaction_begin is None else state.transaction_begin
            )
            for state in self._producers.values()
        ]
        lineage = [*self.epochs_before, *self._epochs]
        parts = {
            Part.LOG: bytes(self._log),
            Part.OFFSET_INDEX: encode_offset_index(self._offset_entries),
            Part.TIME_INDEX: encode_time_index(self._time_entries),
            Part.PRODUCER_SNAPSHOT: encode_producer_snapshot(producers),
            Part.LEADER_EPOCH: encode_leader_epoch_checkpoint(EpochEntry(*entry) for entry in lineage),
        }
        if self._aborted:
            parts[Part.TRANSACTION_INDEX] = encode_transaction_index(self._aborted)
        metadata = RemoteLogSegmentMetadata(
            topic_id_partition=self.partition,
            segment_id=segment_id or uuid_text(random.Random(f"{self.seed} {self.start_offset}").randbytes(16)),
            start_offset=self.start_offset,
            end_offset=self.next_offset - 1,
            author=1,
            max_timestamp_ms=self._latest[0],
            event_timestamp_ms=self.timestamp,
            segment_leader_epochs=tuple(self._epochs),
            segment_size_in_bytes=len(self._log),
            state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
            txn_idx_empty=empty if txn_idx_empty is None else txn_idx_empty,
        )
        return WrittenSegment(metadata, parts, tuple(self._batches))
