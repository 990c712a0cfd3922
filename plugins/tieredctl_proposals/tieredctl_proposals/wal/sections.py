"""What `RLMWalTask` puts into the queue: consecutive batches of one partition, and what they are (KIP-1176)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns, joined_headers
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.windows import Ints
from tieredctl.model.ids import ZERO_UUID, TopicIdPartition
from tieredctl_proposals.model.wal_events import RemoteWalLogSegmentMetadata

_NO_PARTITION = -1


class QueueItem(NamedTuple):
    """The proposal's `MetaQueueItem`. What combined object the batches go into is not decided yet."""

    metadata: RemoteWalLogSegmentMetadata
    records: bytes

    def in_object(self, combined_segment_id: str, coordinator_partition: int) -> RemoteWalLogSegmentMetadata:
        """The segment's metadata once its object is decided (`createWithUpdate` in the proposal)."""
        return replace(
            self.metadata,
            combined_segment_id=combined_segment_id,
            combined_coordinator_partition=coordinator_partition,
        )


def queue_item(
    partition: TopicIdPartition,
    segment_id: str,
    records: bytes,
    *,
    broker_id: int,
    leader_epoch: int,
    event_timestamp_ms: int,
) -> QueueItem:
    """Batches as they are in the leader's log, one after another; `leader_epoch` is the leader's own.

    Raises DecodeError, with the position, unless all are sound and their offsets and leader epochs rise.
    """
    positions, headers = _sound_batches(records)
    bases = headers["baseOffset"].astype(np.int64)
    lasts = bases + headers["lastOffsetDelta"]
    epochs = headers["partitionLeaderEpoch"].astype(np.int64)
    _demand(positions, (bases >= 0) & (lasts >= bases), "a batch with impossible offsets")
    _demand(positions[1:], bases[1:] > lasts[:-1], "a batch that does not follow the one before")
    _demand(positions, epochs >= 0, "a batch without a leader epoch")
    _demand(positions[1:], epochs[1:] >= epochs[:-1], "a batch of an earlier leader than the one before")
    begins = np.flatnonzero(np.diff(epochs, prepend=-1))
    metadata = RemoteWalLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=segment_id,
        start_offset=int(bases[0]),
        end_offset=int(lasts[-1]),
        broker_id=broker_id,
        leader_epoch=leader_epoch,
        max_timestamp_ms=int(headers["maxTimestamp"].max()),
        event_timestamp_ms=event_timestamp_ms,
        segment_leader_epochs=tuple(zip(epochs[begins].tolist(), bases[begins].tolist(), strict=True)),
        segment_size_in_bytes=len(records),
        combined_segment_id=ZERO_UUID,
        combined_coordinator_partition=_NO_PARTITION,
    )
    return QueueItem(metadata, records)


def _sound_batches(records: bytes) -> tuple[Ints, HeaderColumns]:
    positions, parts = [], []
    for block in scan_log([records], len(records), AsColumns()):
        if isinstance(block, Damage):
            raise DecodeError(block.reason, block.position)
        positions.append(np.asarray(block.positions, np.int64) + block.file_position)
        parts.append(block.headers)
    if not parts:
        raise DecodeError("no batches", 0)
    return np.concatenate(positions), joined_headers(parts)


def _demand(positions: Ints, holds: np.ndarray[tuple[int], np.dtype[np.bool_]], otherwise: str) -> None:
    if not holds.all():
        raise DecodeError(otherwise, int(positions[~holds][0]))
