"""What one answer of a store says is asked for again before it counts: bytes may be altered on the way, and a store may
deny once what it has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import ObjectStore, StoredObject

_Found = TypeVar("_Found")


def read_again(
    store: ObjectStore,
    read: Callable[[ObjectStore], _Found],
    failing_by: Collection[ErrorCode] = (),
    *,
    is_sound: Callable[[_Found], bool] = lambda _found: True,
) -> _Found:
    """What `read` finds in a store. Where that is not sound, or `read` fails by one of these codes, it is what a second
    reading finds over new connections. Raises TieredctlError as that does, and at once for any other code."""
    try:
        found = read(store)
        if is_sound(found):
            return found
    except TieredctlError as error:
        if error.code not in failing_by:
            raise
    return read(store.reconnected())


def head_again(store: ObjectStore, key: str) -> StoredObject | None:
    """What a store has of an object that it should have: asked for twice before it is missing. Raises TieredctlError as
    the store does."""
    return read_again(store, lambda at: at.head(key), is_sound=lambda stored: stored is not None)
