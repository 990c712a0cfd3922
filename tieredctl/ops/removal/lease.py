"""A lease in the store: one run at a time changes it.

The lease is an object that is only ever written by compare and swap. Who holds it writes it anew again and again; who
finds one that was not written for long takes it over. A holder that was stopped for so long finds out before its next
deletion, since it can no longer renew.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from uuid import uuid4

from tieredctl.errors import TieredctlError
from tieredctl.ops.removal.own_objects import LEASE_KEY
from tieredctl.storage.protocol import Capability, StoredObject, WritableObjectStore

LEASE_MS = 5 * 60_000
"""How long a lease holds that is not renewed."""


class Hold(Protocol):
    """The right to change a store, for now."""

    def renew(self) -> None:
        """Holds on for another while. Raises TieredctlError `lease-lost` where somebody else took over."""
        ...


class Lease:
    """A lease that is held."""

    def __init__(
        self, store: WritableObjectStore, purpose: str, clock_ms: Callable[[], int], lasts_ms: int = LEASE_MS
    ) -> None:
        """Takes the lease. Raises TieredctlError `locked` where another run holds it."""
        self._store = store
        self._purpose = purpose
        self._clock_ms = clock_ms
        self._lasts_ms = lasts_ms
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._stored = self._taken()

    def renew(self) -> None:
        stored = self._store.replace(self._stored, self._text(self._lasts_ms))
        if stored is None:
            message = f"Another run took over the lease {LEASE_KEY} of {self._store.url}."
            raise TieredctlError("lease-lost", message)
        self._stored = stored

    def release(self) -> None:
        """Gives it up; where that fails, it runs out."""
        with suppress(TieredctlError):
            self._store.replace(self._stored, self._text(0))

    def _taken(self) -> StoredObject:
        for _ in range(2):
            found = self._store.head(LEASE_KEY)
            if found is None:
                taken = self._store.put_if_absent(LEASE_KEY, self._text(self._lasts_ms))
            else:
                self._demand_expired(found)
                taken = self._store.replace(found, self._text(self._lasts_ms))
            if taken is not None:
                return taken
        raise self._locked("by a run that began at the same time")

    def _demand_expired(self, found: StoredObject) -> None:
        held = _decoded(self._store.read(LEASE_KEY))
        # What cannot be read holds from when it was written.
        expires_ms = held.get("expiresMs", found.last_modified_ms + self._lasts_ms)
        left_ms = expires_ms - self._clock_ms()
        if left_ms > 0:
            raise self._locked(f"by {held.get('holder', '?')} ({held.get('purpose', '?')}) for {left_ms // 1000 + 1} s")

    def _locked(self, how: str) -> TieredctlError:
        return TieredctlError("locked", f"{self._store.url} is locked {how}.")

    def _text(self, lasts_ms: int) -> bytes:
        """Each is another text: stores tell versions apart by their bytes."""
        expires_ms = self._clock_ms() + lasts_ms
        fields = {"holder": self._holder, "purpose": self._purpose, "expiresMs": expires_ms, "nonce": uuid4().hex}
        return json.dumps(fields).encode()


class Unguarded:
    """Stands for a lease in a store that cannot keep one: its user sees to it that no other run meets this one."""

    def renew(self) -> None:
        return


@contextmanager
def lease_held(
    store: WritableObjectStore, purpose: str, clock_ms: Callable[[], int], *, unguarded: bool = False
) -> Iterator[Hold]:
    """The lease of a store, given up at the end.

    Raises TieredctlError: `locked` where another run holds it, `store-incapable` where the store cannot keep one, and
    its user did not say that no other run is there.
    """
    if Capability.CONDITIONAL_WRITE not in store.capabilities:
        if not unguarded:
            message = f"{store.url} cannot keep two runs apart: it does not honour conditions on writes."
            hint = "Where you know that no other run meets this one, give --no-lease and keep receipts in a file."
            raise TieredctlError("store-incapable", message, hint=hint)
        yield Unguarded()
        return
    lease = Lease(store, purpose, clock_ms)
    try:
        yield lease
    finally:
        lease.release()


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        held = json.loads(data)
    except ValueError:
        return {}
    return held if isinstance(held, dict) and isinstance(held.get("expiresMs"), int) else {}
