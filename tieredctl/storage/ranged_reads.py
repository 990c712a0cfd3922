"""A whole object read in ranges, each of the version that the first was of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tieredctl.storage.protocol import StoredObject

RANGE_BYTES = 8 << 20
"""How much one request asks for, unless a larger piece is wanted: less would wait more than it reads."""


def pieces(
    stored: StoredObject, start: int, chunk_size: int, read: Callable[[StoredObject, int, int], bytes]
) -> Iterator[bytes]:
    """The bytes from `start` to the end, in pieces of at most `chunk_size` bytes. `read` takes start and end."""
    span = max(RANGE_BYTES // chunk_size, 1) * chunk_size
    for position in range(start, stored.size, span):
        data = read(stored, position, min(position + span, stored.size))
        for offset in range(0, len(data), chunk_size):
            yield data[offset : offset + chunk_size]
