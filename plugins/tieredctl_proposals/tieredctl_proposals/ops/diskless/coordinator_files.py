"""What all diskless coordinators together know of files, by their logs: replayed into columns.

A million files take some hundred bytes each, whatever their number of batches: of a file, what counts is the last
offset that it holds of each partition. A batch is live while its topic exists and its last offset is not before the log
start. Offsets only rise, so that follows from the logs' end alone; a topic that is created again has other partitions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from tieredctl_inkless.ops.diskless.file_keys import FileKeys

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.ops.orphans.object_columns import NEVER_MS
from tieredctl_proposals.model.diskless_records import (
    CommittedBatch,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs, LoggedDisklessRecord
from tieredctl_proposals.ops.diskless.coordinator_snapshots import SnapshotContents

UNKNOWN_MS = -1
"""A time that no log tells."""


@dataclass(frozen=True, slots=True)
class CoordinatorFiles:
    """Every file that some coordinator committed, by number."""

    keys: FileKeys
    live: Flags
    """Which have a batch that is live at any coordinator."""
    surely_live: Flags
    """Which have one at a coordinator whose log is whole."""
    committed_ms: Ints
    """When each was committed first."""
    oldest_ms: int
    """When the oldest file that is live anywhere was committed; where a coordinator has none, no later than its newest
    record. UNKNOWN_MS where a coordinator has no record at all, or none of a known time."""
    begin_ms: int
    """Since when each coordinator's log would name a file, had it been committed there: when the last of them has its
    first record, or its snapshot its first file. NEVER_MS where one has no record, or one without a time."""


def read_files(logs: CoordinatorLogs) -> CoordinatorFiles:
    """Replays the logs. Where a record contradicts those before it, that is noted in `logs`, and it changes nothing."""
    replayed = {number: _begun(logs, number) for number in logs.here}
    for logged in logs.records():
        wrong = replayed[logged.coordinator].take(logged)
        if wrong is not None:
            logs.contradiction(logged.coordinator, logged.offset, wrong)
    logs.demand_all(frozenset[int]().union(*(one.owners for one in replayed.values())))
    return _together(replayed, logs)


def _begun(logs: CoordinatorLogs, number: int) -> _Coordinator:
    """A coordinator as the log begins: empty, or as the snapshot has it that the log goes on from."""
    return logs.begin(number, _Coordinator.of_snapshot) or _Coordinator()


@dataclass(slots=True)
class _Partition:
    number: int
    log_start_offset: int = 0
    high_watermark: int = 0
    is_deleted: bool = False


@dataclass(slots=True)
class _Coordinator:
    """One coordinator's files; `files` of columns are numbers of its own."""

    owners: set[int] = field(default_factory=set)
    """All coordinators that its files name."""
    topics: dict[str, dict[int, _Partition]] = field(default_factory=dict)
    partitions: list[_Partition] = field(default_factory=list)
    keys: bytearray = field(default_factory=bytearray)
    key_ends: array[int] = field(default_factory=lambda: array("q"))
    committed_ms: array[int] = field(default_factory=lambda: array("q"))
    held_files: array[int] = field(default_factory=lambda: array("i"))
    held_partitions: array[int] = field(default_factory=lambda: array("i"))
    held_last_offsets: array[int] = field(default_factory=lambda: array("q"))

    @classmethod
    def of_snapshot(cls, contents: SnapshotContents) -> _Coordinator:
        """The coordinator as a snapshot has it."""
        one, partitions, files = cls(), {}, {}
        for at in contents.partitions():
            one._create(PartitionCreated(topic_id=at.topic_id, topic=at.topic, partition=at.partition))
            partitions[at.id] = one.partitions[-1]
            partitions[at.id].log_start_offset, partitions[at.id].high_watermark = at[-2:]
        for file in contents.files():
            files[file.id] = one._add(file.object_key, file.owner_ids, file.committed_ms)
        for held in contents.held():
            number = files[held.file]
            one._hold_up_to(number, partitions[held.partition].number, held.last_offset)
            if held.oldest_ms is not None:
                one.committed_ms[number] = min(one.committed_ms[number], held.oldest_ms)
        return one

    def take(self, logged: LoggedDisklessRecord) -> str | None:
        """The next record of its log; returns what is wrong with it."""
        match logged.record:
            case PartitionCreated() as created:
                return self._create(created)
            case TopicDeleted(topic_id=topic_id):
                return self._delete(topic_id)
            case RecordsDeleted() as deleted:
                return self._delete_records(deleted)
            case FileCommitted() as committed:
                return self._commit(committed, logged.timestamp_ms)

    def live(self) -> Flags:
        """Flags the files that have a live batch."""
        starts = np.array([one.log_start_offset for one in self.partitions], np.int64)
        deleted = np.array([one.is_deleted for one in self.partitions], np.bool_)
        held = np.frombuffer(self.held_partitions, np.int32)
        if not len(held):
            return np.zeros(len(self.key_ends), np.bool_)
        lives = ~deleted[held] & (np.frombuffer(self.held_last_offsets, np.int64) >= starts[held])
        files = np.frombuffer(self.held_files, np.int32)[lives]
        return np.bincount(files, minlength=len(self.key_ends)) > 0

    def key_column(self) -> pa.Array:
        bounds = np.concatenate([[0], np.frombuffer(self.key_ends, np.int64)])
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(bytes(self.keys))]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.key_ends), buffers)

    def _create(self, created: PartitionCreated) -> str | None:
        partitions = self.topics.setdefault(created.topic_id, {})
        if created.partition in partitions:
            return f"partition {created.partition} of topic {created.topic_id} exists"
        partitions[created.partition] = _Partition(len(self.partitions))
        self.partitions.append(partitions[created.partition])
        return None

    def _delete(self, topic_id: str) -> str | None:
        partitions = self.topics.pop(topic_id, None)
        if partitions is None:
            return f"it has no topic {topic_id}"
        for partition in partitions.values():
            partition.is_deleted = True
        return None

    def _delete_records(self, deleted: RecordsDeleted) -> str | None:
        partition = self.topics.get(deleted.topic_id, {}).get(deleted.partition)
        if partition is None:
            return f"it has no partition {deleted.partition} of topic {deleted.topic_id}"
        start = deleted.log_start_offset
        if not partition.log_start_offset <= start <= partition.high_watermark:
            offsets = f"{partition.log_start_offset} to {partition.high_watermark}"
            return f"a log start of {start} in a log from {offsets}"
        partition.log_start_offset = start
        return None

    def _commit(self, committed: FileCommitted, appended_ms: int) -> str | None:
        """The file is known whatever is wrong with its batches."""
        times = [appended_ms, *(batch.log_append_timestamp_ms for batch in committed.batches)]
        committed_ms = min((time for time in times if time >= 0), default=UNKNOWN_MS)
        file = self._add(committed.object_key, committed.owner_ids, committed_ms)
        wrong = None
        for batch in committed.batches:
            wrong = self._hold(file, batch) or wrong
        return wrong

    def _add(self, object_key: str, owner_ids: Iterable[int], committed_ms: int) -> int:
        self.owners.update(owner_ids)
        self.keys += object_key.encode()
        self.key_ends.append(len(self.keys))
        self.committed_ms.append(committed_ms)
        return len(self.key_ends) - 1

    def _hold(self, file: int, batch: CommittedBatch) -> str | None:
        partition = self.topics.get(batch.topic_id, {}).get(batch.partition)
        if partition is None:
            return f"it has no partition {batch.partition} of topic {batch.topic_id}"
        expected, partition.high_watermark = partition.high_watermark, batch.last_offset + 1
        if self.held_files and (self.held_files[-1], self.held_partitions[-1]) == (file, partition.number):
            self.held_last_offsets[-1] = max(batch.last_offset, self.held_last_offsets[-1])
        else:
            self._hold_up_to(file, partition.number, batch.last_offset)
        if batch.base_offset != expected:
            return f"offset {batch.base_offset} where {expected} is the next"
        return None

    def _hold_up_to(self, file: int, partition: int, last_offset: int) -> None:
        self.held_files.append(file)
        self.held_partitions.append(partition)
        self.held_last_offsets.append(last_offset)


def _together(replayed: dict[int, _Coordinator], logs: CoordinatorLogs) -> CoordinatorFiles:
    """The files of several coordinators, as one."""
    columns = [one.key_column() for one in replayed.values()]
    encoded = pa.concat_arrays(columns or [pa.array([], pa.large_binary())]).dictionary_encode()
    keys = pa.chunked_array([encoded.dictionary.cast(pa.large_string()).cast(pa.string())])
    numbers = numbers_in(encoded.indices).astype(np.int64)
    live = np.zeros(len(keys), np.bool_)
    surely_live = np.zeros(len(keys), np.bool_)
    committed_ms = np.full(len(keys), np.iinfo(np.int64).max)
    oldest: list[int] = []
    incomplete = logs.incomplete
    first = 0
    for number, one in replayed.items():
        own = numbers[first : first + len(one.key_ends)]
        first += len(own)
        own_live = one.live()
        times = np.array(one.committed_ms, np.int64)
        live[own[own_live]] = True
        if number not in incomplete:
            surely_live[own[own_live]] = True
        np.minimum.at(committed_ms, own, times)
        newest = logs.newest_ms.get(number, UNKNOWN_MS)
        oldest.append(min(newest, int(times[own_live].min(initial=newest))))
    first_ms = [logs.first_ms.get(number, UNKNOWN_MS) for number in replayed]
    begin_ms = max(first_ms) if min(first_ms, default=UNKNOWN_MS) > 0 else NEVER_MS
    return CoordinatorFiles(FileKeys(keys), live, surely_live, committed_ms, min(oldest, default=UNKNOWN_MS), begin_ms)
