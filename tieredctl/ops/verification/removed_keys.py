"""Records of the objects that tieredctl itself removed from a store, kept there: they are missing, but not lost.

Each note is an object, gzipped JSON: the keys of a batch that is about to be deleted, or that was put back. It is
written before the deletion, so that even a run that is killed leaves no deletion without a note. What it did not get to
delete still exists, so the note does no harm.

What was removed is sealed with the key that signs plans: whoever may write to the store could hide a loss otherwise.
What was put back excuses nothing, and needs no seal.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.own_objects import REMOVED_FOLDER
from tieredctl.ops.guards.sealed_notes import opened, seal_of
from tieredctl.ops.verification.options import RemovedBy
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore

_LARGEST_NOTE_BYTES = 16 << 20
"""Unpacked; a batch of the longest keys takes less space."""
_NOTES_AT_ONCE = 256
_DIGEST_BYTES = 8
_REMOVED, _PUT_BACK, _PLAN, _STORE = "removed", "putBack", "planId", "store"

Digests = npt.NDArray[np.uint64]


def note_removed(store: WritableObjectStore, key: bytes | None, plan_id: str, keys: Sequence[str]) -> None:
    """Notes what a plan is about to remove; sealed, if there is a key."""
    body = json.dumps({_REMOVED: keys, _PLAN: plan_id, _STORE: store.url}).encode("ascii") + b"\n"
    _write(store, plan_id, keys, body + (b"" if key is None else seal_of(key, body)))


def note_put_back(store: WritableObjectStore, plan_id: str, keys: Sequence[str]) -> None:
    """Notes what is back in its place, or about to be."""
    _write(store, plan_id, keys, json.dumps({_PUT_BACK: keys}).encode("ascii"))


@dataclass(frozen=True, slots=True)
class RemovedKeys:
    """The keys of what tieredctl removed and did not put back: an eight-byte digest per key."""

    digests: Digests
    """Ascending."""
    unreadable: Sequence[str] = ()
    """The notes that could not be read: their keys are missing here."""
    plans: Sequence[RemovedBy] = ()
    plan_numbers: Sequence[int] | npt.NDArray[np.int64] = ()
    """The plan of each digest: a row of `plans`. A sealed note comes before one that anybody could have made."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.among([key])[0])

    def __len__(self) -> int:
        return len(self.digests)

    def plan_of(self, key: str) -> RemovedBy | None:
        """A plan that removed a key; None where none did."""
        if key not in self:
            return None
        place = int(np.searchsorted(self.digests, _digests([key])[0]))
        return self.plans[int(self.plan_numbers[place])]

    def is_proven(self, key: str) -> bool:
        """Whether a sealed note says that a plan removed a key."""
        plan = self.plan_of(key)
        return plan is not None and plan.is_sealed

    def among(self, keys: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Whether each key was removed."""
        asked = _digests(keys)
        if not len(self.digests):
            return np.zeros(len(asked), np.bool_)
        places = np.minimum(np.searchsorted(self.digests, asked), len(self.digests) - 1)
        return np.asarray(self.digests[places] == asked, np.bool_)


def read_removed_keys(store: ObjectStore, key: bytes | None) -> RemovedKeys:
    """What tieredctl removed from a store by any plan, and did not put back since. `key` opens the seals."""
    removed: dict[RemovedBy, list[Digests]] = {}
    put_back: dict[str, list[Digests]] = {}
    unreadable = []
    for plan_id, where, note in _notes(store, "", key=key):
        if note is None:
            unreadable.append(where)
        elif note.is_put_back:
            put_back.setdefault(plan_id, []).append(_digests(note.keys))
        else:
            removed.setdefault(RemovedBy(plan_id, note.is_sealed), []).append(_digests(note.keys))
    plans = sorted(removed, key=lambda plan: not plan.is_sealed)
    gone = [np.setdiff1d(_joined(removed[one]), _joined(put_back.get(one.plan_id, ()))) for one in plans]
    digests, places = np.unique(_joined(gone), return_index=True)
    numbers = np.repeat(np.arange(len(gone)), [len(one) for one in gone])
    return RemovedKeys(digests, unreadable, plans, numbers[places])


def keys_removed_since(store: ObjectStore, since_ms: int, key: bytes | None) -> Iterator[str]:
    """The keys that were removed, or about to be, since a time in ms by the store's clock; put back or not. `key` opens
    the seals: without one that fits, a note counts for nothing."""
    for _, _, note in _notes(store, "", since_ms, key):
        if note is not None and note.is_sealed:
            yield from note.keys


def keys_removed_by(store: ObjectStore, plan_id: str) -> Iterator[str]:
    """The keys that one plan removed or was about to, put back or not, except those in unreadable notes."""
    for _, _, note in _notes(store, f"{plan_id}/"):
        if note is not None and not note.is_put_back:
            yield from note.keys


def keys_put_back(store: ObjectStore) -> frozenset[str]:
    """The keys that any plan put back. Raises TieredctlError `metadata-incomplete` where a note cannot be read."""
    keys = set[str]()
    for _, where, note in _notes(store, ""):
        if note is None:
            message = f"{where} in {store.url} cannot be read: what was put back is not known."
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, message, hint="Restore it, or move it away.")
        if note.is_put_back:
            keys.update(note.keys)
    return frozenset(keys)


class _Note(NamedTuple):
    is_put_back: bool
    keys: Sequence[str]
    is_sealed: bool


def _notes(
    store: ObjectStore, below: str, since_ms: int = 0, key: bytes | None = None
) -> Iterator[tuple[str, str, _Note | None]]:
    """(plan id, the note's own name, the note) of each; None for one that cannot be read."""

    def note_in(name: str) -> _Note | None:
        return _decoded(store.read(name), key, _plan_of(name), store.url)

    def read(names: Sequence[str]) -> Iterator[tuple[str, str, _Note | None]]:
        for name, note in zip(names, in_parallel(store, note_in, names), strict=True):
            yield _plan_of(name), name, note

    batch: list[str] = []
    for stored in store.list(REMOVED_FOLDER + below):
        if stored.last_modified_ms < since_ms:
            continue
        batch.append(stored.key)
        if len(batch) == _NOTES_AT_ONCE:
            yield from read(batch)
            batch = []
    yield from read(batch)


def _plan_of(name: str) -> str:
    return name.removeprefix(REMOVED_FOLDER).partition("/")[0]


def _write(store: WritableObjectStore, plan_id: str, keys: Sequence[str], data: bytes) -> None:
    if keys:
        store.write(f"{REMOVED_FOLDER}{plan_id}/{uuid4().hex}.json.gz", gzip.compress(data, mtime=0))


def _decoded(packed: bytes, key: bytes | None, plan_id: str, store_url: str) -> _Note | None:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(packed, _LARGEST_NOTE_BYTES)
        sealed = opened(data, key)
        fields = json.loads(data.partition(b"\n")[0] if sealed is None else sealed)
        (what, keys), *about = fields.items()
    except (zlib.error, ValueError, AttributeError, RecursionError):
        return None
    if not unpacker.eof:  # cut short, or far larger than what tieredctl writes
        return None
    if what not in (_REMOVED, _PUT_BACK) or not isinstance(keys, list) or not all(type(one) is str for one in keys):
        return None
    if {name for name, _ in about} - {_PLAN, _STORE}:
        return None
    # A sealed note could have been put into another plan's folder, or into another store.
    is_sealed = sealed is not None and (fields.get(_PLAN), fields.get(_STORE)) == (plan_id, store_url)
    return _Note(what == _PUT_BACK, keys, is_sealed and what == _REMOVED)


def _digests(keys: Iterable[str]) -> Digests:
    encoded = (key.encode("utf-8", "surrogatepass") for key in keys)
    return np.frombuffer(b"".join(blake2b(key, digest_size=_DIGEST_BYTES).digest() for key in encoded), np.uint64)


def _joined(parts: Sequence[Digests]) -> Digests:
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
