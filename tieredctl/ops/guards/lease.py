"""A lease in the store: one run at a time changes it.

The lease is an object that is only written by compare and swap. Its holder rewrites it regularly; a run that finds one
that was not rewritten for long takes it over. A holder that was suspended that long notices before its next deletion,
since it can no longer renew. Only the store knows how long ago it was written: times inside the lease come from some
host's clock, or from anybody.
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
from tieredctl.ports.object_store import Capability, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.process.interruption import critical_section, ending

LEASE_MS = 5 * 60_000
"""How long a lease holds without being renewed."""
_RELEASED_MS = 0
"""The end of a lease that was released."""
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
        """When it may be taken over unless it is renewed before."""
        return self.stored.last_modified_ms + LEASE_MS

    def is_held(self, now_ms: int) -> bool:
        """Whether another run has to wait; `now_ms` is the store's time."""
        return not self.is_released and now_ms < self.until_ms


def find_lease(store: ObjectStore) -> FoundLease | None:
    """The lease that a run took, held or not; None if no run ever did. One that cannot be read counts as held."""
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


def break_lease(store: WritableObjectStore, lease: FoundLease) -> bool:
    """Frees the lease; False if it was renewed, taken or released since it was found.

    The run that held it notices before its next deletion.
    """
    return (
        store.replace(lease.stored, _lease_text(lease.holder, lease.purpose, lease.since_ms, _RELEASED_MS)) is not None
    )


class Hold(Protocol):
    """The right to change a store, for now."""

    @property
    def clock(self) -> StoreClock:
        """The store's."""
        ...

    def renew(self) -> None:
        """Extends the hold. Raises TieredctlError `lease-lost` if another run took over."""
        ...


class Lease:
    """A lease that is held."""

    def __init__(self, store: WritableObjectStore, purpose: str, clock: StoreClock) -> None:
        """Takes the lease. Raises TieredctlError `locked` if another run holds it."""
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
        """Releases it, or removes it where nothing can be written, as on a full disk; otherwise it expires."""
        try:
            text = _lease_text(self._holder, self._purpose, self._since_ms, _RELEASED_MS)
            self._store.replace(self._stored, text)
        except TieredctlError:
            if Capability.CONDITIONAL_DELETE in self._store.capabilities:
                self._store.delete([self._stored])

    def _taken(self) -> StoredObject:
        for _ in range(2):
            lease = find_lease(self._store)
            if lease is None:
                taken = self._store.put_if_absent(LEASE_KEY, self._text())
            elif lease.is_held(self.clock()):
                raise self._locked(lease)
            else:
                taken = self._store.replace(lease.stored, self._text())
            if taken is not None:
                return taken
        raise TieredctlError(ErrorCode.LOCKED, f"{self._store.url} is locked by a run that started at the same time.")

    def _locked(self, lease: FoundLease) -> TieredctlError:
        # A time in the future counts as now: nobody waits longer than a lease lasts.
        left_ms = min(lease.until_ms - self.clock(), LEASE_MS)
        how = f"by {lease.holder} ({lease.purpose}) for {left_ms // 1000 + 1} s"
        return TieredctlError(ErrorCode.LOCKED, f"{self._store.url} is locked {how}.")

    def _text(self) -> bytes:
        return _lease_text(self._holder, self._purpose, self._since_ms, self.clock() + LEASE_MS)


@dataclass(frozen=True, slots=True)
class Unguarded:
    """Stands for a lease in a store that cannot keep one: the user makes sure that no other run is active."""

    clock: StoreClock

    def renew(self) -> None:
        return


@contextmanager
def lease_held(
    store: WritableObjectStore, purpose: str, clock_ms: Callable[[], int], *, unguarded: bool = False
) -> Iterator[Hold]:
    """The lease of a store, released at the end. `clock_ms` is the host's clock.

    Raises TieredctlError: `locked` if another run holds it, `clock-skew` if host and store disagree about the time,
    `store-incapable` if the store cannot keep a lease and the caller does not go without one (`unguarded`).
    """
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        if not unguarded:
            message = f"{store.url} cannot keep a lease: it does not honour conditional writes."
            hint = "Where there is --no-lease, and no other run is active, give it, and keep receipts in a file."
            raise TieredctlError(ErrorCode.STORE_INCAPABLE, message, hint=hint)
        yield Unguarded(store_clock(store, clock_ms))
        return
    lease: Lease | None = None
    try:
        with critical_section():
            lease = Lease(store, purpose, store_clock(store, clock_ms))
        yield lease
    finally:
        if lease is not None:
            with ending():
                lease.release()


def _lease_text(holder: str, purpose: str, since_ms: int | None, expires_ms: int) -> bytes:
    """Never the same text twice: some stores distinguish versions by their bytes."""
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
