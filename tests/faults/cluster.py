"""A cluster in memory: its metadata events and its remote objects, so that a fault is one more copy of a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.faults.segment_writer import WrittenSegment
from tieredctl.errors import ExitCode
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.record_chunks import MetadataRecord, RecordChunk, chunk_of
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.model.events import (
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Part
from tieredctl.ports.metadata_source import OffsetRange
from tieredctl.storage.memory import MemoryStore

LAYOUT = layout_named("local")
HOUR_MS = 3_600_000


@dataclass
class EventsInMemory:
    """A `MetadataSource` of one metadata partition, with an event a record. There may be more events later, or less."""

    events: Sequence[MetadataEvent]

    def __post_init__(self) -> None:
        self._end = len(self.events)

    @property
    def cluster_id(self) -> str | None:
        return None

    @property
    def metadata_topic_id(self) -> str | None:
        return None

    @property
    def partition_count(self) -> int | None:
        return len(self.metadata_partitions())

    def describe(self) -> dict[str, object]:
        return {"kind": "memory"}

    def metadata_partitions(self) -> list[int]:
        return [0]

    def findings(self) -> list[Finding]:
        return []

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        yield chunk_of(
            MetadataRecord(offset, event.event_timestamp_ms, encode_event(event))
            for offset, event in enumerate(self.events[: self._end])
        ).starting_at(from_offset)

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return OffsetRange(0, self._end)

    def advance(self) -> bool:
        before, self._end = self._end, len(self.events)
        return before != self._end

    def close(self) -> None: ...


@dataclass(frozen=True)
class Cluster:
    """What `verify` looks at. Whatever changes a cluster gives another one."""

    events: tuple[MetadataEvent, ...]
    objects: Mapping[str, bytes]
    local_logs: Mapping[TopicIdPartition, LocalLog] = field(default_factory=dict)

    def verify(self, level: Level = Level.FULL, **options: Any) -> Verification:
        defaults: dict[str, Any] = {
            "level": level,
            "clock": Clock(self.last_event_ms + 2 * HOUR_MS, HOUR_MS),
            "local_logs": self.local_logs,
        }
        chosen = VerifyOptions(**defaults | options)
        return verify(EventStream(EventsInMemory(self.events)), self.store(), LAYOUT, LocalEngine(threads=1), chosen)

    def findings(self, level: Level = Level.FULL) -> list[Finding]:
        return self.verify(level).findings

    def store(self) -> MemoryStore:
        store = MemoryStore()
        for key, data in self.objects.items():
            store.put(key, data)
        return store

    @property
    def last_event_ms(self) -> int:
        return max(event.event_timestamp_ms for event in self.events)

    def finished(self) -> list[RemoteLogSegmentMetadata]:
        """The segments in COPY_SEGMENT_FINISHED, by topic, partition, offset."""
        state = replayed(EventStream(EventsInMemory(self.events)))
        found = (known.metadata for _, known in state.segments())
        return [metadata for metadata in found if metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]

    def data(self, metadata: RemoteLogSegmentMetadata, part: Part) -> bytes:
        return self.objects[key_of(metadata, part)]

    def has(self, metadata: RemoteLogSegmentMetadata, part: Part) -> bool:
        return key_of(metadata, part) in self.objects

    def only(self, *partitions: TopicIdPartition) -> Cluster:
        """As if the cluster had no other partitions than these."""
        prefixes = tuple(map(LAYOUT.partition_prefix, partitions))
        return Cluster(
            tuple(event for event in self.events if getattr(event, "topic_id_partition", None) in partitions),
            {key: data for key, data in self.objects.items() if key.startswith(prefixes)},
            {partition: log for partition, log in self.local_logs.items() if partition in partitions},
        )

    def with_part(self, metadata: RemoteLogSegmentMetadata, part: Part, data: bytes) -> Cluster:
        return self.with_object(key_of(metadata, part), data)

    def without_part(self, metadata: RemoteLogSegmentMetadata, part: Part) -> Cluster:
        return replace(self, objects={k: d for k, d in self.objects.items() if k != key_of(metadata, part)})

    def with_object(self, key: str, data: bytes) -> Cluster:
        return replace(self, objects={**self.objects, key: data})

    def with_events(self, *events: MetadataEvent) -> Cluster:
        """The cluster after more events."""
        return replace(self, events=self.events + events)

    def without_events_of(self, metadata: RemoteLogSegmentMetadata) -> Cluster:
        return replace(self, events=tuple(e for e in self.events if _segment_id(e) != metadata.segment_id))

    def with_start_changed(self, metadata: RemoteLogSegmentMetadata, **changes: Any) -> Cluster:
        """The cluster as if the segment's copy had been announced otherwise."""
        return self._mapped(
            lambda event: (
                replace(event, **changes)
                if isinstance(event, RemoteLogSegmentMetadata) and event.segment_id == metadata.segment_id
                else event
            )
        )

    def _mapped(self, change: Callable[[MetadataEvent], MetadataEvent]) -> Cluster:
        return replace(self, events=tuple(map(change, self.events)))


def key_of(metadata: RemoteLogSegmentMetadata, part: Part) -> str:
    """Where LocalTieredStorage keeps a part."""
    return (LAYOUT.promised_objects(metadata) | LAYOUT.optional_objects(metadata))[part]


def captured(folder: Path) -> Cluster:
    """What a real broker left: `data/` and `remote/` of a capture."""
    source = LogDirectories([folder / "data"])
    events = [
        decode_event(record.value)
        for number in source.metadata_partitions()
        for chunk in source.chunks(number)
        for record in chunk.records()
        if record.value is not None
    ]
    root = folder / "remote" / "kafka-tiered-storage"
    files = (path for path in root.rglob("*") if path.is_file())
    objects = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
    return Cluster(tuple(events), objects, read_local_logs([folder / "data"]))


def made_of(segments: Iterable[WrittenSegment]) -> Cluster:
    """A cluster that copied these segments, and nothing else."""
    events: list[MetadataEvent] = []
    objects: dict[str, bytes] = {}
    for segment in segments:
        metadata = segment.metadata
        events += (started(metadata), update(metadata, RemoteLogSegmentState.COPY_SEGMENT_FINISHED))
        objects |= {key_of(metadata, part): data for part, data in segment.parts.items()}
    return Cluster(tuple(events), objects)


def started(metadata: RemoteLogSegmentMetadata, **changes: Any) -> RemoteLogSegmentMetadata:
    """The event with which a segment's copy began."""
    return replace(metadata, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED, **changes)


def update(metadata: RemoteLogSegmentMetadata, state: RemoteLogSegmentState) -> RemoteLogSegmentMetadataUpdate:
    """The event with which a segment reaches a state, a second after its last."""
    return RemoteLogSegmentMetadataUpdate(
        topic_id_partition=metadata.topic_id_partition,
        segment_id=metadata.segment_id,
        author=metadata.author,
        event_timestamp_ms=metadata.event_timestamp_ms + 1_000,
        state=state,
    )


def checked(
    segment: WrittenSegment, parts: Mapping[Part, bytes] | None = None, level: Level = Level.FULL, **task: Any
) -> SegmentReport:
    """One segment, with other bytes in some parts, read without a cluster around it."""
    store = MemoryStore()
    keys = {part: key_of(segment.metadata, part) for part in segment.parts}
    for part, data in {**segment.parts, **(parts or {})}.items():
        store.put(key_of(segment.metadata, part), data)
    return check_segment(SegmentTask(segment.metadata, keys, level, **task), store, LAYOUT)


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    return exit_code_of(findings)


def _segment_id(event: MetadataEvent) -> str | None:
    return getattr(event, "segment_id", None)
