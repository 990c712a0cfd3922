"""Metadata topics made for a test: events in short, and the log directories that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tieredctl.formats.compression import Codec
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_bytes, uuid_text

TOPIC_ID = "ABEiM0RVZneImaq7zN3u_w"
PARTITION = TopicIdPartition(TOPIC_ID, "t", 0)
FIRST_TIMESTAMP_MS = 1_700_000_000_000
"""Of the first record of a log; each other one is a second later."""

COPIED, DELETING, DELETED = (
    RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    RemoteLogSegmentState.DELETE_SEGMENT_STARTED,
    RemoteLogSegmentState.DELETE_SEGMENT_FINISHED,
)


def segment_id(number: int) -> str:
    return uuid_text(number.to_bytes(16))


def started(
    number: int,
    start: int,
    end: int,
    epochs: Mapping[int, int] | None = None,
    *,
    partition: TopicIdPartition = PARTITION,
    **fields: Any,
) -> RemoteLogSegmentMetadata:
    """A segment whose copy begins; by default it has epoch 0 alone."""
    return RemoteLogSegmentMetadata(
        **{
            "topic_id_partition": partition,
            "segment_id": segment_id(number),
            "start_offset": start,
            "end_offset": end,
            "author": 1,
            "max_timestamp_ms": FIRST_TIMESTAMP_MS,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            "segment_leader_epochs": tuple((epochs or {0: start}).items()),
            "segment_size_in_bytes": 1000,
            **fields,
        }
    )


def updated(
    number: int, state: RemoteLogSegmentState, *, partition: TopicIdPartition = PARTITION, **fields: Any
) -> RemoteLogSegmentMetadataUpdate:
    """A segment's next state."""
    return RemoteLogSegmentMetadataUpdate(
        **{
            "topic_id_partition": partition,
            "segment_id": segment_id(number),
            "author": 1,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            "state": state,
            **fields,
        }
    )


def partition_delete(
    state: RemotePartitionDeleteState, *, partition: TopicIdPartition = PARTITION
) -> RemotePartitionDeleteMetadata:
    return RemotePartitionDeleteMetadata(
        topic_id_partition=partition, author=1, event_timestamp_ms=FIRST_TIMESTAMP_MS, state=state
    )


def copied(
    number: int, start: int, end: int, epochs: Mapping[int, int] | None = None, **fields: Any
) -> list[MetadataEvent]:
    """A copy that began and ended."""
    partition = fields.get("partition", PARTITION)
    return [started(number, start, end, epochs, **fields), updated(number, COPIED, partition=partition)]


def metadata_batches(
    values: Sequence[MetadataEvent | bytes | None],
    *,
    first_offset: int = 0,
    records_per_batch: int = 1,
    codec: Codec = Codec.NONE,
) -> list[bytes]:
    """Record batches that hold events, bytes that are none, and tombstones."""
    records = [
        Record(offset, FIRST_TIMESTAMP_MS + 1000 * offset, None, _value(value))
        for offset, value in enumerate(values, first_offset)
    ]
    starts = range(0, len(records), records_per_batch)
    return [encode_batch(records[start : start + records_per_batch], codec=codec) for start in starts]


def segment_key(number: int, state: RemoteLogSegmentState, partition: TopicIdPartition = PARTITION) -> bytes:
    """KIP-1266's key of one state of one segment."""
    place = uuid_bytes(partition.topic_id) + partition.partition.to_bytes(4)
    return place + number.to_bytes(16) + bytes([state])


def text_key(end_offset: int, *, is_update: bool = False, partition: TopicIdPartition = PARTITION) -> bytes:
    """The key of an event in KIP-1266's other draft."""
    place = f"{partition.topic_id}:{partition.topic}:{partition.partition}:{end_offset}:0"
    return f"{place}:UPDATE".encode() if is_update else place.encode()


def write_records(log_dir: Path, *records: Record, metadata_partition: int = 0) -> Path:
    """A log directory whose one metadata partition holds these records, one a batch."""
    return write_log(log_dir, metadata_partition, [encode_batch([record]) for record in records])


def event_records(events: Mapping[int, MetadataEvent]) -> list[Record]:
    """What compaction left: events by offset, each with the key of its segment's state."""
    return [
        Record(offset, FIRST_TIMESTAMP_MS + 1000 * offset, _key(event), encode_event(event))
        for offset, event in events.items()
    ]


def tombstone(offset: int, key: bytes | None) -> Record:
    return Record(offset, FIRST_TIMESTAMP_MS + 1000 * offset, key, None)


def write_log(log_dir: Path, metadata_partition: int, batches: Sequence[bytes], *, first_offset: int = 0) -> Path:
    """A segment file of a metadata partition in a broker's log directory: its path."""
    folder = log_dir / f"__remote_log_metadata-{metadata_partition}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{first_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def write_events(log_dir: Path, *events: MetadataEvent | bytes | None, metadata_partition: int = 0) -> Path:
    """A log directory whose one metadata partition holds these events, one a batch, as brokers write them."""
    return write_log(log_dir, metadata_partition, metadata_batches(events))


def _key(event: MetadataEvent) -> bytes:
    if isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate):
        number = int.from_bytes(uuid_bytes(event.segment_id))
        return segment_key(number, event.state, event.topic_id_partition)
    return b"another"


def _value(value: MetadataEvent | bytes | None) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else encode_event(value)


def events_of(data: Path) -> list[bytes]:
    """All values of the metadata topic, those of each metadata partition in order."""
    source = LogDirectories([data])
    chunks = (chunk for number in source.metadata_partitions() for chunk in source.chunks(number))
    return [record.value for chunk in chunks for record in chunk.records() if record.value is not None]
