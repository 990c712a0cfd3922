"""A store's word that it wrote something is a claim: whether it has these bytes is asked before a table names them."""

from __future__ import annotations

import hashlib

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.comparison import KnownBytes, held_by
from tieredctl.ports.object_store import ObjectStore, StoredObject

_NO_TABLE = "No table names it. Look at the store, and run it again."


def demand_stored(store: ObjectStore, stored: StoredObject, data: bytes, hint: str = _NO_TABLE) -> None:
    """Raises TieredctlError `unwritable` where a store has other bytes, or none, than it said it wrote. It is read
    where it keeps no checksum of them."""
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    known = KnownBytes(len(data), {"md5": md5}, stored.version, stored.last_modified_ms)
    try:
        is_held = held_by(store, stored, known, must_be_untouched=False) is not None
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
        is_held = False
    if not is_held:
        message = f"{store.url} said that it wrote {stored.key}, and has other bytes there, or none."
        raise TieredctlError(ErrorCode.UNWRITABLE, message, hint=hint)
