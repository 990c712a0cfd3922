"""A lease in the store: one run at a time changes it.

The lease is an object that is only ever written by compare and swap. Who holds it writes it again and again; who finds
one that was not written for long takes it over. A holder that was stopped for so long finds out before its next
deletion, since it can no longer renew. How long ago it was written the store alone says: what a lease says of times was
written by some host's clock, or by anybody.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ops.guards.store_clock import StoreClock, store_clock
from tieredctl.storage.protocol import Capability, ObjectStore, StoredObject, WritableObjectStore

LEASE_MS = 5 * 60_000
"""How long a lease holds that is not renewed."""
_RELEASED_MS = 0
"""The end of a lease that was given up."""
_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class FoundLease:
    """A lease as it is in a store. Times in ms since the epoch, by the store's clock."""

    stored: StoredObject
    holder: str
    """HOST:PID."""
    purpose: str
    """The command that took it."""
    since_ms: int | None
    is_released: bool

    @property
    def until_ms(self) -> int:
        """When it may be taken over if it is not renewed before."""
        return self.stored.last_modified_ms + LEASE_MS

    def is_held(self, now_ms: int) -> bool:
        """Whether another run has to wait; `now_ms` is the store's time."""
        return not self.is_released and now_ms < self.until_ms


def find_lease(store: ObjectStore) -> FoundLease | None:
    """The lease that a run took, held or not; None where none ever did. One that cannot be read holds too."""
    stored = store.head(LEASE_KEY)
    if stored is None:
        return None
    fields = _fields(store.read(LEASE_KEY))
    since_ms = fields.get("sinceMs")
    return FoundLease(
        stored,
        _text(fields.get("holder")),
        _text(fields.get("purpose")),
        since_ms if type(since_ms) is int else None,
        fields.get("expiresMs") == _RELEASED_MS,
    )


def break_lease(store: WritableObjectStore, found: FoundLease) -> bool:
    """Frees the lease; False where it was renewed, taken or given up since it was found.

    The run that held it finds out before its next deletion.
    """
    return (
        store.replace(found.stored, _lease_text(found.holder, found.purpose, found.since_ms, _RELEASED_MS)) is not None
    )


class Hold(Protocol):
    """The right to change a store, for now."""

    @property
    def clock(self) -> StoreClock:
        """The store's."""
        ...

    def renew(self) -> None:
        """Holds on for another while. Raises TieredctlError `lease-lost` where somebody else took over."""
        ...


class Lease:
    """A lease that is held."""

    def __init__(self, store: WritableObjectStore, purpose: str, clock: StoreClock) -> None:
        """Takes the lease. Raises TieredctlError `locked` where another run holds it."""
        self.clock = clock
        self._store = store
        self._purpose = purpose
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._since_ms = clock()
        self._stored = self._taken()

    def renew(self) -> None:
        stored = self._store.replace(self._stored, self._text())
        if stored is None:
            message = f"Another run took over the lease {LEASE_KEY} of {self._store.url}."
            raise TieredctlError(ErrorCode.LEASE_LOST, message)
        self._stored = stored

    def release(self) -> None:
        """Gives it up, or removes it where nothing can be written, as on a full disk; else it runs out."""
        try:
            text = _lease_text(self._holder, self._purpose, self._since_ms, _RELEASED_MS)
            self._store.replace(self._stored, text)
        except TieredctlError:
            if Capability.CONDITIONAL_DELETE in self._store.capabilities:
                self._store.delete([self._stored])

    def _taken(self) -> StoredObject:
        for _ in range(2):
            found = find_lease(self._store)
            if found is None:
                taken = self._store.put_if_absent(LEASE_KEY, self._text())
            elif found.is_held(self.clock()):
                raise self._locked(found)
            else:
                taken = self._store.replace(found.stored, self._text())
            if taken is not None:
                return taken
        raise TieredctlError(ErrorCode.LOCKED, f"{self._store.url} is locked by a run that began at the same time.")

    def _locked(self, found: FoundLease) -> TieredctlError:
        # A time to come is as good as now: it takes no longer than a lease lasts.
        left_ms = min(found.until_ms - self.clock(), LEASE_MS)
        how = f"by {found.holder} ({found.purpose}) for {left_ms // 1000 + 1} s"
        return TieredctlError(ErrorCode.LOCKED, f"{self._store.url} is locked {how}.")

    def _text(self) -> bytes:
        return _lease_text(self._holder, self._purpose, self._since_ms, self.clock() + LEASE_MS)


@dataclass(frozen=True, slots=True)
class Unguarded:
    """Stands for a lease in a store that cannot keep one: its user sees to it that no other run meets this one."""

    clock: StoreClock

    def renew(self) -> None:
        return


@contextmanager
def lease_held(
    store: WritableObjectStore, purpose: str, clock_ms: Callable[[], int], *, unguarded: bool = False
) -> Iterator[Hold]:
    """The lease of a store, given up at the end. `clock_ms` is the host's clock.

    Raises TieredctlError: `locked` where another run holds it, `clock-skew` where host and store disagree about the
    time, `store-incapable` where the store cannot keep a lease, and its user did not say that no other run is there.
    """
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        if not unguarded:
            message = f"{store.url} cannot keep two runs apart: it does not honour conditions on writes."
            hint = "Where you know that no other run meets this one, give --no-lease and keep receipts in a file."
            raise TieredctlError(ErrorCode.STORE_INCAPABLE, message, hint=hint)
        yield Unguarded(store_clock(store, clock_ms))
        return
    lease = Lease(store, purpose, store_clock(store, clock_ms))
    try:
        yield lease
    finally:
        lease.release()


def _lease_text(holder: str, purpose: str, since_ms: int | None, expires_ms: int) -> bytes:
    """Each is another text: stores tell versions apart by their bytes."""
    fields = {"holder": holder, "purpose": purpose, "sinceMs": since_ms, "expiresMs": expires_ms}
    return json.dumps({**fields, "nonce": uuid4().hex}).encode()


def _fields(data: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else _UNKNOWN
