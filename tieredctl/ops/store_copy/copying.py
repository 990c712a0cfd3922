"""Copies one object from store to store: written only where the key has none, then looked at again.

A small object takes a read of the source, a write on condition that the key has none, and a look at what was written:

- The bytes read are the source's where the version that was listed is their MD5, as S3's ETag is of an upload at once.
  Else the source is asked again.
- The answer to the write is only the store's word, and proves nothing.
- The copy is proven by an MD5 that the destination keeps, in its answer to a request for this object; or in a listing
  that began after the write, which shows the very version that is the MD5 of what was read. A listing answers for a
  thousand objects at once. Whatever it does not show so is asked for by itself, and read again where no MD5 is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.result_row import Main, ResultRow, Size, Wide
from tieredctl.ops.guards.comparison import BYTES, KnownBytes, held_by, is_named_by, is_there, same_bytes, take_back
from tieredctl.ops.store_copy.comparison import OPENED
from tieredctl.ports.layout import Rewrapping
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject, WritableObjectStore
from tieredctl.process.interruption import is_requested

_READ_AT_ONCE = 8 << 20
"""An object below this size is read by one request."""


class CopyResult(StrEnum):
    """What became of an object."""

    PLANNED = "planned"
    COPIED = "copied"
    EXISTS = "exists"
    """Others have put something under its key since it was missing: it was left alone."""
    CHANGED = "changed"
    """The source has replaced or deleted it since it was listed."""
    FAILED = "failed"
    UNPROVEN = "unproven"
    """It is under its key, but was not found to hold the source's bytes, and was not removed again: it could not be
    looked at, the store has another version by now, or cannot be trusted to delete this one alone."""


@dataclass(frozen=True, slots=True)
class CopiedObject(ResultRow):
    """An object of the source. Size in bytes."""

    result: Main[str]
    key: Main[str]
    size: Size[int]
    checked_by: Wide[str | None]
    """How the copy was found to hold the same bytes: the name of a checksum, with `-read` where it was read again;
    `opened` where it holds the same key, wrapped for another key pair."""
    reason: Wide[str | None]
    """Why it was not copied."""

    @classmethod
    def planned(cls, stored: StoredObject) -> CopiedObject:
        """One that is only to be copied."""
        return cls(CopyResult.PLANNED.value, stored.key, stored.size, None, None)

    @classmethod
    def shown_by_listing(cls, stored: StoredObject) -> CopiedObject:
        """One whose version, the MD5 of its bytes, a listing of the destination shows."""
        return cls(CopyResult.COPIED.value, stored.key, stored.size, "md5", None)


class _NotCopied(Exception):
    """Why an object is not called copied."""

    def __init__(self, result: CopyResult, reason: str) -> None:
        super().__init__(reason)
        self.result = result
        self.reason = reason


class _Written(Exception):
    """A listing may show that the copy has the source's version."""


@dataclass(frozen=True, slots=True)
class ObjectCopier:
    """A source that is only read, and a destination in which nothing is replaced."""

    source: ObjectStore
    destination: WritableObjectStore
    pace: Callable[[int], None]
    """Waits until so many bytes more may be sent."""
    within_service: Callable[[StoredObject], StoredObject | None] | None = None
    """Has the service copy an object under its key if that has none, and gives the copy; None where it made none, or
    that is not known. Then it is streamed."""
    rewrapping: Rewrapping | None = None
    """How the keys in the destination are wrapped, where that is not as in the source."""

    def copy(self, stored: StoredObject) -> CopiedObject | None:
        """Copies this version of an object. None where that is written, and its version names its bytes: a listing of
        the destination that begins now proves the copy by showing this very version. `look_at` one that it does not
        show so. Raises TieredctlError for what concerns every other object too."""
        try:
            return self._outcome(stored, lambda: self._copied(stored))
        except _Written:
            return None

    def look_at(self, stored: StoredObject) -> CopiedObject:
        """What became of an object that `copy` gave None for. Raises TieredctlError as that does."""
        md5 = stored.version.strip('"')
        return self._outcome(stored, lambda: self._looked_at(lambda: self._checked(stored, stored, md5)))

    @staticmethod
    def _outcome(stored: StoredObject, how_copied: Callable[[], str]) -> CopiedObject:
        try:
            how = how_copied()
        except _NotCopied as left:
            return CopiedObject(left.result.value, stored.key, stored.size, None, left.reason)
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            return CopiedObject(CopyResult.FAILED.value, stored.key, stored.size, None, error.message)
        return CopiedObject(CopyResult.COPIED.value, stored.key, stored.size, how, None)

    def _copied(self, stored: StoredObject) -> str:
        if self.rewrapping is not None and self.rewrapping.concerns(stored.key):
            return self._rewrapped(stored, self.rewrapping)
        if self.within_service is not None:
            if is_requested():
                raise KeyboardInterrupt
            self.pace(stored.size)
            made = self.within_service(stored)
            if made is not None:
                return self._looked_at(lambda: self._checked_copy(stored, made))
        return self._streamed(stored)

    def _rewrapped(self, stored: StoredObject, rewrapping: Rewrapping) -> str:
        """Never copied by the service, which would copy the old key with it."""
        if is_requested():
            raise KeyboardInterrupt
        try:
            original = self.source.read(stored.key, 0, rewrapping.largest + 1)
        except TieredctlError:
            if not is_there(self.source, stored):
                raise self._changed() from None
            raise
        if why_not := self._why_not_the_sources(stored, hashlib.md5(original, usedforsecurity=False).hexdigest()):
            raise why_not
        # Wrapped once: each time other bytes come out.
        wrapped = rewrapping.rewrapped(stored.key, original)
        data = original if wrapped is None else wrapped
        self.pace(len(data))
        made = self.destination.upload(stored.key, len(data), lambda: iter((data,)))
        if made is None:
            raise self._refused(self.destination.head(stored.key))
        return self._looked_at(lambda: self._opened(made, original, data, rewrapping))

    def _opened(self, made: StoredObject, original: bytes, written: bytes, rewrapping: Rewrapping) -> str:
        """How the copy was found to hold what the source holds, for its own key pair."""
        there = self.destination.read(made.key, 0, rewrapping.largest + 1)
        if there != written or rewrapping.difference(made.key, original, there) is not None:
            self._take_back(made)
            raise _NotCopied(CopyResult.FAILED, "the copy does not hold the bytes that were written")
        if not is_there(self.destination, made):
            raise _NotCopied(CopyResult.UNPROVEN, "others have replaced it since it was written")
        return BYTES if written == original else OPENED

    def _streamed(self, stored: StoredObject) -> str:
        digest = hashlib.md5(usedforsecurity=False)

        def pieces() -> Iterator[bytes]:
            nonlocal digest
            digest = hashlib.md5(usedforsecurity=False)
            for piece in self._read(stored):
                if is_requested():
                    raise KeyboardInterrupt
                self.pace(len(piece))
                digest.update(piece)
                yield piece

        try:
            made = self.destination.upload(stored.key, stored.size, pieces)
        except TieredctlError:
            if not is_there(self.source, stored):
                raise self._changed() from None
            raise
        if made is None:
            return self._there_already(stored)
        md5 = digest.hexdigest()
        if is_named_by(stored, md5) and made.version == stored.version:
            raise _Written
        return self._looked_at(lambda: self._checked(stored, made, md5))

    def _there_already(self, stored: StoredObject) -> str:
        """Only the answer to a copy within the service may have been lost."""
        there = self.destination.head(stored.key)
        if there is None or self.within_service is None:
            raise self._refused(there)
        sameness = same_bytes(self.source, stored, there, self.destination)
        if sameness is None:
            raise self._refused(there)
        return sameness.by

    @staticmethod
    def _refused(there: StoredObject | None) -> _NotCopied:
        """Why an object was not written on condition that its key has none."""
        if there is None:
            reason = "the store refuses it as if something were under this key: it may count a delete marker"
            return _NotCopied(CopyResult.FAILED, reason)
        return _NotCopied(CopyResult.EXISTS, "something is under this key by now")

    @staticmethod
    def _looked_at(check: Callable[[], str]) -> str:
        try:
            return check()
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            is_gone = error.code is ErrorCode.OBJECT_MISSING
            result = CopyResult.FAILED if is_gone else CopyResult.UNPROVEN
            raise _NotCopied(result, f"it could not be looked at again: {error.message}") from None

    def _read(self, stored: StoredObject) -> Iterator[bytes]:
        if stored.size < _READ_AT_ONCE:
            return iter((self.source.read(stored.key),))
        return self.source.stream(stored.key)

    def _checked_copy(self, stored: StoredObject, made: StoredObject) -> str:
        """How a copy that the service made was found to hold the source's bytes."""
        md5 = self.destination.checksums(made).get("md5")
        if md5 is not None and made.size == stored.size and is_named_by(stored, md5):
            return "md5"
        try:
            sameness = same_bytes(self.source, stored, made, self.destination)
        except TieredctlError:
            if self.source.head(stored.key) is None:
                raise self._changed() from None
            raise
        if sameness is not None:
            return sameness.by
        self._take_back(made)
        if not is_there(self.source, stored):
            raise self._changed()
        raise _NotCopied(CopyResult.FAILED, "the copy does not hold the same bytes")

    def _checked(self, stored: StoredObject, made: StoredObject, md5: str) -> str:
        """How the copy was found to hold what the source still has under that version."""
        self._hold_against_source(stored, made, md5)
        known = KnownBytes(stored.size, {"md5": md5}, None, None)
        how = held_by(self.destination, made, known, must_be_untouched=False)
        if how is None:
            self._take_back(made)
            raise _NotCopied(CopyResult.FAILED, "the copy does not hold the same bytes")
        return how

    def _hold_against_source(self, stored: StoredObject, made: StoredObject, md5: str) -> None:
        why_not = self._why_not_the_sources(stored, md5)
        if why_not is None:
            return
        if why_not.result is CopyResult.FAILED or self.source.head(stored.key) is not None:
            self._take_back(made)
        raise why_not

    def _why_not_the_sources(self, stored: StoredObject, md5: str) -> _NotCopied | None:
        """Why bytes that were read are not those of this version; None where they are."""
        if is_named_by(stored, md5):
            return None
        kept = self.source.checksums(stored)
        if not kept and not is_there(self.source, stored):
            return self._changed()
        if kept.get("md5", md5) != md5:
            return _NotCopied(CopyResult.FAILED, "what was read is not what the source has a checksum of")
        return None

    def _take_back(self, made: StoredObject) -> None:
        """Raises `_NotCopied` where the wrong copy stays."""
        if not take_back(self.destination, made):
            raise _NotCopied(CopyResult.UNPROVEN, "other bytes are under its key, and were not removed again")

    @staticmethod
    def _changed() -> _NotCopied:
        return _NotCopied(CopyResult.CHANGED, "the source has another object there by now, or none")
