"""What a control plane knows of diskless topics, as columns, and what tieredctl asks it.

Inkless keeps it in PostgreSQL: a file is an object that brokers uploaded and committed, a batch is a span of a file
that holds consecutive offsets of one partition. A batch may cover several record batches, since a commit merges those
that lie side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition

KEYS_AT_ONCE = 1_000
"""How many files a control plane is asked for by key in one question."""
_TOPIC_ID = pa.binary(16)

FILES = pa.schema(
    {
        "fileId": pa.int64(),
        "objectKey": pa.string(),
        "format": pa.int16(),
        "state": pa.int16(),
        "uploaderBrokerId": pa.int32(),
        "committedMs": pa.int64(),
        "markedForDeletionMs": pa.int64(),
        "size": pa.int64(),
    }
)
"""The files by id. `state` is a FileState; `markedForDeletionMs` is null where the file is not marked."""
BATCHES = pa.schema(
    {
        "batchId": pa.int64(),
        "topicId": _TOPIC_ID,
        "partition": pa.int32(),
        "baseOffset": pa.int64(),
        "lastOffset": pa.int64(),
        "fileId": pa.int64(),
        "byteOffset": pa.int64(),
        "byteSize": pa.int64(),
        "magic": pa.int16(),
        "timestampType": pa.int16(),
        "logAppendTimestamp": pa.int64(),
        "batchMaxTimestamp": pa.int64(),
    }
)
"""The batches by topic id, partition and last offset. Offsets are inclusive, times are milliseconds."""
LOGS = pa.schema(
    {
        "topicId": _TOPIC_ID,
        "partition": pa.int32(),
        "topic": pa.string(),
        "logStartOffset": pa.int64(),
        "highWatermark": pa.int64(),
        "byteSize": pa.int64(),
        "disklessStartOffset": pa.int64(),
        "remoteLogStartOffset": pa.int64(),
    }
)
"""The logs by topic id and partition. The high watermark is exclusive. `remoteLogStartOffset` is null where the
partition has no tiered segments, or the schema no such column."""
PRODUCERS = pa.schema(
    {
        "topicId": _TOPIC_ID,
        "partition": pa.int32(),
        "producerId": pa.int64(),
        "producerEpoch": pa.int16(),
        "baseSequence": pa.int32(),
        "lastSequence": pa.int32(),
        "assignedOffset": pa.int64(),
        "batchMaxTimestamp": pa.int64(),
    }
)
"""The producers by topic id, partition and assigned offset: the last record batches of each idempotent producer. They
outlive their topic."""


class FileState(IntEnum):
    """What a control plane says of a file."""

    UPLOADED = 0
    """It holds batches."""
    DELETING = 1
    """All its batches are gone: a broker deletes the object, and then the row."""
    UNKNOWN = -1
    """A state that tieredctl does not know."""


@dataclass(frozen=True, slots=True)
class ControlPlaneTables:
    """All that a control plane knew at one moment."""

    schema_version: int
    read_ms: int
    """That moment, by the control plane's own clock."""
    files: pa.Table
    batches: pa.Table
    logs: pa.Table
    producers: pa.Table
    is_standby: bool = False
    """Whether it is a replica that may lack what was committed, and have what was deleted, since."""
    made_ms: int = 0
    """When its schema was made, at the latest: what was committed before that was to another, which was lost."""


class FoundBatch(NamedTuple):
    """The batch of an offset, in the names of BATCHES, with its file, in those of FILES."""

    batch: Mapping[str, Any]
    file: Mapping[str, Any]
    other_partitions: int
    """How many other partitions have batches in the file."""


class FoundLog(NamedTuple):
    """A partition, in the names of LOGS, and of one of its offsets the batch; None where it has none."""

    log: Mapping[str, Any]
    found: FoundBatch | None


class FoundStates(NamedTuple):
    """Files that a control plane knows, of those that it was asked for."""

    states: Mapping[str, FileState]
    """The states by object key."""
    is_standby: bool
    """Whether a replica answered, as in ControlPlaneTables: a pool or a URI of several hosts may lead to another server
    each time."""


class FoundFile(NamedTuple):
    """What a control plane knows of a file. Times in ms, by its own clock."""

    file_id: int
    state: FileState
    batch_count: int
    committed_ms: int
    marked_ms: int | None
    """When it was marked for deletion; None where it is not."""


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files that a control plane was asked for by key, and what it takes to judge the others. Times in ms, by its own
    clock."""

    read_ms: int
    """The moment of all of it."""
    files: Mapping[str, FoundFile]
    """The files that it has, by object key."""
    newest_commit_ms: int
    """The newest commit of any file; 0 where there is none."""
    lacks_files: bool
    """Whether there are batches whose file is not there."""
    database: str | None
    """Which database answered, and on which timeline: another one does not have the same. None where a replica did."""
    written: int
    """How many bytes that database ever wrote to its log: a copy of its disk has the same name, and began at fewer. 0
    where a replica answered."""
    made_ms: int
    """As ControlPlaneTables has it."""


class FoundSegment(NamedTuple):
    """What remote log metadata in the control plane's database says of an offset."""

    segment: RemoteLogSegmentMetadata | None
    """The segment of which consumers would be served; of several leader epochs that hold the offset, the latest's. None
    where none holds it."""


class ControlPlane(Protocol):
    """A control plane, to be read. Each method reads one moment, and raises TieredctlError when it does not answer
    (`control-plane-unreachable`), refuses (`control-plane-refused`), or has a schema that tieredctl does not know
    (`control-plane-unknown`)."""

    def describe(self) -> Mapping[str, Any]:
        """Where it is, for people. Holds no secret."""
        ...

    def tables(self) -> ControlPlaneTables:
        """All of it."""
        ...

    def batches_of(self, object_key: str) -> tuple[Mapping[str, Any], pa.Table] | None:
        """A file, in the names of FILES, and its batches by byte offset, by BATCHES with `topic` besides. None where
        no file has that key."""
        ...

    def logs_of(self, topic: str, partition: int, offset: int) -> Sequence[FoundLog]:
        """The partitions of that name, one for each topic id."""
        ...

    def files_of(self, object_keys: Sequence[str]) -> FoundFiles:
        """The facts of those files that it has. Ask for at most KEYS_AT_ONCE."""
        ...

    def states_of(self, object_keys: Sequence[str]) -> FoundStates:
        """The states of those files that it has. Ask for at most KEYS_AT_ONCE."""
        ...

    def segment_of(self, partition: TopicIdPartition, offset: int) -> FoundSegment | None:
        """The tiered segment that has an offset, where a remote log metadata manager keeps its metadata in the same
        database; None where there is none."""
        ...
