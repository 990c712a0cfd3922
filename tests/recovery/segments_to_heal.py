"""Captured clusters in memory, whose objects are broken one by one, and the places where their bytes still are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random

from tieredctl.formats.partition_metadata import PartitionMetadata, encode_partition_metadata
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_in
from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.ops.guards.lease import Unguarded
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.healing.healing import Healing, HealingOutcome
from tieredctl.ops.healing.healing_plan import Healer, HealingPlan
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import FreshSegments
from tieredctl.ops.healing.sources import ObjectSources, OtherStore
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import RESERVED_FOLDER, KeptVersion
from tieredctl.ports.replica_disks import NoDisks, ReplicaDisks
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store

INTERVAL = 4_096
CAPTURES = {
    "kafka-4.3.1": "remote/kafka-tiered-storage",
    "aiven-plain-4.3.1": "bucket",
    "aiven-zstd-encrypted-4.3.1": "bucket",
}


def deletion_of(segment: RemoteLogSegmentMetadata) -> RemoteLogSegmentMetadataUpdate:
    """The event by which a broker begins to delete it."""
    return RemoteLogSegmentMetadataUpdate(
        topic_id_partition=segment.topic_id_partition,
        segment_id=segment.segment_id,
        author=1,
        event_timestamp_ms=1,
        state=RemoteLogSegmentState.DELETE_SEGMENT_STARTED,
    )


class VersionedMemoryStore(MemoryStore):
    """A bucket that keeps what was deleted or replaced, as S3 does."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, list[bytes]] = {}

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        for key in sorted(self.kept):
            if key.startswith(prefix):
                for number, data in enumerate(self.kept[key]):
                    yield KeptVersion(key, str(number), len(data), number, False)

    def read_version(self, kept: KeptVersion) -> bytes:
        return self.kept[kept.key][int(kept.version_id)]


@dataclass
class CapturedCluster:
    """Its metadata, and its objects as its storage manager wrote them."""

    folder: Path
    name: str
    _read: dict[str, Mapping[Part, bytes]] = field(default_factory=dict)

    @cached_property
    def objects(self) -> dict[str, bytes]:
        store = open_store(f"file:{self.folder / CAPTURES[self.name]}", {})
        return {one.key: store.read(one.key) for one in store.list()}

    @cached_property
    def layout(self) -> Layout:
        key = self.folder / "keys" / "private.pem"
        return layout_in(self.store(), "auto", {"private-key": str(key)} if key.exists() else {})

    @cached_property
    def segments(self) -> SegmentsOnce:
        return SegmentsOnce.of(self.stream())

    @cached_property
    def finished(self) -> list[RemoteLogSegmentMetadata]:
        return [self.segments.finished(one).metadata for one in self.segments.ids(Selection())]

    def stream(self) -> EventStream:
        return EventStream(LogDirectories([self.folder / "data"]))

    def store(self) -> VersionedMemoryStore:
        store = VersionedMemoryStore()
        for key, data in self.objects.items():
            store.put(key, data)
        return store

    def keys(self, metadata: RemoteLogSegmentMetadata) -> dict[Part, str]:
        """Of a segment's objects that exist."""
        keys = self.layout.promised_objects(metadata) | self.layout.optional_objects(metadata)
        return {part: key for part, key in keys.items() if key in self.objects}

    def parts(self, metadata: RemoteLogSegmentMetadata) -> Mapping[Part, bytes]:
        """As the broker wrote them."""
        if metadata.segment_id not in self._read:
            self._read[metadata.segment_id] = parts_in(self.store(), self.layout, metadata)
        return self._read[metadata.segment_id]

    def disk(self, folder: Path) -> Path:
        """A log directory that still has all segments of remote storage."""
        for metadata in self.finished:
            partition, parts = metadata.topic_id_partition, self.parts(metadata)
            replica = folder / f"{partition.topic}-{partition.partition}"
            replica.mkdir(parents=True, exist_ok=True)
            (replica / "partition.metadata").write_bytes(
                encode_partition_metadata(PartitionMetadata(0, partition.topic_id))
            )
            (replica / f"{metadata.start_offset:020}.log").write_bytes(parts[Part.LOG])
            (replica / f"{metadata.end_offset + 1:020}.snapshot").write_bytes(parts[Part.PRODUCER_SNAPSHOT])
        return folder

    def elsewhere(self) -> OtherStore:
        """The same objects in another store."""
        return OtherStore(self.store(), self.layout)

    def healer(self, store: MemoryStore, *others: OtherStore, disks: ReplicaDisks | None = None) -> Healer:
        sources = ObjectSources(store, others, lambda _key: True)
        return Healer(store, self.layout, sources, disks or NoDisks())

    def plan(self, healer: Healer, metadata: RemoteLogSegmentMetadata) -> HealingPlan:
        return healer.plan(self.segments.finished(metadata.segment_id), INTERVAL).without_bytes()

    def heal(self, healer: Healer, store: MemoryStore, *plans: HealingPlan) -> HealingOutcome:
        healing = Healing(plans, healer, store, FreshSegments(self.stream, lambda: 0), lambda _topic: INTERVAL)
        return healing.run(Unguarded(StoreClock(lambda: 0, 0)))


def parts_in(store: MemoryStore, layout: Layout, metadata: RemoteLogSegmentMetadata) -> dict[Part, bytes]:
    reader = layout.open_segment(store, metadata)
    return {part: reader.read(part) for part in reader.parts()}


def in_quarantine(store: MemoryStore, key: str, data: bytes) -> None:
    """As a removal leaves an object."""
    original = store.put(key, data)
    store.put(quarantine_key("cluster", "plan", original), data)


def own_objects(store: MemoryStore) -> dict[str, bytes]:
    """All but tieredctl's own."""
    return {one.key: store.read(one.key) for one in store.list() if not one.key.startswith(RESERVED_FOLDER)}


Fault = Callable[[bytes, bytes, Random], bytes | None]
FAULTS: Mapping[str, Fault] = {
    "missing": lambda _data, _other, _random: None,
    "empty": lambda _data, _other, _random: b"",
    "cut": lambda data, _other, random: data[: random.randrange(max(len(data) // 2, 1), max(len(data), 2))],
    "bit flip": lambda data, _other, random: flipped(data, random),
    "of another segment": lambda _data, other, _random: other,
    "garbage": lambda data, _other, random: random.randbytes(max(len(data), 7)),
}


def flipped(data: bytes, random: Random) -> bytes:
    if not data:
        return b"\0"
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
