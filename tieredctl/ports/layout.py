"""What tieredctl needs to know of a remote storage manager's objects: what a layout is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from tieredctl.errors import DecodeError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, ObjectStore

AUTO = "auto"
"""Stands for the name of whichever layout explains a store's keys."""


class Part(StrEnum):
    """Which part of a segment an object holds, by the names that users see.

    The first six are what a broker hands to its RemoteStorageManager (LogSegmentData); the others are what a layout
    stores instead of them or in addition.
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
    """What determines where a segment's objects are.

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


UNNAMED_OFFSET = -1
"""The start offset that an ExplainedKey has where a layout's keys do not name it."""


class ExplainedKey(NamedTuple):
    """What an object's key says."""

    topic: str
    topic_id: str
    partition: int
    start_offset: int
    """UNNAMED_OFFSET where no key of the layout says it."""
    segment_id: str
    part: Part

    @property
    def topic_id_partition(self) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, self.topic, self.partition)

    @property
    def custom_metadata(self) -> bytes | None:
        return None


class OtherForm(NamedTuple):
    """What a key says about an object that holds records in another form than segments as a broker wrote them."""

    name: str
    """Such as `iceberg`."""
    table: str | None
    """What the keys of all objects of the table begin with; None where the table is not in the store."""
    segment_id: str | None
    """Where it describes one segment."""


class RecordedMetadata(NamedTuple):
    """What a segment's objects record of Kafka's metadata about it. Offsets are inclusive, times in ms."""

    end_offset: int
    max_timestamp_ms: int
    segment_leader_epochs: tuple[tuple[int, int], ...]
    segment_size_in_bytes: int
    txn_idx_empty: bool | None
    """None where the release that copied it did not say (before 4.0)."""
    stored_sizes: Mapping[Part, int]
    """The sizes in bytes that the segment's other objects must have."""


class AlteredObject(NamedTuple):
    """An object that contradicts the other objects of its segment. `position` is a byte of the object."""

    part: Part
    message: str
    position: int


class DamagedRange(DecodeError):
    """Bytes of a part that cannot be recovered, because the bytes stored for them were altered or are gone.

    Ranges are of bytes, from the first up to, not including, the second.
    """

    def __init__(self, reason: str, original: tuple[int, int], stored: tuple[int, int]) -> None:
        """`original` is a range of the part as the broker wrote it, `stored` one of the object."""
        super().__init__(f"bytes {stored[0]} to {stored[1] - 1} of the object were altered: {reason}", original[0])
        self.original = original
        self.stored = stored


class SegmentReader(Protocol):
    """One segment, as the broker wrote it: decrypted, decompressed, cut out of whatever holds it.

    Parts are those of `ORIGINAL_PARTS`. Besides what the store raises, methods raise TieredctlError `object-missing`
    where an object that is needed does not exist, `private-key` where it cannot be decrypted with the layout's keys,
    and DecodeError where what is stored is not what it should be.
    """

    def parts(self) -> Mapping[Part, int]:
        """The parts that exist, with the sizes in bytes that the broker's files had. An empty part exists.

        Of a truncated log, the readable bytes count. Raises DecodeError where a manifest cannot be read.
        """
        ...

    def contradictions(self) -> Sequence[AlteredObject]:
        """Objects whose sizes, compared with what the segment's other objects say, show that they were altered;
        except a truncated log, whose part is then too short."""
        ...

    def chunk_bytes(self) -> int:
        """The size in bytes of the chunks of the log that the layout stores, each of which is read as a whole; 1 where
        any range can be read alone. Raises DecodeError where a manifest cannot be read."""
        ...

    def read(self, part: Part, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `start` (inclusive) to `end` (exclusive; None: to the last) of a part as the broker wrote it, cut
        as a Python slice is. Raises TieredctlError `object-missing` where the segment has no such part, DamagedRange
        for the first bytes among them that cannot be recovered."""
        ...

    def stream(self, part: Part, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        """A part in pieces of about `chunk_size` bytes, or in those that the layout stores; raises as `read` does."""
        ...


class Layout(Protocol):
    """How one kind of RemoteStorageManager names and stores the objects of segments. Does no I/O except in a reader.

    A layout claims an object only when it is sure: `explain` returns only what the manager could have stored under
    exactly that key, so that the key is among the promised or optional objects of the segment that it names. A layout
    can be pickled.
    """

    @property
    def name(self) -> str:
        """What `--layout` calls it."""
        ...

    @property
    def verbatim_parts(self) -> frozenset[Part]:
        """The parts that are objects of their own, byte for byte as the broker wrote them: such an object can be
        replaced without changing any other object. The keys are those of the promised and optional objects."""
        ...

    def settled_in(self, store: ObjectStore) -> Layout:
        """The layout, completed with what only the store's keys can tell, such as their common prefix. Looks at some
        of them. Raises TieredctlError `usage` where they leave it open."""
        ...

    def explain(self, key: str) -> ExplainedKey | None:
        """The segment and the part whose object has this key; None where the layout cannot say.

        For a key whose last part begins with a valid offset of 20 digits, a dash and a segment id, all other fields of
        the answer are independent of these two: explaining a few keys then explains many.
        """
        ...

    def other_form(self, key: str) -> OtherForm | None:
        """For a key that `explain` does not know: whether it is how the manager, or the table that it writes to, names
        objects that hold segments in another form. Such objects are never called orphaned, nor their segments
        missing."""
        ...

    @property
    def form_outside(self) -> OtherForm | None:
        """The form of segments that are in another store, where the layout's options say that there are any."""
        ...

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        """The prefix of every key that is explained as this partition's, and of no other partition's."""
        ...

    def promised_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        """The keys that must exist for a segment in COPY_SEGMENT_FINISHED.

        These are the same parts for all segments of a partition without custom metadata, as are the optional ones.
        """
        ...

    def optional_objects(self, segment: SegmentIdentity) -> dict[Part, str]:
        """The keys that may exist in addition, such as that of a transaction index."""
        ...

    def original_log_size(self, stored: Mapping[Part, int]) -> int | None:
        """The size in bytes that a segment's log had, by the sizes of its stored objects; None where the log is not
        stored, or only reading it can tell: which parts are stored decides that, whatever their sizes."""
        ...

    def stored_size(self, segment: SegmentIdentity) -> int | None:
        """The total size in bytes of the promised objects; None where the segment's custom metadata does not say."""
        ...

    def recorded_metadata(self, store: ObjectStore, segment: SegmentIdentity) -> RecordedMetadata | None:
        """What the segment's objects record of its metadata; None where the layout records nothing. Raises
        TieredctlError as a reader does, DecodeError also where it is another segment's."""
        ...

    def custom_metadata(self, segment: SegmentIdentity, stored_bytes: int, like: bytes | None) -> bytes | None:
        """What the manager gives to Kafka after it copied a segment whose promised objects have `stored_bytes` in all:
        with the fields of `like`, another segment's, or without one with those that the layout's options name."""
        ...

    def open_segment(self, store: ObjectStore, segment: SegmentIdentity) -> SegmentReader:
        """A reader of one segment. Reads nothing until one of its methods is called."""
        ...


@runtime_checkable
class WritingLayout(Protocol):
    """A layout that can also build the objects that its manager would have stored. Those whose `verbatim_parts` are all
    parts need not."""

    def stored_objects(
        self, store: ObjectStore, segment: RemoteLogSegmentMetadata, parts: Mapping[Part, bytes]
    ) -> Mapping[Part, bytes]:
        """The promised objects of a segment whose broker wrote these parts, all that it has.

        Where a manifest is there, by that: with its sizes of chunks, its compression and its data key. Otherwise as
        another segment of the partition is stored. Raises TieredctlError `usage` where neither shows how.
        """
        ...


class Rewrapping(Protocol):
    """The form that objects of one source have in a copy of it which is for another key pair. The segments that they
    encrypt are the same byte for byte: only the keys that encrypt them are wrapped again.

    Methods raise DecodeError for an object that cannot be read, and TieredctlError `private-key` where the source's
    keys do not open it.
    """

    @property
    def largest(self) -> int:
        """The largest size in bytes of such an object; one that is larger cannot be read."""
        ...

    @property
    def settings(self) -> Sequence[str]:
        """What brokers that read the copy need of the key pair: settings without the prefix that brokers have before
        them."""
        ...

    def concerns(self, key: str) -> bool:
        """Whether the object of this key may have another form; others are copied byte for byte."""
        ...

    def rewrapped(self, key: str, data: bytes) -> bytes | None:
        """The bytes that the copy has: others each time; None where nothing is encrypted, and it has the same. Raises
        TieredctlError `usage` for a key pair that does not suit the source."""
        ...

    def difference(self, key: str, original: bytes, copy: bytes) -> str | None:
        """In what a copy differs from any that `rewrapped` may give for its original, proven by opening both; None
        where it does not. A copy that cannot be read differs."""
        ...


@runtime_checkable
class RewrappingLayout(Protocol):
    """A layout whose objects hold keys that a key pair wraps."""

    def rewrapping(self, store: ObjectStore, options: Mapping[str, str], *, may_grow: bool) -> Rewrapping:
        """How objects of this store are wrapped for the key pair that options of the layout name; this layout's own
        open them. Unless they `may_grow`, objects that would are refused: Kafka's metadata may record their sizes.
        Raises TieredctlError `usage` where the options name no key pair, and `private-key`."""
        ...


_Segment = TypeVar("_Segment", contravariant=True)


class _Keys(Protocol[_Segment]):
    def promised_objects(self, segment: _Segment, /) -> dict[Part, str]: ...

    def optional_objects(self, segment: _Segment, /) -> dict[Part, str]: ...


def possible_objects(layout: _Keys[_Segment], segment: _Segment) -> dict[Part, str]:
    """The keys of all objects that a segment may have by a layout, promised and optional."""
    return layout.promised_objects(segment) | layout.optional_objects(segment)


LayoutFactory = Callable[[Mapping[str, str]], Layout]
"""What an entry point of the group `tieredctl.layouts` names: a function from `--layout-option`s to the layout.

Raises TieredctlError `usage` for an option that the layout does not have or cannot use.
"""
