"""What tieredctl needs of an object store, and what every store promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

STREAM_CHUNK_BYTES = 1 << 20
"""How much `stream` holds in memory at a time unless told."""


class StoredObject(NamedTuple):
    """An object as its store lists it. Size in bytes, as stored; time in milliseconds since the epoch, UTC."""

    key: str
    size: int
    last_modified_ms: int


class ObjectStore(Protocol):
    """Objects under keys, to be read. Nothing here changes an object.

    A key is a string relative to the store's root (a folder, or a bucket and prefix), its parts separated by `/`.
    A key that the store cannot hold, such as one with a part `..` in a folder, is the key of no object: it is never
    listed, `head` gives None and reading it raises `object-missing`.

    Every method may raise TieredctlError `store-unreachable`, `path-forbidden` or `unreadable` when the store does not
    answer, refuses or fails. What it cannot look at it never passes over in silence: an incomplete listing would make
    objects look lost. A store may be used from several threads, and can be pickled: it takes its settings along, not
    its connections.
    """

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
        Raises TieredctlError `object-missing`.
        """
        ...

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        """The bytes from `start` to the end, in pieces of at most `chunk_size` bytes, none of them empty.

        Raises TieredctlError `object-missing`, when the first piece is asked for.
        """
        ...
