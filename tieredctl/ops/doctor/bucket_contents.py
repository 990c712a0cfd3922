"""What is in a bucket, as far as its settings matter to it: listed once, up to a number of entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest, nsmallest
from itertools import islice
from typing import NamedTuple, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.bucket_settings import BucketSettings, ClassTerms, Unanswered
from tieredctl.ports.object_store import Capability, ObjectStore, StoredObject, Versioning

MOST_LISTED = 100_000
"""How many objects are looked at, and how many entries of the listing of versions, which has current ones too: what is
counted is at least so much."""
MOST_UPLOADS = 1_000
"""The same of unfinished uploads, whose parts take a request each."""
_SAMPLED_EACH = 5
"""How many of the oldest and of the newest objects are asked about one by one."""
_NOT_ANSWERED = (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE)
_Listed = TypeVar("_Listed")
_Answer = TypeVar("_Answer")


class Counts(NamedTuple):
    """Some of what is stored: how many, and their bytes by storage class; the key of one of them."""

    entries: int
    class_bytes: Mapping[str, int]
    example: str = ""

    @property
    def bytes(self) -> int:
        return sum(self.class_bytes.values())


class Uploads(NamedTuple):
    """Uploads that were never completed."""

    entries: int
    bytes: int | None = 0
    """None where their parts are not listed."""
    oldest_ms: int | None = None
    """When the oldest began."""


@dataclass(frozen=True, slots=True)
class BucketContents:
    """What was listed below the store's prefix. None where the store does not list it, or nobody asked."""

    objects: int | None = None
    by_class: Mapping[str, Counts] = field(default_factory=dict)
    small: Mapping[str, Counts] = field(default_factory=dict)
    """What is smaller than the smallest paid size, by class."""
    sample: Sequence[StoredObject] = ()
    versions: Counts | None = None
    """Noncurrent ones."""
    delete_markers: int = 0
    uploads: Uploads | None = None
    cut: Sequence[str] = ()
    """The listings that have more than was looked at."""

    def at_least(self, listing: str) -> str:
        """What to say before a number that comes from a listing."""
        return "at least " if listing in self.cut else ""


@dataclass(slots=True)
class Lister:
    """Lists a store, and notes what it does not list."""

    store: ObjectStore
    settings: BucketSettings
    unanswered: list[Unanswered] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def objects(self) -> BucketContents:
        """The objects, alone."""
        listed = self._at("objects", self.store.list, MOST_LISTED)
        if listed is None:
            return BucketContents()
        classes = self.settings.classes
        return BucketContents(
            objects=len(listed),
            by_class=_by_class(listed),
            small=_by_class([one for one in listed if one.size < _terms(classes, one).minimum_bytes]),
            sample=_sampled(listed, classes),
        )

    def versions(self, versioning: Versioning) -> tuple[Counts | None, int]:
        """The noncurrent versions, and how many delete markers there are."""
        if versioning in (Versioning.OFF, Versioning.UNKNOWN):
            return None, 0
        found = self._answered("versions", lambda: self.settings.kept_versions(MOST_LISTED))
        if found is None:
            return None, 0
        if found.is_cut:
            self.cut.append("versions")
        markers = sum(one.is_delete_marker for one in found.kept)
        sizes = Counter[str]()
        for one in found.kept:
            sizes[one.storage_class or ""] += one.size
        return Counts(len(found.kept) - markers, sizes), markers

    def uploads(self) -> Uploads | None:
        """The unfinished uploads; None where the store does not list them."""
        if Capability.MULTIPART_UPLOADS not in self.store.capabilities:
            return None
        listed = self._at("uploads", self.store.multipart_uploads, MOST_UPLOADS)
        if not listed:
            return None if listed is None else Uploads(0)
        sizes = self._at("uploads", lambda: map(self.store.multipart_upload_bytes, listed), MOST_UPLOADS)
        return Uploads(len(listed), None if sizes is None else sum(sizes), min(one.initiated_ms for one in listed))

    def _at(self, what: str, entries: Callable[[], Iterator[_Listed]], most: int) -> list[_Listed] | None:
        listed = self._answered(what, lambda: list(islice(entries(), most + 1)))
        if listed is None:
            return None
        if len(listed) > most:
            self.cut.append(what)
        return listed[:most]

    def _answered(self, what: str, ask: Callable[[], _Answer]) -> _Answer | None:
        try:
            return ask()
        except TieredctlError as error:
            if error.code not in _NOT_ANSWERED:
                raise
            is_unsupported = error.code is not ErrorCode.STORE_FORBIDDEN
            self.unanswered.append(Unanswered(what, self.settings.rights[what], error.message, is_unsupported))
            return None


def _by_class(objects: Sequence[StoredObject]) -> dict[str, Counts]:
    counts, sizes, examples = Counter[str](), Counter[str](), dict[str, str]()
    for one in objects:
        name = one.storage_class or ""
        counts[name] += 1
        sizes[name] += one.size
        examples.setdefault(name, one.key)
    return {name: Counts(count, {name: sizes[name]}, examples[name]) for name, count in counts.items()}


def _sampled(objects: Sequence[StoredObject], classes: Mapping[str, ClassTerms]) -> list[StoredObject]:
    """The oldest and the newest: settings that changed meanwhile show in one of them."""
    readable = [one for one in objects if not _terms(classes, one).needs_restoring]
    oldest = nsmallest(_SAMPLED_EACH, readable, key=lambda one: one.last_modified_ms)
    newest = nlargest(_SAMPLED_EACH, readable, key=lambda one: one.last_modified_ms)
    return list({one.key: one for one in (*oldest, *newest)}.values())


def _terms(classes: Mapping[str, ClassTerms], stored: StoredObject) -> ClassTerms:
    return classes.get(stored.storage_class or "", ClassTerms())
