"""A store in memory whose user is killed between any two steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.ports.object_store import UPLOAD_PART_BYTES, Deletion, Pieces, StoredObject
from tieredctl.storage.memory import MemoryStore


class Killed(BaseException):
    """The process is no more."""


class MortalStore(MemoryStore):
    """A store whose user is killed at a boundary: right before something is written or deleted, amid an upload, or
    right after."""

    def __init__(self) -> None:
        super().__init__()
        self.boundaries = 0
        self.kill_at: int | None = None
        self.now_ms = 0

    def clock_ms(self) -> int:
        return self.now_ms

    def write(self, key: str, data: bytes) -> StoredObject:
        self._boundary()
        done = super().write(key, data)
        self._boundary()
        return done

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._boundary()
        done = super().put_if_absent(key, data)
        self._boundary()
        return done

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        self._boundary()
        done = super().replace(current, data)
        self._boundary()
        return done

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        self._boundary()
        done = super().copy(source, key, modified_ms)
        self._boundary()
        return done

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        def mortal() -> Iterator[bytes]:
            for piece in pieces():
                self._boundary()
                yield piece

        return super().upload(key, size, mortal, part_bytes)

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        return [self._deleted(one) for one in objects]

    def _deleted(self, stored: StoredObject) -> Deletion:
        self._boundary()
        (done,) = super().delete([stored])
        self._boundary()
        return done

    def _boundary(self) -> None:
        self.boundaries += 1
        if self.boundaries == self.kill_at:
            raise Killed
