"""A partition whose remote storage is one segment in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.faults.cluster import LAYOUT, key_of
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.layout import Part
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import ALL_RECORDS, RecordRequest
from tieredctl.records.served_spans import ServedSpan
from tieredctl.rlmm.cache import NOTHING_DELETED
from tieredctl.storage.memory import MemoryStore

PARTITION = TopicIdPartition("AAAAAAAAAAAAAAAAAAAABQ", "orders", 0)


@dataclass(frozen=True)
class OneSegment:
    """What is stored of it."""

    metadata: RemoteLogSegmentMetadata
    parts: Mapping[Part, bytes] = field(default_factory=dict)

    def with_part(self, part: Part, data: bytes) -> OneSegment:
        return replace(self, parts={**self.parts, part: data})

    def without_part(self, part: Part) -> OneSegment:
        return replace(self, parts={name: data for name, data in self.parts.items() if name is not part})

    def store(self) -> MemoryStore:
        store = MemoryStore()
        for part, data in self.parts.items():
            store.put(key_of(self.metadata, part), data)
        return store

    def read(self, request: RecordRequest = ALL_RECORDS, store: MemoryStore | None = None) -> PartitionRecords:
        span = ServedSpan(self.metadata, self.metadata.start_offset, self.metadata.end_offset)
        remote = RemotePartition(self.metadata.topic_id_partition, [span], None, NOTHING_DELETED)
        return PartitionRecords(remote, self.store() if store is None else store, LAYOUT, request)


def of_log(log: bytes, first: int, last: int, leader_epoch: int = 3) -> OneSegment:
    """A log without indexes."""
    metadata = RemoteLogSegmentMetadata(
        topic_id_partition=PARTITION,
        segment_id="AAAAAAAAAAAAAAAAAAAABg",
        start_offset=first,
        end_offset=last,
        author=1,
        max_timestamp_ms=1 << 50,
        event_timestamp_ms=0,
        segment_leader_epochs=((leader_epoch, first),),
        segment_size_in_bytes=len(log),
    )
    checkpoint = encode_leader_epoch_checkpoint([EpochEntry(leader_epoch, first)])
    return OneSegment(metadata, {Part.LOG: log, Part.LEADER_EPOCH: checkpoint})
