"""Puts generated segments where LocalTieredStorage would have them, with the metadata that promises them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rigs.segment_generator import GeneratedSegment
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.formats.segment_parts import time_index_entries
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text

BENCH_TOPIC, _TOPIC_ID = "bench", "ABEiM0RVZneImaq7zN3u_w"
_EVENT_TIME_MS = 1_700_000_000_000
_ETAG = "user.etag"
"""Where versitygw keeps an object's."""


@dataclass(frozen=True)
class RemoteSegments:
    """The folders to verify, the logs in the store, and their total size in bytes."""

    log_dir: Path
    store: Path
    logs: list[Path]
    bytes: int


def remote_segments(folder: Path, segments: Sequence[GeneratedSegment]) -> RemoteSegments:
    """Links each segment's files into a store, as those of a partition of its own, and writes a log directory with the
    events that promise them. A segment may be given more than once."""
    store, partition = folder / "kafka-tiered-storage", folder / "data" / "__remote_log_metadata-0"
    partition.mkdir(parents=True)
    events: list[MetadataEvent] = []
    logs = []
    for number, segment in enumerate(segments):
        identity = TopicIdPartition(_TOPIC_ID, BENCH_TOPIC, number)
        segment_id = uuid_text(number.to_bytes(16))
        logs.append(_link(store, identity, segment_id, segment))
        events += _events(identity, segment_id, segment)
    batches = b"".join(_batch(offset, event) for offset, event in enumerate(events))
    (partition / f"{0:020d}.log").write_bytes(batches)
    return RemoteSegments(partition.parent, store, logs, sum(log.stat().st_size for log in logs))


def _link(store: Path, identity: TopicIdPartition, segment_id: str, segment: GeneratedSegment) -> Path:
    objects = store / f"{identity.topic}-{identity.partition}-{identity.topic_id}"
    objects.mkdir(parents=True)
    stem = f"{segment.base_offset:020d}-{segment_id}"
    for file, suffix in (
        (segment.log, ".log"),
        (segment.offset_index, ".index"),
        (segment.time_index, ".timeindex"),
        (segment.producer_snapshot, ".snapshot"),
        (segment.leader_epochs, ".leader_epoch_checkpoint"),
    ):
        os.setxattr(file, _ETAG, b"0")
        os.link(file, objects / (stem + suffix))
    return objects / f"{stem}.log"


def _events(identity: TopicIdPartition, segment_id: str, segment: GeneratedSegment) -> list[MetadataEvent]:
    return [
        RemoteLogSegmentMetadata(
            topic_id_partition=identity,
            segment_id=segment_id,
            start_offset=segment.base_offset,
            end_offset=segment.next_offset - 1,
            author=1,
            max_timestamp_ms=int(time_index_entries(segment.time_index.read_bytes()).timestamps[-1]),
            event_timestamp_ms=_EVENT_TIME_MS,
            segment_leader_epochs=((0, segment.base_offset),),
            segment_size_in_bytes=segment.log.stat().st_size,
            txn_idx_empty=True,
        ),
        RemoteLogSegmentMetadataUpdate(
            topic_id_partition=identity,
            segment_id=segment_id,
            author=1,
            event_timestamp_ms=_EVENT_TIME_MS,
            state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
        ),
    ]


def _batch(offset: int, event: MetadataEvent) -> bytes:
    return encode_batch([Record(offset, _EVENT_TIME_MS, None, encode_event(event))], partition_leader_epoch=0)
