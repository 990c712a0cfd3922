"""Notes that tieredctl keeps in a store for its own later runs, sealed with the key that signs plans: whoever may write
to the store may alter or forge one, and it is not opened then.

Seals what is applied later: a digest of all its bytes, and a signature with a key that only those have who may
apply it.

Bytes from somebody without the key may be well-formed and still claim anything.

Which bytes the copies in quarantine hold, noted when each copy was compared with its original.

A note is sealed with the key that signs plans: whoever may write to the store may put other bytes into quarantine, but
cannot note them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from os.path import commonprefix
from typing import NamedTuple
from uuid import uuid4

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.removal_files import BYTES_NOTE, encode_seal
from tieredctl.model.removal import BytesNote, CopiedBytes, Seal
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.own_objects import BYTES_OF_COPIES, bytes_of_copies
from tieredctl.ops.guards.quarantine_keys import quarantined
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
        """The seal of everything consumed so far."""
        return Seal(self._digest.hexdigest(), None if self._signature is None else self._signature.hexdigest())


def is_signed_alike(stored: Seal, made: Seal) -> bool:
    """Whether a seal that was found has the same signature as one made with the key."""
    if stored.signature is None or made.signature is None:
        return False
    return hmac.compare_digest(stored.signature.encode(), made.signature.encode())


class NotedBytes(NamedTuple):
    """What the notes of a plan report."""

    by_original: Mapping[str, Sequence[CopiedBytes]]
    """By the key of the original: each copy that was made of it."""
    are_all_open: bool
    """Whether every note there could be opened: sealed with this key, and unaltered."""


def copied_bytes(copy: StoredObject, checksums: Mapping[str, str]) -> CopiedBytes:
    """What there is to note of a copy."""
    return CopiedBytes(copy.key, copy.size, copy.last_modified_ms, copy.version, checksums)


def note_bytes(store: WritableObjectStore, key: bytes | None, plan_id: str, copied: Sequence[CopiedBytes]) -> None:
    """Notes which bytes a plan's copies hold; does nothing without a key. Raises TieredctlError as writing does if a
    note cannot be made."""
    if key is not None and copied:
        write_note(store, key, bytes_of_copies(plan_id), BYTES_NOTE.encode(BytesNote(store.url, tuple(copied))))


def read_noted_bytes(store: ObjectStore, key: bytes | None, plan_id: str) -> NotedBytes:
    """What the notes about a plan's copies report. Raises TieredctlError if the store as a whole does not answer."""
    by_original: dict[str, list[CopiedBytes]] = {}
    are_all_open = True
    for note in read_notes(store, key, bytes_of_copies(plan_id)):
        copied = _copied(note.body, store.url)
        are_all_open = are_all_open and copied is not None
        for one in copied or ():
            original = quarantined(one.key)
            # A sealed note could have been put into another plan's folder.
            if original is not None and original.plan_id == plan_id:
                by_original.setdefault(original.key, []).append(one)
    return NotedBytes(by_original, are_all_open)


def forget_noted_bytes(store: WritableObjectStore, key: bytes | None) -> None:
    """Deletes notes about copies that are gone, as far as it can: later runs do so too."""
    if key is None:
        return

    def is_needed(body: bytes) -> bool:
        copied = _copied(body, store.url)
        return copied is None or _is_any_there(store, [one.key for one in copied])

    with suppress(TieredctlError):
        delete_stale_notes(store, list(read_notes(store, key, BYTES_OF_COPIES)), is_needed)


def _is_any_there(store: ObjectStore, keys: Sequence[str]) -> bool:
    """Asked for by name, and listed where the store denies all: without its note a copy that is there proves nothing
    any more."""
    if not keys or any(store.head(key) is not None for key in keys):
        return bool(keys)
    listed = store.list(commonprefix(keys))  # noqa: RUF071 - a prefix of keys is compared as text
    last, names = max(keys), set(keys)
    return any(one.key in names for one in takewhile(lambda one: one.key <= last, listed))


def _copied(body: bytes | None, store_url: str) -> Sequence[CopiedBytes] | None:
    """What a note reports; None if it cannot be opened, or is about another store."""
    try:
        note = None if body is None else BYTES_NOTE.decode(body)
    except DecodeError:  # from another release, or not such a note
        return None
    return note.copied if note is not None and note.store == store_url else None
