"""Where the bytes of a segment's lost objects may be. Nothing of it is believed: each candidate is proven first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.quantities import size_text
from tieredctl.ops.guards.quarantine_keys import copies_in_quarantine
from tieredctl.ops.guards.second_reading import head_again
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject
from tieredctl.ports.replica_disks import Refusal

LARGEST_BYTES = 1 << 30
"""What is held in memory of an object or a log at most."""

_ARE_NOT_THERE = (ErrorCode.OBJECT_MISSING, ErrorCode.UNDECODABLE, ErrorCode.STORE_INCAPABLE)


class Source(StrEnum):
    """Where bytes are from, the most trusted first."""

    KEPT_VERSION = "kept-version"
    """A version of the same key that a bucket keeps."""
    QUARANTINE = "quarantine"
    """A copy that tieredctl made before it removed or replaced the object."""
    STORE = "store"
    """The same segment's object in another bucket or prefix."""
    METADATA = "metadata"
    """The metadata, and the segments beside it."""
    LOG = "log"
    """The segment's own log, which is sound."""
    DISK = "disk"
    """A replica's files on a broker's disk."""


class Candidate(NamedTuple):
    """Bytes that may be those of an object."""

    source: Source
    place: str
    """What names them there."""
    read: Callable[[], bytes]


class OtherStore(NamedTuple):
    """Another bucket or prefix, whose keys may have another prefix."""

    store: ObjectStore
    layout: Layout


@dataclass(slots=True)
class ObjectSources:
    """Where whole objects may be: in the store itself, and in others."""

    store: ObjectStore
    others: Sequence[OtherStore]
    is_wanted: Callable[[str], bool]
    """Whether an object of this key may be asked for: of others in quarantine nothing is kept in memory."""
    _quarantined: dict[str, list[StoredObject]] | None = field(default=None)

    def candidates(self, metadata: RemoteLogSegmentMetadata, part: Part, key: str) -> Iterator[Candidate | Refusal]:
        """Candidates for one object, the most trusted first, and of these the newest."""
        whole = self._kept_versions(key), self._copies(key), self._elsewhere(metadata, part)
        for source in (*whole, self._soft_deleted(key)):
            try:
                yield from source
            except TieredctlError as error:
                if error.code in CONCERN_EVERY_OBJECT:
                    raise
                yield Refusal(key, error.message, shows_nothing(error))

    def _kept_versions(self, key: str) -> Iterator[Candidate | Refusal]:
        versions = [one for one in self.store.kept_versions(key) if one.key == key and not one.is_delete_marker]
        for kept in sorted(versions, key=lambda one: one.last_modified_ms, reverse=True):
            place = f"version {kept.version_id} of {key}"
            yield _sized(Source.KEPT_VERSION, place, kept.size, lambda kept=kept: self.store.read_version(kept))  # type: ignore[misc]

    def _soft_deleted(self, key: str) -> Iterator[Refusal]:
        kept = self.store.soft_deleted(key)
        if kept:
            newest = max(kept, key=lambda one: one.last_modified_ms)
            place = f"{self.store.url.rstrip('/')}/{key} of {size_text(newest.size)}, which soft delete keeps"
            yield Refusal(place, "the store's own tools restore it", is_unread=True)

    def _copies(self, key: str) -> Iterator[Candidate | Refusal]:
        if self._quarantined is None:
            self._quarantined = defaultdict(list)
            for copy, original in copies_in_quarantine(self.store):
                if self.is_wanted(original.key):
                    self._quarantined[original.key].append(copy)
        copies = self._quarantined.get(key, ())
        for copy in sorted(copies, key=lambda one: one.last_modified_ms, reverse=True):
            yield _object(Source.QUARANTINE, self.store, copy)

    def _elsewhere(self, metadata: RemoteLogSegmentMetadata, part: Part) -> Iterator[Candidate | Refusal]:
        for other in self.others:
            keys = possible_objects(other.layout, metadata)
            stored = head_again(other.store, keys[part])
            if stored is None:
                yield Refusal(f"{other.store.url}/{keys[part]}", "it is not there")
            else:
                yield _object(Source.STORE, other.store, stored)


def shows_nothing(error: TieredctlError) -> bool:
    """Whether bytes may be there although they could not be read: in an archive, for example, or forbidden."""
    return error.code not in _ARE_NOT_THERE


def _object(source: Source, store: ObjectStore, stored: StoredObject) -> Candidate | Refusal:
    place = stored.key if source is Source.QUARANTINE else f"{store.url.rstrip('/')}/{stored.key}"
    return _sized(source, place, stored.size, lambda: store.read(stored.key, 0, stored.size))


def _sized(source: Source, place: str, size: int, read: Callable[[], bytes]) -> Candidate | Refusal:
    if size > LARGEST_BYTES:
        return Refusal(place, f"it has {size_text(size)}, and heal takes up to {size_text(LARGEST_BYTES)}", True)
    return Candidate(source, place, read)


def demand_small(metadata: RemoteLogSegmentMetadata) -> None:
    """Raises TieredctlError `usage` for a segment whose log is not held in memory."""
    if metadata.segment_size_in_bytes > LARGEST_BYTES:
        size, most = size_text(metadata.segment_size_in_bytes), size_text(LARGEST_BYTES)
        message = f"The log of segment {metadata.segment_id} has {size}: heal takes up to {most}."
        raise TieredctlError(
            ErrorCode.USAGE, message, hint="Copy its objects from another store with the store's own tools."
        )
