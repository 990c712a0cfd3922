"""Whether objects of one store or of two hold the same bytes, or those that were taken down earlier, and how that was
established.

Nothing is compared with itself: what comes back is compared with what was removed.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import Capability, DeletionOutcome, ObjectStore, StoredObject, WritableObjectStore

BYTES = "bytes"
"""All bytes of both were read and compared."""
VERSION = "version"
"""The store still has the version that it had then, under the same key."""
_READ = "-read"
_OF_PARTS = "-of-parts"
_READ_AT_ONCE = 8 << 20
_SECOND_MS = 1_000


def _in_base64(digest: Any) -> str:
    return b64encode(digest.digest()).decode()


_COMPUTED: Mapping[str, Callable[[Any], str]] = {
    "sha256": _in_base64,
    "sha1": _in_base64,
    "md5": lambda digest: str(digest.hexdigest()),
}
"""Functions that can be computed here, and how stores write what they give. Best first."""


class Sameness(NamedTuple):
    """How two objects were found to hold the same bytes, and the checksums of these bytes."""

    by: str
    """The name of a checksum that the store keeps of both; with `-read` where it was computed of one of them; BYTES."""
    checksums: Mapping[str, str]
    """Those that the store keeps of either, and those that were computed. Those of parts are the second's."""

    @property
    def is_vouched_for(self) -> bool:
        """Whether the store itself keeps a checksum of both, and neither was read."""
        return self.by != BYTES and not self.by.endswith(_READ)


class KnownBytes(NamedTuple):
    """Bytes that were taken down: size in bytes, checksums as in `ObjectStore.checksums`, and the version and time in
    ms under which the store had them."""

    size: int
    checksums: Mapping[str, str]
    version: str | None
    last_modified_ms: int | None

    def is_untouched(self, stored: StoredObject) -> bool:
        """Whether the store reports the same version, of the same time where that is known."""
        if stored.version != self.version:
            return False
        # A store may report times more exactly in a listing than in an answer about one object.
        noted_ms = self.last_modified_ms
        return noted_ms is None or noted_ms // _SECOND_MS == stored.last_modified_ms // _SECOND_MS


def demand_same(store: WritableObjectStore, original: StoredObject, copy: StoredObject) -> Sameness:
    """How a copy was found to hold the bytes of its original, by `same_bytes`.

    Raises TieredctlError `removal-failed` if it does not. Such a copy is deleted, so that nobody relies on it.
    """
    sameness = same_bytes(store, original, copy)
    if sameness is None:
        if is_there(store, original):
            store.delete([copy])
        raise TieredctlError(ErrorCode.REMOVAL_FAILED, f"The copy of {original.key} does not hold the same bytes.")
    return sameness


class _Held(NamedTuple):
    """An object and the store that it is in."""

    store: ObjectStore
    stored: StoredObject

    def reconnected(self) -> _Held:
        return self._replace(store=self.store.reconnected())


def same_bytes(
    store: ObjectStore, one: StoredObject, other: StoredObject, other_store: ObjectStore | None = None
) -> Sameness | None:
    """How both were found to hold the same bytes; None if they do not, or changed meanwhile. `other` is in the same
    store, unless another is given.

    A multipart upload and its copy have different ETags, although their bytes are the same: different checksums prove
    nothing, so both are read. Raises TieredctlError as reading does.
    """
    if one.size != other.size:
        return None
    other_store = store if other_store is None else other_store
    kept, kept_of_other = store.checksums(one), other_store.checksums(other)
    checksums = {**kept, **kept_of_other}
    for name in kept:
        if kept[name] == kept_of_other.get(name):
            by, computed = name, None
            break
    else:
        by, computed = _same_by_reading(_Held(store, one), _Held(other_store, other), kept, kept_of_other)
        if computed is None:
            return None
    if computed is not None and not (is_there(store, one) and is_there(other_store, other)):
        return None
    return Sameness(by, {**checksums, **(computed or {})})


def same_when_read(store: ObjectStore, one: StoredObject, other_store: ObjectStore, other: StoredObject) -> bool:
    """Whether all bytes of both were read and are the same; False too if one of them changed meanwhile."""
    if one.size != other.size or _digest_if_same(_Held(store, one), _Held(other_store, other)) is None:
        return False
    return is_there(store, one) and is_there(other_store, other)


def held_by(store: ObjectStore, stored: StoredObject, expected: KnownBytes, *, must_be_untouched: bool) -> str | None:
    """How an object was found to hold known bytes, as in `Sameness.by`, or VERSION; None if it does not, or that cannot
    be established.

    An object is read only where the store does not vouch for it: where it keeps no checksum in common with what is
    known, or, with `must_be_untouched`, reports that the object was written since. Raises TieredctlError as reading
    does.
    """
    if stored.size != expected.size:
        return None
    kept, is_untouched = store.checksums(stored), expected.is_untouched(stored)
    common = [name for name in expected.checksums if name in kept]
    equal = [name for name in common if kept[name] == expected.checksums[name]]
    if any(name not in equal and not name.endswith(_OF_PARTS) for name in common):
        return None
    # Other bytes with the same CRC are easily made.
    vouching = equal if is_untouched else [name for name in equal if not name.startswith("crc")]
    if vouching and (is_untouched or not must_be_untouched):
        return vouching[0]
    for name in _COMPUTED:
        if name in expected.checksums:
            is_it = _has_digest(store, stored, name, expected.checksums[name]) and is_there(store, stored)
            return name + _READ if is_it else None
    if vouching:
        return vouching[0]
    return VERSION if is_untouched else None


def digest_of(store: ObjectStore, stored: StoredObject, name: str) -> str | None:
    """A checksum of an object that is read, as stores write it; None if its size is another by now."""
    digest, size = hashlib.new(name, usedforsecurity=False), 0
    for piece in store.stream(stored.key):
        digest.update(piece)
        size += len(piece)
    return _COMPUTED[name](digest) if size == stored.size else None


def _has_digest(store: ObjectStore, stored: StoredObject, name: str, expected: str) -> bool:
    """By a second reading over new connections too where the first says no: bytes may be altered on the way."""
    return digest_of(store, stored, name) == expected or digest_of(store.reconnected(), stored, name) == expected


def _same_by_reading(
    one: _Held, other: _Held, kept: Mapping[str, str], kept_of_other: Mapping[str, str]
) -> tuple[str, Mapping[str, str] | None]:
    """How, and what was computed of the bytes; None for that if they differ."""
    for read, md5 in ((one, kept_of_other.get("md5")), (other, kept.get("md5"))):
        if md5 is not None and digest_of(*read, "md5") == md5:
            return "md5" + _READ, {"md5": md5}
    sha256 = _digest_if_same(one, other)
    return BYTES, None if sha256 is None else {"sha256": sha256}


def _digest_if_same(one: _Held, other: _Held) -> str | None:
    """The SHA-256 of the bytes of both, as S3 writes it; None if they differ, also when they are read again over new
    connections: bytes may be altered on the way."""
    return _digest_of_both(one, other) or _digest_of_both(one.reconnected(), other.reconnected())


def _digest_of_both(one: _Held, other: _Held) -> str | None:
    digest = hashlib.sha256()
    size = one.stored.size
    for start in range(0, size, _READ_AT_ONCE):
        end = min(start + _READ_AT_ONCE, size)
        data = one.store.read(one.stored.key, start, end)
        if len(data) != end - start or data != other.store.read(other.stored.key, start, end):
            return None
        digest.update(data)
    return _in_base64(digest)


def take_back(store: WritableObjectStore, copy: StoredObject) -> bool:
    """Deletes a copy just made that does not hold the bytes of its original; whether it is gone. It stays where the
    store might delete what others have put there meanwhile."""
    if Capability.CONDITIONAL_DELETE not in store.capabilities:
        return False
    return store.delete([copy])[0].outcome is DeletionOutcome.GONE


def is_named_by(stored: StoredObject, md5: str) -> bool:
    """Whether an object's version is the MD5 of bytes, in hexadecimal digits, as S3's ETag is of an upload at once:
    then it has these bytes."""
    return stored.version.strip('"') == md5


def is_there(store: ObjectStore, stored: StoredObject) -> bool:
    """Whether this version of an object exists now."""
    current = store.head(stored.key)
    return current is not None and current.version == stored.version
