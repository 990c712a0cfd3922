"""A limit to how fast segments are read, shared by all Python workers of a machine."""

from __future__ import annotations

import fcntl
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl.ports.read_only_store import ReadOnlyStore

_MOMENT = struct.Struct("=d")


@dataclass(frozen=True, slots=True)
class ReadRate:
    """At most this many bytes a second, together with every process of the machine that has a rate of this name."""

    bytes_per_second: float
    name: str

    def wait_for(self, size: int) -> float:
        """Reserves the time that so many bytes take after what was reserved before, and waits for its beginning. The
        seconds that were waited."""
        # The monotonic clock is one for all processes of a machine.
        now = time.monotonic()
        path = os.path.join(tempfile.gettempdir(), f"tieredctl-read-rate-{self.name}")
        with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            kept = file.read(_MOMENT.size)
            begins = max(now, _MOMENT.unpack(kept)[0]) if len(kept) == _MOMENT.size else now
            file.seek(0)
            file.write(_MOMENT.pack(begins + size / self.bytes_per_second))
        time.sleep(begins - now)
        return begins - now


@dataclass(frozen=True, slots=True)
class RateLimited(ReadOnlyStore):
    """Another store, read no faster than a rate."""

    rate: ReadRate | None = None

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = self.store.read(key, start, end)
        self._wait_for(data)
        return data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        for piece in self.store.stream(key, start, chunk_size):
            self._wait_for(piece)
            yield piece

    def _wait_for(self, data: bytes) -> None:
        if self.rate is not None:
            self.rate.wait_for(len(data))
