"""Whether objects that a listing lacks are in the store all the same: it may be older than they are.

Each is asked for by name. Where a partition lacks very many, as where a part is missing everywhere, it is listed again,
since one request lists many objects; a few are then asked for by name too, so that no listing that lags is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import ObjectStore, StoredObject

_FEWEST_LACKED = 20
_LISTED_FOR_EACH = 100
"""Where a partition has more objects for each that is lacked, asking by name costs less than listing."""
_TRIED_BY_NAME = 4


class AskedObjects:
    """The answers of a store about a partition's objects."""

    def __init__(self, store: ObjectStore, lacked: Sequence[str], prefix: str) -> None:
        """`lacked` are the keys that will be asked for, at the end those that were written last. The partition's keys
        begin with `prefix`."""
        self._store = store
        self._known = _listed_again(store, [key for key in lacked if key.startswith(prefix)], prefix)

    def head(self, key: str) -> StoredObject | None:
        """What a store's own `head` gives, and raises."""
        return self._known[key] if key in self._known else self._store.head(key)


def _listed_again(store: ObjectStore, lacked: Sequence[str], prefix: str) -> dict[str, StoredObject | None]:
    if len(lacked) < _FEWEST_LACKED:
        return {}
    wanted = frozenset(lacked)
    try:
        listing = store.list(prefix)
        some = islice(listing, len(lacked) * _LISTED_FOR_EACH)
        there = {stored.key: stored for stored in some if stored.key in wanted}
        absent = [key for key in reversed(lacked) if key not in there]
        if next(listing, None) is not None or any(store.head(key) for key in absent[:_TRIED_BY_NAME]):
            return {}
    except TieredctlError:  # each question meets it again, and says so
        return {}
    return dict.fromkeys(lacked) | there
