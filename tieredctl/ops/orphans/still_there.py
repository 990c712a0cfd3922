"""Are objects that were listed there still? Retention deletes while a store is listed and its metadata read, and an
inventory tells of yesterday."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.ops.removal.in_parallel import in_parallel
from tieredctl.storage.protocol import ObjectStore

_FEW = 1_000
"""So many are asked for one by one."""
_LISTED_FOR_EACH = 100
"""How many objects are listed at most for each that is looked for: beyond that, asking for it is quicker."""


def keys_still_there(store: ObjectStore, keys: Sequence[str]) -> set[str]:
    """Those of some keys under which there is an object now."""
    if len(keys) <= _FEW:
        return _asked_for(store, keys)
    wanted = sorted(keys, key=_utf_8)
    found = _asked_for(store, wanted[:1])
    last, looked_for = _utf_8(wanted[-1]), set(wanted)
    for number, stored in enumerate(store.list("", wanted[0])):
        if stored.key in looked_for:
            found.add(stored.key)
        if (here := _utf_8(stored.key)) >= last:
            break
        if number == _LISTED_FOR_EACH * len(wanted):
            return found | _asked_for(store, [key for key in wanted if _utf_8(key) > here])
    return found


def _asked_for(store: ObjectStore, keys: Sequence[str]) -> set[str]:
    return {stored.key for stored in in_parallel(store, store.head, keys) if stored is not None}


def _utf_8(key: str) -> bytes:
    """What listings are ordered by."""
    return key.encode("utf-8", "surrogateescape")
