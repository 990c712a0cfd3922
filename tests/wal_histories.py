"""Events of `__remote_wal_log_metadata` in short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tieredctl_proposals.model.wal_events import (
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    RemoteWalLogSegmentMetadata,
    RemoteWalLogSegmentMetadataUpdate,
)

from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, segment_id
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition

OTHER = TopicIdPartition("EBAPDg0MCwoJCAcGBQQDAg", "other", 3)
COMBINED = segment_id(1 << 64)


def entry(number: int, start: int = -1, end: int = -1, partition: TopicIdPartition = PARTITION) -> Any:
    return RemoteLogSegmentMetadataEntry(
        topic_id_partition=partition,
        segment_id=segment_id(number),
        start_file_position=start,
        end_file_position=end,
    )


def wal_started(
    number: int, start: int, end: int, *, leader_epoch: int = 0, partition: TopicIdPartition = PARTITION, **fields: Any
) -> RemoteWalLogSegmentMetadata:
    """A segment whose upload begins; by default all of its records are of the leader's own epoch."""
    return RemoteWalLogSegmentMetadata(
        **{
            "topic_id_partition": partition,
            "segment_id": segment_id(number),
            "start_offset": start,
            "end_offset": end,
            "broker_id": 1,
            "leader_epoch": leader_epoch,
            "max_timestamp_ms": FIRST_TIMESTAMP_MS,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            "segment_leader_epochs": ((max(leader_epoch, 0), start),),
            "segment_size_in_bytes": 100,
            "combined_segment_id": COMBINED,
            "combined_coordinator_partition": 0,
            **fields,
        }
    )


def wal_updated(
    number: int,
    state: RemoteLogSegmentState,
    *,
    leader_epoch: int = 0,
    partition: TopicIdPartition = PARTITION,
    **fields: Any,
) -> RemoteWalLogSegmentMetadataUpdate:
    """A segment's next state; by default in bytes 0 to 99."""
    return RemoteWalLogSegmentMetadataUpdate(
        **{
            "topic_id_partition": partition,
            "segment_id": segment_id(number),
            "broker_id": 1,
            "leader_epoch": leader_epoch,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            "combined_segment_id": COMBINED,
            "combined_coordinator_partition": 0,
            "state": state,
            "start_file_position": 0,
            "end_file_position": 99,
            **fields,
        }
    )


def combined_started(
    entries: Sequence[RemoteLogSegmentMetadataEntry], combined_segment_id: str = COMBINED, **fields: Any
) -> RemoteWalCombinedLogSegmentMetadata:
    return RemoteWalCombinedLogSegmentMetadata(
        **{
            "combined_segment_id": combined_segment_id,
            "entries": tuple(entries),
            "broker_id": 1,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            **fields,
        }
    )


def combined_updated(
    entries: Sequence[RemoteLogSegmentMetadataEntry],
    state: RemoteLogSegmentState,
    combined_segment_id: str = COMBINED,
    **fields: Any,
) -> RemoteWalCombinedLogSegmentMetadataUpdate:
    return RemoteWalCombinedLogSegmentMetadataUpdate(
        **{
            "combined_segment_id": combined_segment_id,
            "entries": tuple(entries),
            "broker_id": 1,
            "event_timestamp_ms": FIRST_TIMESTAMP_MS,
            "state": state,
            **fields,
        }
    )
