"""A note in a destination that a copy began: empty once each object that was written since is proven.

A run that is killed, or that could not look at what it wrote, leaves objects of the right size that nobody has looked
at. Only the note's own time counts, which is the store's.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.own_objects import COPY_KEY
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore

_BEGUN = b"A copy began, and something may be unproven."
_EARLIER_MS = 60_000
"""The servers of one store may differ so much about the time."""
_SECOND_MS = 1_000
"""Some stores report times in whole seconds."""


@dataclass(slots=True)
class Unproven:
    """The objects of a destination that an earlier run may have left unproven: by when they were written, in ms since
    the epoch, by the store's clock."""

    since_ms: int | None
    """None where there are none."""
    until_ms: int | None = None
    """When this run began, which proves what it writes itself; None before."""

    def __contains__(self, stored: StoredObject) -> bool:
        if self.since_ms is None or stored.last_modified_ms < self.since_ms - _EARLIER_MS:
            return False
        return self.until_ms is None or stored.last_modified_ms <= self.until_ms + _SECOND_MS


def unproven_in(destination: ObjectStore) -> Unproven:
    """What earlier runs may have left."""
    note = destination.head(COPY_KEY)
    return Unproven(note.last_modified_ms if note is not None and note.size else None)


def note_begun(destination: WritableObjectStore, unproven: Unproven, now_ms: int) -> None:
    """Notes that a run begins, unless an earlier one has; `now_ms` is the store's time. Raises TieredctlError `locked`
    where another run has come between since `unproven` was read."""
    note = destination.head(COPY_KEY)
    if note is None:
        note = destination.put_if_absent(COPY_KEY, _BEGUN)
    elif not note.size:
        note = destination.replace(note, _BEGUN)
    elif note.last_modified_ms != unproven.since_ms:
        note = None
    if note is None:
        message = f"Another run has copied to {destination.url} meanwhile."
        raise TieredctlError(ErrorCode.LOCKED, message, hint="Run it again.")
    unproven.until_ms = now_ms


def note_proven(destination: WritableObjectStore) -> None:
    """Empties the note: who may copy need not be allowed to delete."""
    note = destination.head(COPY_KEY)
    if note is not None:
        destination.replace(note, b"")
