"""Puts objects of segments into the store: each as a whole, and never over an object without a copy in quarantine.

After an interruption another run continues: what was written is found sound, and a damaged object is copied to the same
place in quarantine as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import has_passed
from tieredctl.ops.guards.comparison import same_bytes
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.sealed_notes import copied_bytes, note_bytes
from tieredctl.ops.healing.known_segments import KnownSegmentOfPartition, SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.object_store import Capability, StoredObject, WritableObjectStore

LOOK_AGAIN_MS = 60_000
"""How old the metadata may be by which a segment is written to: reading it may take as long as many segments do."""


def demand_conditional_writes(store: WritableObjectStore) -> None:
    """Raises TieredctlError `store-incapable` for a store that would overwrite an object written by others
    meanwhile."""
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        raise TieredctlError(ErrorCode.STORE_INCAPABLE, f"{store.url} does not support conditional writes.")


@dataclass(slots=True)
class FreshSegments:
    """What the metadata says while segments are written."""

    read_metadata: Callable[[], EventStream]
    """Reads it once more, up to its current end offsets."""
    clock_ms: Callable[[], int]
    cluster_id: str | None = None
    """The cluster of the metadata that was read last; where that names none, as it was given."""
    _known: SegmentsOnce | None = None
    _read_ms: int = 0

    def finished(self, segment_id: str) -> KnownSegmentOfPartition:
        """The segment as of at most `LOOK_AGAIN_MS` ago. Raises TieredctlError as `SegmentsOnce.finished` does."""
        if self._known is None or has_passed(LOOK_AGAIN_MS, self._read_ms, self.clock_ms()):
            return self.read_again().finished(segment_id)
        return self._known.finished(segment_id)

    def read_again(self) -> SegmentsOnce:
        """The segments as of now."""
        self._read_ms = self.clock_ms()
        stream = self.read_metadata()
        self._known, self.cluster_id = SegmentsOnce.of(stream), stream.source.cluster_id or self.cluster_id
        return self._known

    def unpromised(self, written: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Of segments, by id with the keys that were or may have been written for them, those that the metadata of now
        does not promise: each with a sentence. A broker that deletes a segment deletes nothing that is written
        afterwards."""
        segments, reasons = self.read_again(), dict[str, str]()
        for segment_id, keys in written.items():
            try:
                segments.finished(segment_id)
            except TieredctlError as error:
                reasons[segment_id] = f"{error.message} Written meanwhile, or begun to be: {', '.join(keys)}."
        return reasons


def put_or_replace(
    store: WritableObjectStore,
    key: str,
    data: bytes,
    stored: StoredObject | None,
    keep: Callable[[StoredObject], str],
    tried: list[str],
) -> str | None:
    """Writes an object where there is none, or over `stored`, of which `keep` makes a copy before. Returns the copy's
    key. Raises TieredctlError `world-changed` where another process wrote the object meanwhile, and `store-incapable`
    where the store does not write it although there is none.

    The key is added to `tried` before the object is written, since the answer may be lost, and taken out again where
    nothing was written.
    """
    copied_as = None if stored is None else keep(stored)
    tried.append(key)
    done = store.put_if_absent(key, data) if stored is None else store.replace(stored, data)
    # A retry after a lost answer finds the object already written.
    if done is None and not _is_there(store, key, data):
        tried.remove(key)
        if stored is None and store.head(key) is None:
            message = f"{store.url} has no {key}, and refuses to write one on condition that it has none."
            hint = "It may count a delete marker: delete that, which brings the last version back, and run it again."
            raise TieredctlError(ErrorCode.STORE_INCAPABLE, message, hint=hint)
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{key} was written by another process since it was checked.")
    return copied_as


def demand_held(store: WritableObjectStore, key: str, data: bytes) -> None:
    """The store's answer to a write is only its word. Raises TieredctlError `world-changed` where the object does not
    have the bytes that were written, also when it is read again over new connections."""
    if not _is_there(store, key, data) and not _is_there(store.reconnected(), key, data):
        message = f"{key} does not hold what was written: the store did not keep it, or another process wrote it since."
        raise TieredctlError(ErrorCode.WORLD_CHANGED, message)


@dataclass(frozen=True, slots=True)
class Quarantining:
    """Copies a segment's objects to quarantine."""

    store: WritableObjectStore
    key: bytes | None
    """Seals the notes of which bytes the copies hold."""
    cluster_id: str | None
    segment_id: str

    def __call__(self, stored: StoredObject) -> str:
        """The copy's key. Raises TieredctlError `world-changed` where the object cannot be copied as it was."""
        version = sha256(stored.version.encode()).hexdigest()[:12]
        plan_id = f"{self.segment_id}-{version}"
        key = quarantine_key(self.cluster_id, plan_id, stored)
        copy = self.store.copy(stored, key)
        compared = None if copy is None else same_bytes(self.store, stored, copy)
        if copy is None or compared is None:
            message = f"{stored.key} could not be copied to quarantine and was not changed."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
        note_bytes(self.store, self.key, plan_id, [copied_bytes(copy, compared.checksums)])
        return key


def _is_there(store: WritableObjectStore, key: str, data: bytes) -> bool:
    stored = store.head(key)
    return stored is not None and stored.size == len(data) and store.read(key) == data
