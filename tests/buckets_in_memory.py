"""A bucket without a server."""

from __future__ import annotations

from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.storage.memory import MemoryStore


class BucketInMemory(MemoryStore):
    """A store whose copies are as old as their copying, with a clock that stands still."""

    capabilities = MemoryStore.capabilities - {Capability.MODIFICATION_TIMES}

    def __init__(self, now_ms: int) -> None:
        super().__init__()
        self.now_ms = now_ms

    def clock_ms(self) -> int:
        return self.now_ms

    def copy(self, source: StoredObject, key: str, modified_ms: int | None = None) -> StoredObject | None:
        return super().copy(source, key)
