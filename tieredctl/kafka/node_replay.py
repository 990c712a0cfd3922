"""Replays what one node has of the metadata log: its latest snapshot, and the log after that."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.errors import DecodeError
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.kafka.metadata_log import (
    MetadataBatch,
    MetadataLog,
    SnapshotFile,
    logged_records,
    snapshot_records,
)
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.kraft.replica import LastBatch, SnapshotId, disagreements


class NodeReplay:
    """A replay in two steps: after the first, the image has what was certainly committed."""

    def __init__(self, log: MetadataLog) -> None:
        self.replay = MetadataReplay()
        self.snapshot: SnapshotId | None = None
        self.snapshot_bytes = 0
        self.log_bytes = 0
        """The bytes of the log's batches after the snapshot."""
        self._log = log
        if log.snapshots:
            latest = log.snapshots[-1]
            self.snapshot, self.snapshot_bytes = SnapshotId(latest.epoch, latest.end_offset), latest.size

    def load_snapshot(self) -> None:
        """The latest snapshot, if there is one.

        Raises DecodeError where it is not whole and sound, or records between it and the log are missing; OSError.
        """
        if self._log.snapshots:
            latest = self._log.snapshots[-1]
            self.replay.load_snapshot(records_of_one_epoch(latest), latest.end_offset)
        if self._log.segments and self._log.start_offset > self.replay.image.end_offset:
            start = self._log.start_offset
            raise DecodeError(f"the log begins at offset {start}, after what the snapshots contain", 0)

    def load_log(self) -> None:
        """The log from there on.

        Raises DecodeError where it is not whole and sound, ends before the snapshot, or contradicts it; OSError.
        """
        self.replay.load_log(self._following())

    def _following(self) -> Iterator[KraftLogRecord]:
        end, last_contained_ms = self.replay.image.end_offset, self.replay.image.as_of_ms
        epoch = 0 if self.snapshot is None else self.snapshot.epoch
        meets = self._log.start_offset >= end
        for batch in self._log.batches(max(end - 1, 0)):
            if batch.header.base_offset < end:
                self._demand_agreement(batch, None if last_contained_ms < 0 else last_contained_ms)
                meets = True
                continue
            if batch.header.partition_leader_epoch < epoch:
                reason = f"epoch {batch.header.partition_leader_epoch} follows epoch {epoch}"
                raise DecodeError(reason, batch.position)
            epoch = batch.header.partition_leader_epoch
            self.log_bytes += batch.header.size
            yield from logged_records(batch)
        if self._log.segments and not meets:
            raise DecodeError(f"the log ends before snapshot {self.snapshot}, and a node empties it when it starts", 0)

    def _demand_agreement(self, batch: MetadataBatch, last_contained_ms: int | None) -> None:
        assert self.snapshot is not None
        header = batch.header
        last = LastBatch(header.last_offset, header.partition_leader_epoch, header.max_timestamp)
        for reason in disagreements(self.snapshot, last_contained_ms, last):
            raise DecodeError(f"snapshot {self.snapshot} is not of the log beside it: {reason}", batch.position)


def records_of_one_epoch(snapshot: SnapshotFile) -> Iterator[KraftLogRecord]:
    """A snapshot's records. Raises as `snapshot_records` does, and DecodeError where they are of another epoch than its
    name."""
    for record in snapshot_records(snapshot):
        if record.epoch != snapshot.epoch:
            reason = f"snapshot {snapshot.path.name} has records of epoch {record.epoch}"
            raise DecodeError(reason, record.batch_position)
        yield record
