"""Replays what one node has of the metadata log: its latest snapshot, and the log after that.

Whether a node's snapshots are what its log says: a snapshot and the log after it give the next snapshot.

The bytes of a snapshot prove nothing about what they say: an id in it can be changed, and its CRC made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import DecodeError
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.kafka.metadata_log import (
    MetadataBatch,
    MetadataLog,
    SnapshotFile,
    logged_records,
    snapshot_records,
)
from tieredctl.kraft.difference import Change, changes
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.kraft.replica import LastBatch, SnapshotId, disagreements


class NodeReplay:
    """A replay in two steps: after the first, the image has what was certainly committed."""

    def __init__(self, log: MetadataLog) -> None:
        self.replay = MetadataReplay()
        self.snapshot: SnapshotId | None = None
        self.snapshot_bytes = 0
        self.log_bytes = 0
        """Of the log's batches after the snapshot."""
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


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A snapshot that is another cluster than the log gives up to its end."""

    snapshot: SnapshotFile
    begun_with: SnapshotFile | None
    """The earlier snapshot that the log was replayed on; None for a log from its first record on."""
    changes: Sequence[Change]
    """From what the log gives to what the snapshot has; at least one."""

    @property
    def words(self) -> str:
        """For people: what differs first, and by what."""
        witness = "the log" if self.begun_with is None else f"{self.begun_with.path.name} and the log after it"
        more = f", and {len(self.changes) - 1} more" if len(self.changes) > 1 else ""
        return f"{witness} gives another cluster up to its end: {self.changes[0].words}{more}"


@dataclass(slots=True)
class SnapshotHistory:
    """The snapshots that were held against the log before their end."""

    confirmed: list[SnapshotFile] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    _replay: MetadataReplay = field(default_factory=MetadataReplay)

    @classmethod
    def of(cls, log: MetadataLog, until: int | None = None) -> SnapshotHistory:
        """Replays the log once, as far as it is sound, on the earliest snapshot that reaches it or from offset 0 on, up
        to the end offset `until`, the end of the log by default. Raises OSError.

        In neither list is what the log cannot tell: the first snapshot of a log that begins later, one that does not
        end with a batch of the log, and any of which some records are not understood, before it or in it.
        """
        history = cls()
        held = sorted(log.snapshots, key=lambda one: (one.end_offset, one.epoch))
        held = [one for one in held if until is None or one.end_offset <= until]
        begun_with = None if log.start_offset == 0 else history._begin(log, held)
        if log.segments and (begun_with is not None or log.start_offset == 0):
            after = [one for one in held if begun_with is None or one.end_offset > begun_with.end_offset]
            history._hold(log, begun_with, [one for one in after if one.end_offset > 0])
        return history

    def _begin(self, log: MetadataLog, held: Sequence[SnapshotFile]) -> SnapshotFile | None:
        """The first sound one of the snapshots that reach the log, loaded."""
        for one in held:
            image = _image(one) if one.end_offset >= log.start_offset else None
            if image is not None:
                self._replay.image = image
                return one
        return None

    def _hold(self, log: MetadataLog, begun_with: SnapshotFile | None, held: Sequence[SnapshotFile]) -> None:
        waiting = list(held)
        try:
            for end_offset in self._ends(log, self._replay.image.end_offset):
                while waiting and waiting[0].end_offset <= end_offset:
                    one = waiting.pop(0)
                    if one.end_offset == end_offset:
                        self._compare(one, begun_with)
                if not waiting:
                    return
        except DecodeError:
            return  # damage in the log hides what comes after it

    def _ends(self, log: MetadataLog, from_offset: int) -> Iterator[int]:
        """Where each batch of the log ends (exclusive), once it is in the image."""
        for batch in log.batches(from_offset):
            if batch.header.base_offset >= from_offset:
                self._replay.load_log(logged_records(batch))
                yield batch.header.last_offset + 1

    def _compare(self, snapshot: SnapshotFile, begun_with: SnapshotFile | None) -> None:
        image = _image(snapshot)
        if image is None or not image.is_certain or not self._replay.image.is_certain:
            return
        differences = list(changes(self._replay.image, image))
        if differences:
            self.contradictions.append(Contradiction(snapshot, begun_with, differences))
        else:
            self.confirmed.append(snapshot)


def _image(snapshot: SnapshotFile) -> ClusterImage | None:
    """A snapshot's image; None where it is not whole and sound, or not of the epoch that its name has."""
    replay = MetadataReplay()
    try:
        replay.load_snapshot(records_of_one_epoch(snapshot), snapshot.end_offset)
    except DecodeError:
        return None
    return replay.image
