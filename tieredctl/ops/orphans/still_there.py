"""Do listed objects still exist? Retention deletes while a store is listed and its metadata read, and an inventory is
a day old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ports.object_store import ObjectStore, StoredObject

_FEW = 1_000
"""At most this many are asked for one by one."""
_LISTED_FOR_EACH = 100
"""How many objects are listed at most for each that is looked for: beyond that, asking for it is quicker."""

_TIMES_ARE_WITHIN_MS = 1_000
"""How far two times of one object may differ: an inventory may give them more exactly than an answer does."""


class StillThere(NamedTuple):
    """The keys under which there is an object now."""

    same: set[str]
    """Those no younger than they were listed to be."""
    younger: dict[str, int]
    """The others, with their times now (ms): they were written meanwhile, or their listing was wrong."""


def still_there(store: ObjectStore, listed_ms: Mapping[str, int]) -> StillThere:
    """What a store has now of what was listed with these times, in ms."""
    times_now = {stored.key: stored.last_modified_ms for stored in found_now(store, list(listed_ms))}
    younger = {key: moment for key, moment in times_now.items() if moment >= listed_ms[key] + _TIMES_ARE_WITHIN_MS}
    return StillThere(times_now.keys() - younger.keys(), younger)


def found_now(store: ObjectStore, keys: Sequence[str]) -> list[StoredObject]:
    """What a store has now under some keys."""
    objects = _asked_for(store, keys) if len(keys) <= _FEW else _listed(store, sorted(keys))
    absent = sorted({*keys} - {stored.key for stored in objects})
    # Not every store lists in order; and one answer alone does not say that what was listed is gone.
    return objects + _asked_for(store.reconnected(), absent) if absent else objects


def _listed(store: ObjectStore, wanted: Sequence[str]) -> list[StoredObject]:
    """What a store has of keys in the order of code points, as stores list: the first is asked for, and the others are
    looked for in a listing after it."""
    objects = _asked_for(store, wanted[:1])
    looked_for = {*wanted} - {wanted[0]}
    for number, stored in enumerate(store.list("", wanted[0])):
        if stored.key in looked_for:
            looked_for.remove(stored.key)
            objects.append(stored)
        if stored.key >= wanted[-1] or number == _LISTED_FOR_EACH * len(wanted):
            break
    return objects


def _asked_for(store: ObjectStore, keys: Sequence[str]) -> list[StoredObject]:
    return [stored for stored in in_parallel(store, store.head, keys) if stored is not None]
