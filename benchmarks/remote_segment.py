"""Puts a generated segment where LocalTieredStorage would have it, with the metadata that promises it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.segment_generator import GeneratedSegment
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition

_PARTITION = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "bench", 0)
_SEGMENT_ID = "AQIDBAUGBwgJCgsMDQ4PEA"
_EVENT_TIME_MS = 1_700_000_000_000


@dataclass(frozen=True)
class RemoteSegment:
    """The folders to verify, and the log in the store."""

    log_dir: Path
    store: Path
    log: Path
    bytes: int


def remote_segment(folder: Path, segment: GeneratedSegment) -> RemoteSegment:
    """Links the segment's files into a store beside a log directory with its two events."""
    store = folder / "kafka-tiered-storage"
    objects = store / f"{_PARTITION.topic}-{_PARTITION.partition}-{_PARTITION.topic_id}"
    objects.mkdir(parents=True)
    stem = f"{segment.base_offset:020d}-{_SEGMENT_ID}"
    for file, suffix in (
        (segment.log, ".log"),
        (segment.offset_index, ".index"),
        (segment.time_index, ".timeindex"),
        (segment.producer_snapshot, ".snapshot"),
        (segment.leader_epochs, ".leader_epoch_checkpoint"),
    ):
        os.link(file, objects / (stem + suffix))
    size = segment.log.stat().st_size
    started = RemoteLogSegmentMetadata(
        topic_id_partition=_PARTITION,
        segment_id=_SEGMENT_ID,
        start_offset=segment.base_offset,
        end_offset=segment.next_offset - 1,
        author=1,
        max_timestamp_ms=(1 << 62),
        event_timestamp_ms=_EVENT_TIME_MS,
        segment_leader_epochs=((0, segment.base_offset),),
        segment_size_in_bytes=size,
        txn_idx_empty=True,
    )
    finished = RemoteLogSegmentMetadataUpdate(
        topic_id_partition=_PARTITION,
        segment_id=_SEGMENT_ID,
        author=1,
        event_timestamp_ms=_EVENT_TIME_MS,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )
    log_dir = folder / "data"
    partition = log_dir / "__remote_log_metadata-0"
    partition.mkdir(parents=True)
    events: list[MetadataEvent] = [started, finished]
    batches = b"".join(_batch(offset, event) for offset, event in enumerate(events))
    (partition / f"{0:020d}.log").write_bytes(batches)
    return RemoteSegment(log_dir, store, objects / (stem + ".log"), size)


def _batch(offset: int, event: MetadataEvent) -> bytes:
    return encode_batch([Record(offset, _EVENT_TIME_MS, None, encode_event(event))], partition_leader_epoch=0)
