"""What tieredctl needs of an object store, and what every store promises.

Code that only reads takes an `ObjectStore`, which has no methods that change anything; code that changes something
takes a `WritableObjectStore`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

from tieredctl.errors import ErrorCode, TieredctlError

STREAM_CHUNK_BYTES = 1 << 20
"""How much `stream` holds in memory at a time by default."""
UPLOAD_PART_BYTES = 8 << 20
"""How much `upload` holds in memory at a time by default, some copies of it besides."""
Pieces = Callable[[], Iterator[bytes]]
"""Gives the bytes of one object from their beginning, each time that it is called."""
CONCERN_EVERY_OBJECT = frozenset(
    {
        ErrorCode.STORE_UNREACHABLE,
        ErrorCode.STORE_THROTTLED,
        ErrorCode.NO_CREDENTIALS,
        ErrorCode.BUCKET_MISSING,
        ErrorCode.PATH_MISSING,
    }
)
"""The codes of errors that every other object of the store would meet too. A refusal is not among them: what a user
may do often differs by prefix."""
MOST_DELETED_AT_ONCE = 1_000
"""The most objects that `delete` takes in one call: S3's limit for one request."""
RESERVED_FOLDER = ".tieredctl/"
"""The folder at a store's root that is tieredctl's own; what is in it is not part of any segment."""
UNFINISHED = ".tieredctl-unfinished-"
"""The prefix of names of files that tieredctl is still writing, or left when it was killed."""
_MARK = ".tieredctl"
"""What every reserved key has."""
LAST_CHARACTER = "\U0010ffff"
"""The greatest character: a prefix followed by it sorts after all keys with that prefix."""


class StoredObject(NamedTuple):
    """An object as its store lists it. Size in bytes, as stored; time in milliseconds since the epoch, UTC.

    `version` names these bytes under this key, in the store's own words (an ETag, a generation): another version means
    that the object was replaced. Compare for equality only. `storage_class` is the store's own word (`STANDARD`,
    `GLACIER`, `NEARLINE`); None where the store has no classes or did not report it.
    """

    key: str
    size: int
    last_modified_ms: int
    version: str
    storage_class: str | None = None


class MultipartUpload(NamedTuple):
    """A multipart upload that was neither completed nor aborted: it is paid for, but in no listing.

    Time in milliseconds since the epoch, UTC.
    """

    key: str
    upload_id: str
    initiated_ms: int


class Versioning(StrEnum):
    """Whether a store keeps the bytes of a deleted or replaced object as a version under its key."""

    OFF = "off"
    ENABLED = "enabled"
    SUSPENDED = "suspended"
    """The store made versions before, and keeps those: what is deleted now is kept only if it was written then."""
    UNKNOWN = "unknown"
    """The store does not report it to this user."""


class Retention(NamedTuple):
    """What a store keeps of deleted objects, as far as it reports. What is kept is billed."""

    versioning: Versioning = Versioning.OFF
    lock: str | None = None
    """The rule that protects new objects from deletion for good, in words; None where there is none, or it is not
    known."""
    soft_delete_days: float | None = None
    """How long deleted objects can be restored by means other than versioning."""


class KeptVersion(NamedTuple):
    """A deleted or replaced object, or the marker of a deletion, of 0 bytes: it is paid for, but in no listing.

    Size in bytes, time in milliseconds since the epoch, UTC.
    """

    key: str
    version_id: str
    size: int
    last_modified_ms: int
    is_delete_marker: bool
    storage_class: str | None = None


class Capability(StrEnum):
    """What some stores can do and others can't. Check it before calling a method that needs it."""

    CONDITIONAL_WRITE = "conditional-write"
    """`put_if_absent` and `replace`."""
    CONDITIONAL_COPY = "conditional-copy"
    """`copy` copies the named version or none. Without it, `copy` checks the version first: a write between check and
    copy is not noticed."""
    CONDITIONAL_DELETE = "conditional-delete"
    """`delete` removes the named version or none. Without it, `delete` removes whatever is under the key."""
    CONDITIONAL_UPLOAD = "conditional-upload"
    """`upload`."""
    MODIFICATION_TIMES = "modification-times"
    """`copy` gives the copy a requested time. Without it, a copy has the time at which it was made."""
    MULTIPART_UPLOADS = "multipart-uploads"
    """`multipart_uploads`, `multipart_upload_bytes` and `abort_multipart_upload`."""


class ObjectStore(Protocol):
    """Objects under keys, to be read. Nothing here changes an object.

    A key is a string relative to the store's root (a folder, or a bucket and prefix), its parts separated by `/`.
    A key that the store cannot hold, such as one with a part `..` in a folder, never has an object: it is not listed,
    `head` gives None and reading it raises `object-missing`.

    Every method may raise TieredctlError when the store does not answer (`store-unreachable`), throttles
    (`store-throttled`), refuses (`store-forbidden`, `path-forbidden`, `no-credentials`), is not there
    (`bucket-missing`, `path-missing`) or fails (`unreadable`). What it cannot look at it never skips silently: an
    incomplete listing would make objects look lost. A store may be used from several threads, and can be pickled: with
    its settings, without its connections.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do; of a read-only store at most MULTIPART_UPLOADS. Makes no request."""
        ...

    @property
    def parallel_reads(self) -> int:
        """How many parallel reads are best for one process: several where reads wait, as for a network."""
        ...

    @property
    def url(self) -> str:
        """The URL with which `open_store` opens this store again. Holds no secret."""
        ...

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """Every object whose key starts with `prefix` and comes after `start_after`, by ascending key.

        Keys are ordered by code points, which is also the order of their UTF-8 bytes. `prefix` is compared as text:
        `a/b` includes `a/bc`. Both may name what does not exist. Streams: memory does not grow with the number of
        objects, except for the names in one folder.

        A listing is not a snapshot. Each object that exists from its beginning to its end is in it exactly once; one
        created or removed meanwhile may be in it or not.
        """
        ...

    def head(self, key: str) -> StoredObject | None:
        """What `list` says of one object; None where there is none."""
        ...

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `start` (inclusive) to `end` (exclusive; None: to the last), neither of them negative.

        Cut as a Python slice is: a range that reaches beyond the object gives what there is of it, or nothing.
        Raises TieredctlError `object-missing`, and `object-archived` where it must be restored from an archive first.
        """
        ...

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        """The bytes from `start` to the end, in pieces of at most `chunk_size` bytes, none of them empty.

        Raises TieredctlError as `read` does, when the first piece is requested.
        """
        ...

    def reconnected(self) -> Self:
        """The same store over new connections, to read again what may have been altered in transit."""
        ...

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        """The checksums that the store has of this version, by the name of the function.

        Two objects with one of these in common hold the same bytes; two that differ in one may hold the same all the
        same. `md5` is that of all bytes, in hexadecimal digits. Empty where the store has no checksum, or the object
        was replaced or is gone.
        """
        ...

    def time_ms(self) -> int | None:
        """The time of the store's own clock, in ms since the epoch, as one of its answers has it in whole seconds; None
        where it has no clock but this host's, or does not report it. Needs no right but that to list."""
        ...

    def retention(self) -> Retention:
        """What the store keeps of deleted objects."""
        ...

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        """All that `retention` keeps as versions of keys that start with `prefix`, by ascending key. Streams."""
        ...

    def read_version(self, kept: KeptVersion) -> bytes:
        """All bytes of what `kept_versions` gave. Raises TieredctlError as `read` does."""
        ...

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        """What soft delete keeps of a key's deleted or replaced objects, apart from versions: nobody reads it before it
        is restored by other means."""
        ...

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        """Every unfinished upload for a key that starts with `prefix`, by ascending key.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        """The total size in bytes of its parts; 0 where it no longer exists.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...


def is_reserved(key: str) -> bool:
    """Whether an object of this key is tieredctl's own, and not part of any segment."""
    return key.startswith(RESERVED_FOLDER) or key.rpartition("/")[2].startswith(UNFINISHED)


def list_unreserved(store: ObjectStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
    """What `store.list` gives, without reserved objects; most of the reserved folder is not even listed."""
    for stored in store.list(prefix, start_after):
        if _MARK not in stored.key:  # as of nearly all
            yield stored
        elif stored.key.startswith(RESERVED_FOLDER):
            rest = store.list(prefix, RESERVED_FOLDER + LAST_CHARACTER)
            yield from (one for one in rest if not is_reserved(one.key))
            return
        elif not is_reserved(stored.key):
            yield stored


class DeletionOutcome(StrEnum):
    """Whether a deleted object is gone."""

    GONE = "gone"
    """The store confirmed that this version no longer exists; somebody else may have removed it."""
    CHANGED = "changed"
    """There is another version now, and it was left alone."""
    FAILED = "failed"
    """The store refused or did not answer: the object may exist or not."""


class Deletion(NamedTuple):
    """The outcome of one object's deletion; where it failed, why."""

    stored: StoredObject
    outcome: DeletionOutcome
    error: TieredctlError | None = None


class WritableObjectStore(ObjectStore, Protocol):
    """An object store that can be changed, one object at a time: there are no folders to make or remove.

    Every change is atomic, and is seen by every read and listing that begins after it returned. A method that needs a
    capability which the store lacks raises TieredctlError `store-incapable` and changes nothing; a key that the store
    cannot hold raises `unwritable`.

    An error does not mean that nothing was changed: only the answer may have been lost. `copy` and `delete` can be
    retried safely. After `put_if_absent`, `upload` and `replace` the store may refuse what it already did itself; see
    `tieredctl.storage.retrying`.
    """

    def write(self, key: str, data: bytes) -> StoredObject:
        """Makes an object, or replaces whatever is under its key: for tieredctl's own objects without other writers."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        """Makes an object. None, and nothing is changed, where the key has one already.

        Of several concurrent writers exactly one succeeds. Needs Capability.CONDITIONAL_WRITE.
        """
        ...

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        """Makes an object of `size` bytes that memory need not hold. None, and nothing is changed, where the key has
        one already.

        From `part_bytes` on it is sent in parts of about that many. The object is there when all of it is, and never
        before: what ends this early leaves no object, though a killed process may leave an unfinished upload. Of
        several concurrent writers exactly one succeeds. Raises TieredctlError `unreadable` if there are more pieces or
        fewer than `size` bytes, and what reading them raises. The object's time may be that of the answer, and its
        storage class None: nothing is asked again for them. Needs Capability.CONDITIONAL_UPLOAD.
        """
        ...

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        """Compare and swap: gives the object new bytes if it is still the version `current`.

        None, and nothing is changed, where it is another version or gone. Of several concurrent writers exactly one
        succeeds. Needs Capability.CONDITIONAL_WRITE.
        """
        ...

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        """Copies an object within the store, without its bytes passing through here, and replaces what is under `key`.

        The copy keeps the object's properties: content type and its siblings, Expires, metadata, tags, storage class,
        encryption, and, where the store reports them, its permissions; for a file its mode and owner. Its time is
        `modified_ms` where the store has Capability.MODIFICATION_TIMES; else that of the copying. None, and nothing
        is changed, where the source is no longer the version `source`. Raises TieredctlError `object-archived`.
        """
        ...

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        """Deletes at most MOST_DELETED_AT_ONCE objects, and returns the outcome of each in the order given.

        Failures are reported there, object by object, and never raised. Where `retention` keeps versions, this one and
        older ones stay as versions.
        """
        ...

    def delete_version(self, kept: KeptVersion) -> None:
        """Deletes for good what `kept_versions` gave; does nothing where it is already gone."""
        ...

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        """Aborts an upload and removes its parts; does nothing where it no longer exists.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...
