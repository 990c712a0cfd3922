"""Which bytes the copies in quarantine hold, noted when each copy was compared with its original.

A note is sealed with the key that signs plans: whoever may write to the store may put other bytes into quarantine, but
cannot note them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.removal_files import BYTES_NOTE
from tieredctl.model.removal import BytesNote, CopiedBytes
from tieredctl.ops.guards.own_objects import BYTES_OF_COPIES, bytes_of_copies
from tieredctl.ops.guards.quarantine_keys import quarantined
from tieredctl.ops.guards.sealed_notes import delete_stale_notes, read_notes, write_note
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore


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
        return copied is None or any(store.head(one.key) is not None for one in copied)

    with suppress(TieredctlError):
        delete_stale_notes(store, list(read_notes(store, key, BYTES_OF_COPIES)), is_needed)


def _copied(body: bytes | None, store_url: str) -> Sequence[CopiedBytes] | None:
    """What a note reports; None if it cannot be opened, or is about another store."""
    try:
        note = None if body is None else BYTES_NOTE.decode(body)
    except DecodeError:  # from another release, or not such a note
        return None
    return note.copied if note is not None and note.store == store_url else None
