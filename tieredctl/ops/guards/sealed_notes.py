"""Notes that tieredctl keeps in a store for its own later runs, sealed with the key that signs plans: whoever may write
to the store may alter or forge one, and it is not opened then.

Seals what is applied later: a digest of all its bytes, and a signature with a key that only those have who may
apply it.

Bytes from somebody without the key may be well-formed and still claim anything.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple
from uuid import uuid4

from tieredctl.errors import TieredctlError
from tieredctl.formats.removal_files import encode_seal
from tieredctl.model.removal import Seal
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ports.object_store import (
    CONCERN_EVERY_OBJECT,
    MOST_DELETED_AT_ONCE,
    ObjectStore,
    StoredObject,
    WritableObjectStore,
)

_LARGEST_NOTE_BYTES = 8 << 20
"""A batch of the longest keys takes less space."""
_NOTES_AT_ONCE = 256


class SealedNote(NamedTuple):
    """A note as it was found."""

    stored: StoredObject
    body: bytes | None
    """None where it was not sealed with this key, was altered since, or cannot be read."""


def write_note(store: WritableObjectStore, key: bytes, folder: str, body: bytes) -> None:
    """Raises TieredctlError as writing does."""
    store.write(f"{folder}{uuid4().hex}.json", body + seal_of(key, body))


def read_notes(
    store: ObjectStore, key: bytes | None, folder: str, *, since_ms: int | None = None, most: int | None = None
) -> Iterator[SealedNote]:
    """The notes in a folder, `most` of them at most: those that the store dates since `since_ms`, in ms. A folder that
    may not be listed is one note that cannot be opened. Raises TieredctlError if the store as a whole does not answer.
    """

    def read(note: StoredObject) -> SealedNote:
        if note.size > _LARGEST_NOTE_BYTES:
            return SealedNote(note, None)
        try:
            return SealedNote(note, opened(store.read(note.key, 0, _LARGEST_NOTE_BYTES), key))
        except TieredctlError as error:
            _demand_of_one_object(error)
            return SealedNote(note, None)

    try:
        listed = islice(store.list(folder), most)
        notes = [note for note in listed if since_ms is None or note.last_modified_ms >= since_ms]
    except TieredctlError as error:
        _demand_of_one_object(error)
        yield SealedNote(StoredObject(folder, 0, 0, ""), None)
        return
    for start in range(0, len(notes), _NOTES_AT_ONCE):
        yield from in_parallel(store, read, notes[start : start + _NOTES_AT_ONCE])


def delete_stale_notes(
    store: WritableObjectStore, notes: Sequence[SealedNote], is_needed: Callable[[bytes], bool]
) -> None:
    """Deletes those that are open and not needed, as far as it can: later runs do so too."""

    def is_stale(note: SealedNote) -> bool:
        return note.body is not None and not is_needed(note.body)

    with suppress(TieredctlError):
        stale = [note.stored for note, is_it in zip(notes, in_parallel(store, is_stale, notes), strict=True) if is_it]
        for start in range(0, len(stale), MOST_DELETED_AT_ONCE):
            store.delete(stale[start : start + MOST_DELETED_AT_ONCE])


def opened(data: bytes, key: bytes | None) -> bytes | None:
    """What was sealed: a body of lines, and `seal_of` it behind them. None if any byte differs, and without a key."""
    body_end = data.rfind(b"\n", 0, -1) + 1
    body, seal = data[:body_end], data[body_end:]
    return body if key is not None and hmac.compare_digest(seal, seal_of(key, body)) else None


def seal_of(key: bytes, body: bytes) -> bytes:
    """The line that seals a body."""
    sealer = Sealer(key)
    sealer.update(body)
    return encode_seal(sealer.seal())


def _demand_of_one_object(error: TieredctlError) -> None:
    """Raises an error that every other object would meet too."""
    if error.code in CONCERN_EVERY_OBJECT:
        raise error


class Sealer:
    """Consumes bytes piece by piece."""

    def __init__(self, key: bytes | None) -> None:
        """Without a key there is no signature."""
        self._digest = hashlib.sha256()
        self._signature = None if key is None else hmac.new(key, digestmod=hashlib.sha256)

    def update(self, data: bytes) -> None:
        self._digest.update(data)
        if self._signature is not None:
            self._signature.update(data)

    def seal(self) -> Seal:
        """Of everything consumed so far."""
        return Seal(self._digest.hexdigest(), None if self._signature is None else self._signature.hexdigest())


def is_signed_alike(found: Seal, made: Seal) -> bool:
    """Whether a seal that was found has the same signature as one made with the key."""
    if found.signature is None or made.signature is None:
        return False
    return hmac.compare_digest(found.signature.encode(), made.signature.encode())
