"""Copies from store to store within one service, where its server keeps what is there already."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.ports.server_side_copies import CopiesFromOthers
from tieredctl.process.tracing import traced
from tieredctl.storage.trial import trial_folder

_REFUSALS = (ErrorCode.STORE_FORBIDDEN, ErrorCode.STORE_INCAPABLE, ErrorCode.UNREADABLE)


@dataclass(slots=True)
class ServerSideCopies:
    """Copies of one store's objects into another of its service, until the service refuses one."""

    source: ObjectStore
    destination: CopiesFromOthers
    smallest: int = 0
    """The size in bytes from which on the service is asked."""
    is_refused: bool = False

    def copy(self, stored: StoredObject) -> StoredObject | None:
        """The copy, under the same key; None where none is known to have been made: the answer may have been lost."""
        if self.is_refused or stored.size < self.smallest:
            return None
        try:
            with traced("tieredctl.storage", self.destination.url, f"copy {stored.key} from {self.source.url}"):
                return self.destination.copy_from(self.source, stored, stored.key)
        except TieredctlError as error:
            self.is_refused |= error.code in _REFUSALS
            return None


def server_side_copies(source: ObjectStore, destination: WritableObjectStore) -> ServerSideCopies | None:
    """None where bytes have to pass through here: the stores are not of one service, or its server would replace what
    others write meanwhile. Each server is tried out on objects made for the purpose, the clouds' too: conditions on
    copies came later than those on writes, and a server that does not know one ignores it."""
    beneath, target = _innermost(source), _innermost(destination)
    if not isinstance(target, CopiesFromOthers) or not target.can_copy_from(beneath):
        return None
    if _keeps_what_is_there(target):
        return ServerSideCopies(beneath, target)
    in_parts = target.copying_in_parts()
    if in_parts is None or not _keeps_what_is_there(in_parts):
        return None
    return ServerSideCopies(beneath, in_parts, UPLOAD_PART_BYTES)


def _innermost(store: ObjectStore) -> ObjectStore:
    while isinstance(store, StoreAround):
        store = store.store
    return store


def _keeps_what_is_there(store: CopiesFromOthers) -> bool:
    try:
        with trial_folder(store) as folder:
            return _kept_in(store, folder)
    except TieredctlError:
        return False


def _kept_in(store: CopiesFromOthers, folder: str) -> bool:
    ours, theirs = (store.put_if_absent(folder + name, data) for name, data in (("ours", b"1"), ("theirs", b"22")))
    now = ours and store.replace(ours, b"333")
    if ours is None or theirs is None or now is None:
        return False
    for source, key in ((now, "theirs"), (ours, "of-a-past-version")):
        if store.copy_from(store, source, folder + key) is not None:
            return False
    return store.copy_from(store, now, folder + "new") is not None
