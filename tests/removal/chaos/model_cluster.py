"""A cluster on disk: a remote store, a metadata log, and a broker that keeps to Kafka's rules.

What the broker has done is the past, then as many steps of its future as a file tells, so that whoever opens the
folder next, after whatever was killed, finds the same cluster. The model says what the store should hold without
asking the code under test.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol, Self

from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
)
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.storage.file_changes import UNFINISHED_FOLDER

METADATA_PARTITIONS = 2
LONG_AGO_MS = 96 * 3_600_000
"""How old the past is, at its beginning: so old that all of it is, even by a clock that is two days behind."""
STEP_MS = 10 * 60_000
"""From each of its steps to the next: more than clocks may differ."""
ReadUpTo = tuple[int, ...]
"""How many events of each metadata partition were read."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """The broker wrote an object: the same bytes each time that it writes it."""

    key: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """The broker deleted an object, or found it gone."""

    key: str


@dataclass(frozen=True, slots=True)
class Announced:
    """The broker wrote an event."""

    event: RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata

    @property
    def metadata_partition(self) -> int:
        return _metadata_partition(self.event.topic_id_partition)


Step = Uploaded | Deleted | Announced


@dataclass(frozen=True, slots=True)
class History:
    """What a broker did before anybody looked, and what it will do."""

    past: Sequence[Step]
    future: Sequence[Step]
    live_topic_ids: frozenset[str]
    only_copies: frozenset[str]
    """The keys of objects whose events were lost, and whose records are nowhere else."""


class Bucket(Protocol):
    """Where a model's objects are, as brokers and passers-by see it."""

    def upload(self, key: str, data: bytes, now_ms: int) -> None:
        """Makes an object of that time."""

    def remove(self, key: str) -> None:
        """Deletes an object, if it is there."""

    def read(self, key: str) -> bytes | None:
        """The bytes of an object; None where there is none."""

    def alter(self, key: str, data: bytes) -> None:
        """Writes other bytes over an object, which is as old as it was where the store can have that."""

    def keys(self) -> set[str]:
        """All that is there but what is still being written."""


@dataclass(frozen=True)
class Folder:
    """A `Bucket` in a folder, which `FileStore` opens."""

    root: Path

    def upload(self, key: str, data: bytes, now_ms: int) -> None:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.root.with_name("being-uploaded")
        unfinished.write_bytes(data)
        os.utime(unfinished, ns=(now_ms * 1_000_000, now_ms * 1_000_000))
        unfinished.replace(path)

    def remove(self, key: str) -> None:
        (self.root / key).unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        try:
            return (self.root / key).read_bytes()
        except FileNotFoundError:
            return None

    def alter(self, key: str, data: bytes) -> None:
        path = self.root / key
        times = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def keys(self) -> set[str]:
        root = str(self.root)
        keys = {f"{folder}/{name}"[len(root) + 1 :] for folder, _, names in os.walk(root) for name in names}
        return {key for key in keys if not key.startswith(UNFINISHED_FOLDER)}


class ModelCluster:
    """The cluster in a folder, with its objects there, or in another bucket."""

    def __init__(self, folder: Path, history: History, bucket: Bucket | None = None) -> None:
        self.history = history
        self.lost: set[str] = set()
        """The keys of promised objects that somebody deleted."""
        self.store_root = folder / "store"
        self.bucket = bucket or Folder(self.store_root)
        self.log_dir = folder / "data"
        self._progress = folder / "broker-steps"

    @classmethod
    def begun(cls, folder: Path, history: History, now_ms: int, bucket: Bucket | None = None) -> Self:
        """A cluster whose past has happened."""
        cluster = cls(folder, history, bucket)
        cluster.store_root.mkdir(parents=True)
        for number in range(METADATA_PARTITIONS):
            cluster._log(number).parent.mkdir(parents=True)
            cluster._log(number).touch()
        ends = [0] * METADATA_PARTITIONS
        for number, step in enumerate(history.past):
            cluster._take([step], tuple(ends), now_ms - LONG_AGO_MS + number * STEP_MS)
            if isinstance(step, Announced):
                ends[step.metadata_partition] += 1
        cluster._progress.write_text("0")
        return cluster

    def content(self, key: str) -> bytes:
        """The bytes of an object."""
        digest = hashlib.sha256(key.encode()).digest()
        return digest * (1 + digest[0] % 4)

    def unreadable(self) -> set[str]:
        """The keys of objects that readers were not told to be gone, where they are told, and that are not there."""
        return set()

    def unconcluded(self, _keys: set[str]) -> set[str]:
        """Those of some objects that readers were not told in the end to be gone, where they are told."""
        return set()

    @property
    def steps_taken(self) -> int:
        """How much of its future the broker has done."""
        return int(self._progress.read_text())

    @property
    def is_at_rest(self) -> bool:
        return self.steps_taken == len(self.history.future)

    def act(self, now_ms: int) -> None:
        """The broker's next step, if it has one."""
        taken = self.steps_taken
        if taken < len(self.history.future):
            self._take([self.history.future[taken]], self.read_up_to(), now_ms)
            self._progress.write_text(str(taken + 1))

    def act_to_the_end(self, now_ms: int) -> None:
        while not self.is_at_rest:
            self.act(now_ms)

    def read_up_to(self) -> ReadUpTo:
        """How many events there are."""
        return self.events_after(self.steps_taken)

    def events_after(self, steps_taken: int) -> ReadUpTo:
        counts = list(self._past_events)
        for step in self.history.future[:steps_taken]:
            if isinstance(step, Announced):
                counts[step.metadata_partition] += 1
        return tuple(counts)

    def objects(self) -> set[str]:
        """The keys that would be there if nobody but the broker had changed anything."""
        keys: set[str] = set()
        for step in self._done():
            if isinstance(step, Uploaded):
                keys.add(step.key)
            elif isinstance(step, Deleted):
                keys.discard(step.key)
        return keys - self.lost

    def lose(self, key: str) -> None:
        """An object is gone, and no broker deleted it."""
        self.bucket.remove(key)
        self.lost.add(key)

    def promised_to_the_end(self) -> set[str]:
        """The keys of what brokers may read, and nothing of which they will delete."""
        events = [step.event for step in self.history.future if isinstance(step, Announced)]
        deleted = {
            event.segment_id
            for event in events
            if isinstance(event, RemoteLogSegmentMetadataUpdate)
            and event.state is RemoteLogSegmentState.DELETE_SEGMENT_STARTED
        }
        return {key for key in self.owned_objects(self.read_up_to()) if _segment_of(key) not in deleted}

    def written_since(self, steps_taken: int) -> set[str]:
        """The keys of objects that the broker wrote since then, and did not delete."""
        steps = self.history.future[steps_taken : self.steps_taken]
        return {step.key for step in steps if isinstance(step, Uploaded)} & self.objects()

    def touched_since(self, steps_taken: int) -> set[str]:
        """The keys of objects that the broker wrote since then, or gave an owner, whatever became of them."""
        steps = self.history.future[steps_taken : self.steps_taken]
        written = {step.key for step in steps if isinstance(step, Uploaded)}
        events = [step.event for step in steps if isinstance(step, Announced)]
        finished = {
            event.segment_id
            for event in events
            if isinstance(event, RemoteLogSegmentMetadataUpdate)
            and event.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
        }
        uploads = (step.key for step in self._done() if isinstance(step, Uploaded))
        return written | {key for key in uploads if _segment_of(key) in finished}

    def owned_objects(self, read_up_to: ReadUpTo) -> set[str]:
        """Those of `objects` that brokers may read by what so much of the metadata says."""
        readable = self._readable_segments(read_up_to)
        return {key for key in self.objects() if _segment_of(key) in readable}

    def read(self, key: str) -> bytes | None:
        """What the store has under a key."""
        return self.bucket.read(key)

    def stored_keys(self) -> set[str]:
        """All that is in the store but what is still being written."""
        return self.bucket.keys()

    def _readable_segments(self, read_up_to: ReadUpTo) -> set[str]:
        states: dict[str, RemoteLogSegmentState] = {}
        owners: dict[str, tuple[str, int]] = {}
        removed: set[tuple[str, int]] = set()
        left = list(read_up_to)
        for step in self._done():
            if not isinstance(step, Announced):
                continue
            left[step.metadata_partition] -= 1
            if left[step.metadata_partition] < 0:
                continue
            owner = (step.event.topic_id_partition.topic_id, step.event.topic_id_partition.partition)
            if isinstance(step.event, RemotePartitionDeleteMetadata):
                removed.add(owner)
            else:
                states[step.event.segment_id] = step.event.state
                owners[step.event.segment_id] = owner
        return {
            segment
            for segment, state in states.items()
            if state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
            and owners[segment] not in removed
            and owners[segment][0] in self.history.live_topic_ids
        }

    def _done(self) -> Iterable[Step]:
        yield from self.history.past
        yield from self.history.future[: self.steps_taken]

    @cached_property
    def _past_events(self) -> ReadUpTo:
        places = [step.metadata_partition for step in self.history.past if isinstance(step, Announced)]
        return tuple(places.count(number) for number in range(METADATA_PARTITIONS))

    def _take(self, steps: Iterable[Step], ends: ReadUpTo, now_ms: int) -> None:
        """Some steps, all at one time; `ends` is how many events there were before."""
        records: list[list[Record]] = [[] for _ in ends]
        for step in steps:
            if isinstance(step, Uploaded):
                self.bucket.upload(step.key, self.content(step.key), now_ms)
            elif isinstance(step, Deleted):
                self.bucket.remove(step.key)
            else:
                number = step.metadata_partition
                offset = ends[number] + len(records[number])
                event = replace(step.event, event_timestamp_ms=now_ms)
                records[number].append(Record(offset, now_ms, None, encode_event(event)))
        for number, added in enumerate(records):
            if added:
                with self._log(number).open("ab") as log:
                    log.write(encode_batch(added))

    def _log(self, number: int) -> Path:
        return self.log_dir / f"__remote_log_metadata-{number}" / f"{0:020d}.log"


@cache
def _metadata_partition(owner: TopicIdPartition) -> int:
    return metadata_partition(owner.topic_id, owner.partition, METADATA_PARTITIONS)


def _segment_of(key: str) -> str:
    """The segment id in a key."""
    return key.rpartition("/")[2][21:43]
