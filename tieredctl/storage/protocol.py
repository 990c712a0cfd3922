"""What tieredctl needs of an object store, and what every store promises.

Who only looks takes an `ObjectStore`, which has no way to change anything; who changes something takes a
`WritableObjectStore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

from tieredctl.errors import ErrorCode, TieredctlError

STREAM_CHUNK_BYTES = 1 << 20
"""How much `stream` holds in memory at a time unless told."""
CONCERN_EVERY_OBJECT = frozenset(
    {
        ErrorCode.STORE_UNREACHABLE,
        ErrorCode.STORE_THROTTLED,
        ErrorCode.NO_CREDENTIALS,
        ErrorCode.BUCKET_MISSING,
        ErrorCode.PATH_MISSING,
    }
)
"""The codes of errors that every other object of the store would meet too. A refusal is none of them: what a user may
do often differs by prefix."""
MOST_DELETED_AT_ONCE = 1_000
"""How many objects `delete` takes in one call: what S3 takes in one request."""
RESERVED_FOLDER = ".tieredctl/"
"""The folder at a store's root that is tieredctl's own; what is in it belongs to no segment."""
UNFINISHED = ".tieredctl-unfinished-"
"""How the name of a file begins that tieredctl is still writing, or left when it was killed."""
LAST_CHARACTER = "\U0010ffff"
"""The greatest character: a text that ends in it comes after the keys that begin with the rest of that text."""


class StoredObject(NamedTuple):
    """An object as its store lists it. Size in bytes, as stored; time in milliseconds since the epoch, UTC.

    `version` names these bytes under this key, in the store's own words (an ETag, a generation): another version means
    that the object was written anew. Compare for equality only. `storage_class` is the store's own word (`STANDARD`,
    `GLACIER`, `NEARLINE`); None where the store has no classes or did not tell.
    """

    key: str
    size: int
    last_modified_ms: int
    version: str
    storage_class: str | None = None


class MultipartUpload(NamedTuple):
    """An upload in parts that was begun and neither completed nor aborted: it is paid for, and in no listing.

    Time in milliseconds since the epoch, UTC.
    """

    key: str
    upload_id: str
    initiated_ms: int


class Versioning(StrEnum):
    """Whether a store keeps the bytes of an object that is deleted or replaced, under its key, as a version of it."""

    OFF = "off"
    ENABLED = "enabled"
    SUSPENDED = "suspended"
    """It kept versions, and keeps those: what is deleted now stays only if it was written before."""
    UNKNOWN = "unknown"
    """The store does not tell whoever asks."""


class Retention(NamedTuple):
    """What a store keeps of what is deleted, as far as it tells. What is kept is paid for."""

    versioning: Versioning = Versioning.OFF
    lock: str | None = None
    """The rule by which new objects may not be deleted for good, in words; None where there is none, or it is not told.
    """
    soft_delete_days: float | None = None
    """How long deleted objects can be had back, where that is no versioning."""


class KeptVersion(NamedTuple):
    """What is in no listing and is paid for: what was deleted or replaced, or the mark of a deletion, of 0 bytes.

    Size in bytes, time in milliseconds since the epoch, UTC.
    """

    key: str
    version_id: str
    size: int
    last_modified_ms: int
    is_delete_marker: bool
    storage_class: str | None = None


class Capability(StrEnum):
    """What some stores can and others can't. Ask for it before the method that needs it."""

    CONDITIONAL_WRITE = "conditional-write"
    """`put_if_absent` and `replace`."""
    CONDITIONAL_COPY = "conditional-copy"
    """`copy` copies the version that was named or none. Without it, it looks first and copies then: a writer between
    the two is not noticed."""
    CONDITIONAL_DELETE = "conditional-delete"
    """`delete` removes the version that was named or none. Without it, it removes what is under the key."""
    MODIFICATION_TIMES = "modification-times"
    """`copy` gives the copy the time that it is told. Without it, a copy is as old as its copying."""
    MULTIPART_UPLOADS = "multipart-uploads"
    """`multipart_uploads`, `multipart_upload_bytes` and `abort_multipart_upload`."""


class ObjectStore(Protocol):
    """Objects under keys, to be read. Nothing here changes an object.

    A key is a string relative to the store's root (a folder, or a bucket and prefix), its parts separated by `/`.
    A key that the store cannot hold, such as one with a part `..` in a folder, is the key of no object: it is never
    listed, `head` gives None and reading it raises `object-missing`.

    Every method may raise TieredctlError when the store does not answer (`store-unreachable`), asks for patience
    (`store-throttled`), refuses (`store-forbidden`, `path-forbidden`, `no-credentials`), is not there
    (`bucket-missing`, `path-missing`) or fails (`unreadable`). What it cannot look at it never passes over in silence:
    an incomplete listing would make objects look lost. A store may be used from several threads, and can be pickled: it
    takes its settings along, not its connections.
    """

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can. One that is only read has of them at most MULTIPART_UPLOADS. Asks nobody."""
        ...

    @property
    def parallel_reads(self) -> int:
        """How many reads at once serve one process best: several where a read waits, as it does for a network."""
        ...

    @property
    def url(self) -> str:
        """What `open_store` takes to open this store again. Holds no secret."""
        ...

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """Every object whose key starts with `prefix` and comes after `start_after`, by ascending key.

        Keys are ordered by their UTF-8 bytes. `prefix` is compared as text: `a/b` has `a/bc`. Both may name what does
        not exist. Streams: memory does not grow with the number of objects, but for the names in one folder.

        A listing is no snapshot. Each object that exists from its beginning to its end is in it exactly once; one made
        or removed meanwhile may be in it or not.
        """
        ...

    def head(self, key: str) -> StoredObject | None:
        """What `list` says of one object; None where there is none."""
        ...

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes `start` (inclusive) to `end` (exclusive; None: to the last), neither of them negative.

        Cut as a Python slice is: a range that reaches beyond the object gives what there is of it, or nothing.
        Raises TieredctlError `object-missing`, and `object-archived` where its storage class has to be left first.
        """
        ...

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        """The bytes from `start` to the end, in pieces of at most `chunk_size` bytes, none of them empty.

        Raises TieredctlError as `read` does, when the first piece is asked for.
        """
        ...

    def reconnected(self) -> Self:
        """The same store over other connections, for what may have been altered on the way over these."""
        ...

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        """What the store keeps to tell the bytes of this version from others, by the name of the function.

        Two objects with one of these in common hold the same bytes; two that differ in one may do so all the same.
        `md5` is that of all bytes, in hexadecimal digits. Nothing where the store keeps nothing, or where another
        version is there, or none.
        """
        ...

    def retention(self) -> Retention:
        """What is kept of what is deleted."""
        ...

    def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
        """All that `retention` keeps as versions of keys that start with `prefix`, by ascending key. Streams."""
        ...

    def multipart_uploads(self, prefix: str = "") -> Iterator[MultipartUpload]:
        """Every upload begun for a key that starts with `prefix`, and not ended, by ascending key.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...

    def multipart_upload_bytes(self, upload: MultipartUpload) -> int:
        """How many bytes the parts that it has take; 0 where it is no longer there.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...


def is_reserved(key: str) -> bool:
    """Whether an object of this key is tieredctl's own, and belongs to no segment."""
    return key.startswith(RESERVED_FOLDER) or key.rpartition("/")[2].startswith(UNFINISHED)


def list_unreserved(store: ObjectStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
    """What `store.list` gives, but for what is reserved; most of the reserved folder is not even listed."""
    for stored in store.list(prefix, start_after):
        if stored.key.startswith(RESERVED_FOLDER):
            behind = store.list(prefix, RESERVED_FOLDER + LAST_CHARACTER)
            yield from (one for one in behind if not is_reserved(one.key))
            return
        if not is_reserved(stored.key):
            yield stored


class DeletionOutcome(StrEnum):
    """Whether an object that was to be deleted is gone."""

    GONE = "gone"
    """The store confirmed that this version is no longer there; somebody else may have removed it."""
    CHANGED = "changed"
    """Another version is there now, and was left alone."""
    FAILED = "failed"
    """The store said no, or nothing: the object may be there or not."""


class Deletion(NamedTuple):
    """What became of one object that was to be deleted; where that failed, why."""

    stored: StoredObject
    outcome: DeletionOutcome
    error: TieredctlError | None = None


class WritableObjectStore(ObjectStore, Protocol):
    """An object store that can be changed, one object at a time: there are no folders to make or remove.

    Every change is whole or not at all, and is seen by every read and listing that begins after it returned. A method
    that needs a capability which the store lacks raises TieredctlError `store-incapable` and changes nothing; a key
    that the store cannot hold raises `unwritable`.

    An error does not say that nothing was changed: the answer alone may have been lost. Asking again is safe with
    `copy` and `delete`. With `put_if_absent` and `replace` the store may then refuse what it did itself before; see
    `tieredctl.storage.retrying`.
    """

    def write(self, key: str, data: bytes) -> StoredObject:
        """Makes an object, or replaces whatever is under its key: for tieredctl's own objects that nobody disputes."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        """Makes an object. None, and nothing is changed, where there is one of this key.

        Of several writers at once exactly one succeeds. Needs Capability.CONDITIONAL_WRITE.
        """
        ...

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        """Compare and swap: gives the object new bytes if it still is the version `current`.

        None, and nothing is changed, where it is another version or gone. Of several writers at once exactly one
        succeeds. Needs Capability.CONDITIONAL_WRITE.
        """
        ...

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        """Copies an object inside the store, without its bytes passing through here, and replaces what is under `key`.

        The copy keeps all that describes the object: content type and its siblings, Expires, metadata, tags, storage
        class, encryption, and, where the store tells it, who may use it; of a file its mode and owner. Its time is
        `modified_ms` where the store has Capability.MODIFICATION_TIMES; else that of the copying. None, and nothing
        is changed, where the source is no longer the version `source`. Raises TieredctlError `object-archived`.
        """
        ...

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        """Deletes at most MOST_DELETED_AT_ONCE objects, and tells of each in the order given what became of it.

        Whatever goes wrong is said there, object by object, and never raised. Where `retention` keeps versions, this
        one and older ones stay as such.
        """
        ...

    def delete_version(self, kept: KeptVersion) -> None:
        """Deletes for good what `kept_versions` gave; what is gone already is done."""
        ...

    def abort_multipart_upload(self, upload: MultipartUpload) -> None:
        """Gives up an upload and its parts; one that is no longer there is done already.

        Needs Capability.MULTIPART_UPLOADS.
        """
        ...
