"""The errors that all stores word the same way."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import MOST_DELETED_AT_ONCE, Capability, StoredObject

REFUSAL_HINT = "Check the URL and the settings of the bucket; -v shows what was asked."
"""The hint for a request that a server refuses for a reason of its own."""


def object_missing(url: str, key: str) -> TieredctlError:
    """There is nothing to read under this key."""
    return TieredctlError(ErrorCode.OBJECT_MISSING, f"There is no object {key} in {url}.")


def object_archived(url: str, key: str) -> TieredctlError:
    """The object is there, but its storage class does not let it be read or copied."""
    return TieredctlError(ErrorCode.OBJECT_ARCHIVED, f"{key} in {url} is archived: restore it before reading it.")


def replaced_while_read(url: str, key: str) -> TieredctlError:
    """The object was replaced, and the rest of the old bytes is gone."""
    return TieredctlError(
        ErrorCode.UNREADABLE, f"{key} in {url} was replaced while it was read.", hint="Read it again."
    )


def key_impossible(url: str, key: str) -> TieredctlError:
    """No object of this store can have this key."""
    return TieredctlError(ErrorCode.UNWRITABLE, f"{url} cannot hold an object {key!r}.")


def incapable(url: str, capability: Capability) -> TieredctlError:
    """The store lacks a capability that its caller should have asked for."""
    return TieredctlError(ErrorCode.STORE_INCAPABLE, f"{url} does not support {capability}.")


def demand(capability: Capability, capabilities: frozenset[Capability], url: str) -> None:
    """Raises TieredctlError `store-incapable` where the capability is not among those of the store."""
    if capability not in capabilities:
        raise incapable(url, capability)


def demand_batch(objects: Sequence[StoredObject]) -> None:
    """Raises ValueError where there are more objects than one deletion takes."""
    if len(objects) > MOST_DELETED_AT_ONCE:
        raise ValueError(f"{len(objects)} objects are more than the {MOST_DELETED_AT_ONCE} that one deletion takes")
