"""What tieredctl needs to know of a remote storage manager's objects. A plugin needs this module alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from tieredctl.model.ids import TopicIdPartition
from tieredctl.storage.protocol import STREAM_CHUNK_BYTES, ObjectStore

__all__ = [
    "ORIGINAL_PARTS",
    "STREAM_CHUNK_BYTES",
    "ExplainedKey",
    "Layout",
    "LayoutFactory",
    "ObjectStore",
    "Part",
    "SegmentIdentity",
    "SegmentReader",
]


class Part(StrEnum):
    """What of a segment an object holds, by the names that users see.

    The first six are what a broker hands to its RemoteStorageManager (LogSegmentData); the others are what a layout
    stores instead of them or besides.
    """

    LOG = "log"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    LEADER_EPOCH = "leader-epoch"
    TRANSACTION_INDEX = "transaction-index"
    INDEXES = "indexes"
    """All indexes in one object."""
    MANIFEST = "manifest"
    """How the others were transformed."""


ORIGINAL_PARTS = (
    Part.LOG,
    Part.OFFSET_INDEX,
    Part.TIME_INDEX,
    Part.PRODUCER_SNAPSHOT,
    Part.LEADER_EPOCH,
    Part.TRANSACTION_INDEX,
)
"""The parts that a broker wrote; it writes a transaction index only where a transaction was aborted."""


class SegmentIdentity(Protocol):
    """What decides where a segment's objects are.

    RemoteLogSegmentMetadata is one. So is an ExplainedKey, for stores whose metadata is lost or not at hand; it has no
    custom metadata, so a layout that moves objects by it looks in its usual place.
    """

    @property
    def topic_id_partition(self) -> TopicIdPartition: ...

    @property
    def segment_id(self) -> str: ...

    @property
    def start_offset(self) -> int: ...

    @property
    def custom_metadata(self) -> bytes | None:
        """What the layout's own RemoteStorageManager gave to Kafka when it copied the segment."""
        ...


class ExplainedKey(NamedTuple):
    """What an object's key says."""

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    segment_id: str
    part: Part

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.partition)

    @property
    def custom_metadata(self) -> bytes | None:
        return None


class SegmentReader(Protocol):
    """One segment, as the broker wrote it: decrypted, decompressed, cut out of whatever holds it.

    Parts are those of `ORIGINAL_PARTS`. Besides what the store raises, methods raise TieredctlError `object-missing`
    where an object that is needed is not there, and DecodeError where what is stored is not what it should be.
    """

    def parts(self) -> Mapping[Part, int]:
        """The parts that are there, with the sizes in bytes that the broker's files had. An empty part is there."""
        ...

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `start` (inclusive) to `end` (exclusive; None: to the last) of a part as the broker wrote it, cut
        as a Python slice is. Raises TieredctlError `object-missing` where the segment has no such part."""
        ...

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        """A part in pieces of about `chunk_size` bytes, or in those that the layout stores; raises as `read` does."""
        ...


class Layout(Protocol):
    """How one kind of RemoteStorageManager names and stores the objects of segments. Does no I/O but in a reader.

    A layout speaks for an object only when it is sure: `explain` gives nothing but what the manager could have stored
    under exactly that key, so for what it explains, the key is among the promised or optional objects of the segment
    that it names. A layout can be pickled.
    """

    @property
    def name(self) -> str:
        """What `--layout` calls it."""
        ...

    def explain(self, key: str) -> ExplainedKey | None:
        """Whose object this key is; None where the layout cannot say."""
        ...

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        """What every key begins with that is explained as this partition's, and no other partition's does."""
        ...

    def promised_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        """The keys that must exist for a segment in COPY_SEGMENT_FINISHED."""
        ...

    def optional_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        """The keys that may exist besides, such as that of a transaction index."""
        ...

    def original_log_size(self, stored: Mapping[Part, int]) -> int | None:
        """The size in bytes that a segment's log had, by the sizes of its stored objects; None where the log is not
        stored, or only reading it can tell."""
        ...

    def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
        """A reader of one segment. Reads nothing until it is asked to."""
        ...


LayoutFactory = Callable[[Mapping[str, str]], Layout]
"""What an entry point of the group `tieredctl.layouts` names: `--layout-option`s -> the layout.

Raises TieredctlError `usage` for an option that the layout does not have or cannot use.
"""
