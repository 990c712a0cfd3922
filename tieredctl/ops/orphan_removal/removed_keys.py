"""Which objects tieredctl itself removed from a store, recorded there: they are missing, but not lost.

Each note is an object, gzipped JSON: the keys of a batch that is about to be deleted, or that was put back. It is
written before the deletion, so that even a run that is killed leaves no deletion without a note. What it did not get to
delete still exists, so the note does no harm.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.own_objects import REMOVED_FOLDER
from tieredctl.storage.protocol import ObjectStore, WritableObjectStore

_LARGEST_NOTE_BYTES = 16 << 20
"""Unpacked; a batch of the longest keys takes less space."""
_NOTES_AT_ONCE = 256
_DIGEST_BYTES = 8

Digests = npt.NDArray[np.uint64]


def note_removed(store: WritableObjectStore, plan_id: str, keys: Sequence[str]) -> None:
    """Notes what a plan is about to remove."""
    _write(store, plan_id, "removed", keys)


def note_put_back(store: WritableObjectStore, plan_id: str, keys: Sequence[str]) -> None:
    """Notes what is back in its place, or about to be."""
    _write(store, plan_id, "putBack", keys)


@dataclass(frozen=True, slots=True)
class RemovedKeys:
    """The keys of what tieredctl removed and did not put back: an eight-byte digest per key."""

    digests: Digests
    """Ascending."""
    unreadable: Sequence[str] = ()
    """The notes that could not be read: their keys are missing here."""
    plan_ids: Sequence[str] = ()
    plan_numbers: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Of each digest, by which plan: a row of `plan_ids`."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.among([key])[0])

    def __len__(self) -> int:
        return len(self.digests)

    def plan_of(self, key: str) -> str | None:
        """The id of a plan that removed a key; None where none did."""
        if key not in self:
            return None
        place = int(np.searchsorted(self.digests, _digests([key])[0]))
        return self.plan_ids[int(self.plan_numbers[place])]

    def among(self, keys: Iterable[str]) -> npt.NDArray[np.bool_]:
        """For each key, whether it was removed."""
        asked = _digests(keys)
        if not len(self.digests):
            return np.zeros(len(asked), np.bool_)
        places = np.minimum(np.searchsorted(self.digests, asked), len(self.digests) - 1)
        return np.asarray(self.digests[places] == asked, np.bool_)


def read_removed_keys(store: ObjectStore) -> RemovedKeys:
    """What tieredctl removed from a store by any plan, and did not put back since."""
    by_plan: dict[str, _Collected] = {}
    unreadable = []
    for plan_id, where, note in _notes(store, ""):
        if note is None:
            unreadable.append(where)
        else:
            by_plan.setdefault(plan_id, _Collected()).add(note)
    removed = [collected.not_put_back() for collected in by_plan.values()]
    digests, places = np.unique(_joined(removed), return_index=True)
    numbers = np.repeat(np.arange(len(removed)), [len(one) for one in removed])
    return RemovedKeys(digests, unreadable, list(by_plan), numbers[places])


def keys_removed_since(store: ObjectStore, since_ms: int) -> Iterator[str]:
    """The keys that were removed, or about to be, since a time in ms by the store's clock; put back or not."""
    for _, _, note in _notes(store, "", since_ms):
        if note is not None and not note.is_put_back:
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


class _Collected:
    """The contents of one plan's notes."""

    def __init__(self) -> None:
        self._removed: list[Digests] = []
        self._put_back: list[Digests] = []

    def add(self, note: _Note) -> None:
        (self._put_back if note.is_put_back else self._removed).append(_digests(note.keys))

    def not_put_back(self) -> Digests:
        return np.setdiff1d(_joined(self._removed), _joined(self._put_back))


def _notes(store: ObjectStore, below: str, since_ms: int = 0) -> Iterator[tuple[str, str, _Note | None]]:
    """(plan id, the note's own key, the note) of each; None for one that cannot be read."""

    def read(keys: Sequence[str]) -> Iterator[tuple[str, str, _Note | None]]:
        for key, note in zip(keys, in_parallel(store, lambda key: _decoded(store.read(key)), keys), strict=True):
            yield key.removeprefix(REMOVED_FOLDER).partition("/")[0], key, note

    batch: list[str] = []
    for stored in store.list(REMOVED_FOLDER + below):
        if stored.last_modified_ms < since_ms:
            continue
        batch.append(stored.key)
        if len(batch) == _NOTES_AT_ONCE:
            yield from read(batch)
            batch = []
    yield from read(batch)


def _write(store: WritableObjectStore, plan_id: str, what: str, keys: Sequence[str]) -> None:
    if keys:
        data = gzip.compress(json.dumps({what: keys}).encode("ascii"), mtime=0)
        store.write(f"{REMOVED_FOLDER}{plan_id}/{uuid4().hex}.json.gz", data)


def _decoded(data: bytes) -> _Note | None:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        fields = json.loads(unpacker.decompress(data, _LARGEST_NOTE_BYTES))
        ((what, keys),) = fields.items()
    except (zlib.error, ValueError, AttributeError, RecursionError):
        return None
    if not unpacker.eof:  # cut short, or far larger than what tieredctl writes
        return None
    if what not in ("removed", "putBack") or not isinstance(keys, list) or not all(type(key) is str for key in keys):
        return None
    return _Note(what == "putBack", keys)


def _digests(keys: Iterable[str]) -> Digests:
    encoded = (key.encode("utf-8", "surrogatepass") for key in keys)
    return np.frombuffer(b"".join(blake2b(key, digest_size=_DIGEST_BYTES).digest() for key in encoded), np.uint64)


def _joined(parts: Sequence[Digests]) -> Digests:
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
