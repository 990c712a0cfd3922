"""Objects read in ranges, for stores that serve one range per request."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tieredctl.storage.protocol import ObjectStore, StoredObject
from tieredctl.storage.refusals import object_missing

RANGE_BYTES = 8 << 20
"""How much one request reads, unless a larger piece is wanted: with less, waiting would outweigh reading."""


def read_range(
    store: ObjectStore, key: str, start: int, end: int | None, read: Callable[[str, int, int | None], bytes]
) -> bytes:
    """What `ObjectStore.read` gives; `read` is called with a range of at least one byte."""
    if end is not None and end <= start:
        # No range says "nothing", but the object must be there.
        if store.head(key) is None:
            raise object_missing(store.url, key)
        return b""
    return read(key, start, end)


def pieces(
    store: ObjectStore, key: str, start: int, chunk_size: int, read: Callable[[StoredObject, int, int], bytes]
) -> Iterator[bytes]:
    """What `ObjectStore.stream` gives, all of the version seen first; `read` takes start and end."""
    stored = store.head(key)
    if stored is None:
        raise object_missing(store.url, key)
    span = max(RANGE_BYTES // chunk_size, 1) * chunk_size
    for position in range(start, stored.size, span):
        data = read(stored, position, min(position + span, stored.size))
        for offset in range(0, len(data), chunk_size):
            yield data[offset : offset + chunk_size]
