"""The bytes of an upload, in the parts in which stores take them, and the methods of stores that take none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import UPLOAD_PART_BYTES, Capability, Pieces, StoredObject
from tieredctl.storage.refusals import incapable


class Upload(NamedTuple):
    """What is to be sent: the object's key, its size in bytes, and what gives these."""

    key: str
    size: int
    pieces: Pieces

    def parts(self, part_bytes: int) -> Iterator[bytes]:
        """The bytes in parts of `part_bytes`, the last one smaller or equal, and given only once all bytes were seen to
        be `size`: no store completes an upload of others. Of no bytes, one empty part. Raises TieredctlError
        `unreadable`."""
        held, total = bytearray(), 0
        for piece in self.pieces():
            total += len(piece)
            held += piece
            while len(held) > part_bytes and total <= self.size:
                yield bytes(memoryview(held)[:part_bytes])
                del held[:part_bytes]
        if total != self.size:
            message = f"{total} bytes came where {self.key!r} was to have {self.size}: it changed while it was read."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Run it again.")
        yield bytes(held)


class _Store(Protocol):
    @property
    def url(self) -> str: ...


class NoUploads:
    """The method of a store without Capability.CONDITIONAL_UPLOAD: it raises TieredctlError `store-incapable`."""

    __slots__ = ()

    def upload(
        self: _Store,
        key: str,  # noqa: ARG002
        size: int,  # noqa: ARG002
        pieces: Pieces,  # noqa: ARG002
        part_bytes: int = UPLOAD_PART_BYTES,  # noqa: ARG002
    ) -> StoredObject | None:
        raise incapable(self.url, Capability.CONDITIONAL_UPLOAD)
