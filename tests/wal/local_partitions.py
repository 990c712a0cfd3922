"""Partitions in a broker's log directory, made of batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.meta_properties import MetaProperties, encode_meta_properties
from tieredctl.formats.partition_metadata import PartitionMetadata, encode_partition_metadata
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header
from tieredctl.model.ids import TopicIdPartition

ORDERS = [TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "orders", number) for number in range(3)]
CLUSTER_ID = "jN0vM9WEQ9yDgLgdYvRvMg"
OTHER = TopicIdPartition("EBAPDg0MCwoJCAcGBQQDAg", "other", 0)


def batch(offset: int, records: int = 1, epoch: int = 0, size: int = 20) -> bytes:
    """A batch of the leader of an epoch, its records of about so many bytes."""
    made = [Record(offset + number, 1_000 + offset, b"k", b"v" * size) for number in range(records)]
    return encode_batch(made, partition_leader_epoch=epoch)


def write_partition(
    log_dir: Path,
    partition: TopicIdPartition,
    *segments: Sequence[bytes],
    base: int = 0,
    cluster_id: str = CLUSTER_ID,
) -> Path:
    """A partition's folder; the first of its log files begins at `base`, and each has one offset for each batch."""
    folder = log_dir / f"{partition.topic}-{partition.partition}"
    folder.mkdir(parents=True)
    for batches in segments:
        (folder / f"{base:020d}.log").write_bytes(b"".join(batches))
        base += len(batches)
    headers = [read_batch_header(data, 0, len(data)) for batches in segments for data in batches]
    starts = {one.partition_leader_epoch: one.base_offset for one in reversed(headers)}
    entries = [EpochEntry(*entry) for entry in sorted(starts.items())]
    metadata = PartitionMetadata(0, partition.topic_id)
    (folder / "partition.metadata").write_bytes(encode_partition_metadata(metadata))
    (folder / "leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint(entries))
    properties = MetaProperties(1, cluster_id, 7, None)
    (log_dir / "meta.properties").write_bytes(encode_meta_properties(properties))
    return folder
