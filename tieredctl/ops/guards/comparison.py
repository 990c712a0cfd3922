"""Whether two objects of a store hold the same bytes, and how that was established."""

from __future__ import annotations

import hashlib

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.protocol import ObjectStore, StoredObject, WritableObjectStore

BYTES = "bytes"
"""All bytes of both were read and compared."""
_READ_AT_ONCE = 8 << 20


def demand_same(store: WritableObjectStore, original: StoredObject, copy: StoredObject) -> str:
    """How a copy was found to hold the bytes of its original, by `same_by`.

    Raises TieredctlError `removal-failed` if it does not. Such a copy is deleted, so that nobody relies on it.
    """
    found = same_by(store, original, copy)
    if found is None:
        if is_there(store, original):
            store.delete([copy])
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"The copy of {original.key} does not hold the same bytes.")
    return found


def same_by(store: ObjectStore, one: StoredObject, other: StoredObject) -> str | None:
    """How both were found to hold the same bytes; None if they do not, or changed meanwhile.

    The name of a checksum that the store keeps of both; `md5-read` if it keeps the MD5 of one and the other was read;
    otherwise BYTES. A multipart upload and its copy have different ETags, although their bytes are the same: different
    checksums prove nothing, so both are read. Raises TieredctlError as reading does.
    """
    if one.size != other.size:
        return None
    kept, kept_of_other = store.checksums(one), store.checksums(other)
    for name in kept:
        if kept[name] == kept_of_other.get(name):
            return name
    found = _same_by_reading_one(store, one, kept_of_other.get("md5"))
    found = found or _same_by_reading_one(store, other, kept.get("md5"))
    if found is None and _have_same_bytes(store, one, other):
        found = BYTES
    return found if found and is_there(store, one) and is_there(store, other) else None


def _same_by_reading_one(store: ObjectStore, one: StoredObject, md5_of_other: str | None) -> str | None:
    if md5_of_other is None:
        return None
    digest, size = hashlib.md5(usedforsecurity=False), 0
    for piece in store.stream(one.key):
        digest.update(piece)
        size += len(piece)
    return "md5-read" if size == one.size and digest.hexdigest() == md5_of_other else None


def _have_same_bytes(store: ObjectStore, one: StoredObject, other: StoredObject) -> bool:
    for start in range(0, one.size, _READ_AT_ONCE):
        end = min(start + _READ_AT_ONCE, one.size)
        data = store.read(one.key, start, end)
        if len(data) != end - start or data != store.read(other.key, start, end):
            return False
    return True


def is_there(store: ObjectStore, stored: StoredObject) -> bool:
    """Whether this version of an object exists now."""
    found = store.head(stored.key)
    return found is not None and found.version == stored.version
