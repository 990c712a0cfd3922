"""Reads what a node has of the metadata log."""

from __future__ import annotations

from pathlib import Path

from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.kraft.replica import EpochStart, Replica, SnapshotId
from tieredctl.wiring.offline_cluster import in_sentences


def read_replica(folder: Path) -> Replica:
    """The replica in a `__cluster_metadata-0`, as a node makes it of these files when it starts. Reads the whole log.

    Raises TieredctlError where that is damaged: where epochs begin is then unknown.
    """
    with in_sentences(folder):
        log = MetadataLog.opened(folder)
        epochs: list[EpochStart] = []
        end_offset = log.start_offset
        for batch in log.batches():
            epoch = batch.header.partition_leader_epoch
            if not epochs or epochs[-1].epoch < epoch:
                epochs.append(EpochStart(epoch, batch.header.base_offset))
            end_offset = batch.header.last_offset + 1
    snapshots = [SnapshotId(one.epoch, one.end_offset) for one in log.snapshots]
    return Replica(log.start_offset, end_offset, epochs, snapshots).as_started()
