"""The original times of objects that tieredctl copied: most stores date a copy by when it was made.

Whoever copies an object notes the original's time, sealed with the key that signs plans: nobody else can make an
object look older than it is. A note is about one version of one object in one store, as the store itself reported it,
and about nothing else. An object without a note is as old as the store reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.arrow_columns import bytes_array
from tieredctl.formats.removal_files import TIME_NOTE
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.key_text import key_bytes, key_text
from tieredctl.model.removal import OriginalTime, TimeNote
from tieredctl.ops.guards.sealed_notes import delete_stale_notes, read_notes, write_note
from tieredctl.ports.object_store import Capability, ObjectStore, StoredObject, WritableObjectStore

_SECOND_MS = 1_000
_MOST_NOTES = 10_000
_Version = tuple[str, int, int, str]
"""Identifies a version of an object: key, size in bytes, time in seconds, and the store's name for it."""


class OriginalTimes:
    """What notes report; nothing if there are none."""

    def __init__(self, noted: Iterable[OriginalTime] = ()) -> None:
        self._noted: dict[_Version, int] = {}
        for one in noted:
            version = _version(one.key, one.size, one.last_modified_ms, one.version)
            # Of two that differ, the later time.
            self._noted[version] = max(one.original_ms, self._noted.get(version, one.original_ms))
        keys = {version[0] for version in self._noted}
        self._keys = bytes_array([key_bytes(key) for key in keys])

    def noted_ms(self, stored: StoredObject) -> int | None:
        """Since when a store has had the bytes of an object, in ms; None if no note is about it."""
        return self._noted.get(_version(stored.key, stored.size, stored.last_modified_ms, stored.version))

    def of(self, stored: StoredObject) -> int:
        """The same, by the store's own time if no note is about it; never later than that."""
        noted_ms = self.noted_ms(stored)
        return stored.last_modified_ms if noted_ms is None else min(noted_ms, stored.last_modified_ms)

    def of_columns(
        self, keys: pa.BinaryArray, sizes: Ints, last_modified_ms: Ints, versions: pa.BinaryArray, among: Flags
    ) -> Ints:
        """The original times of the objects that `among` flags; the others' times are the store's."""
        if not self._noted:
            return last_modified_ms
        times = last_modified_ms.copy()
        have_notes = pc.is_in(keys, value_set=self._keys).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(have_notes & among).tolist():
            key, version = key_text(keys[row].as_py()), versions[row].as_py()
            if version is not None:
                times[row] = self.of(StoredObject(key, int(sizes[row]), int(times[row]), version.decode()))
        return times


NO_ORIGINAL_TIMES = OriginalTimes()


def note_original_times(
    store: WritableObjectStore, key: bytes | None, folder: str, copied: Sequence[OriginalTime]
) -> None:
    """Notes the original times of copied objects; does nothing without a key, or where copies keep these times.

    Raises TieredctlError as writing does if a note cannot be made.
    """
    if key is None or not copied or Capability.MODIFICATION_TIMES in store.capabilities:
        return
    write_note(store, key, folder, TIME_NOTE.encode(TimeNote(store.url, tuple(copied))))


def read_original_times(
    store: ObjectStore, key: bytes | None, folder: str, since_ms: int | None = None
) -> OriginalTimes:
    """What the notes that were sealed with a key report.

    An object is older than its note: whoever asks only for objects younger than `since_ms`, by the store's time in ms,
    needs no older notes. A note that cannot be read is ignored. Raises TieredctlError if the store as a whole does not
    answer.
    """
    if key is None:
        return NO_ORIGINAL_TIMES
    notes = read_notes(store, key, folder, since_ms=since_ms, most=_MOST_NOTES)
    return OriginalTimes(one for note in notes for one in _copied(note.body, store.url))


def forget_original_times(store: WritableObjectStore, key: bytes | None, folder: str) -> None:
    """Deletes notes about objects that are gone or were rewritten, as far as it can: later runs do so too."""
    if key is None or Capability.MODIFICATION_TIMES in store.capabilities:
        return

    def is_needed(body: bytes) -> bool:
        noted = _copied(body, store.url)
        times = OriginalTimes(noted)
        current = (store.head(one.key) for one in noted)
        return not noted or any(stored is not None and times.noted_ms(stored) is not None for stored in current)

    with suppress(TieredctlError):
        delete_stale_notes(store, list(read_notes(store, key, folder, most=_MOST_NOTES)), is_needed)


def _copied(body: bytes | None, store_url: str) -> Sequence[OriginalTime]:
    """What a note reports; nothing if it is not about this store."""
    try:
        note = None if body is None else TIME_NOTE.decode(body)
    except DecodeError:  # from another release, or not a note but a plan
        return ()
    return note.copied if note is not None and note.store == store_url else ()


def _version(key: str, size: int, last_modified_ms: int, version: str) -> _Version:
    # A store may report times more exactly in a listing than in an answer about one object.
    return key, size, last_modified_ms // _SECOND_MS, version
