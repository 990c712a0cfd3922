"""Copies from store to store without a command line, and stores in memory that do what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tieredctl.cli.arguments import clock_ms as this_clock_ms
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.store_copy.comparison import By, StoreComparison
from tieredctl.ops.store_copy.copying import CopiedObject, ObjectCopier
from tieredctl.ops.store_copy.difference import Turns, oldest_first
from tieredctl.ops.store_copy.run import CopyRun, difference
from tieredctl.ops.store_copy.unproven import unproven_in
from tieredctl.ports.object_store import (
    UPLOAD_PART_BYTES,
    ObjectStore,
    Pieces,
    StoredObject,
    WritableObjectStore,
    is_reserved,
)
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.storage.memory import MemoryStore


def store_of(objects: Mapping[str, bytes], store: MemoryStore | None = None) -> MemoryStore:
    """Written in this order, a second apart."""
    store = MemoryStore() if store is None else store
    for second, (key, data) in enumerate(objects.items()):
        store.put(key, data, second * 1_000)
    return store


def contents(store: ObjectStore) -> dict[str, bytes]:
    """All but tieredctl's own."""
    return {one.key: store.read(one.key) for one in store.list() if not is_reserved(one.key)}


@dataclass
class Copied:
    """A run that ended."""

    run: CopyRun
    rows: list[CopiedObject]

    def results(self) -> list[tuple[str, str]]:
        return [(row.result, row.key) for row in self.rows]


def copied(
    source: ObjectStore,
    destination: WritableObjectStore,
    by: By = By.SIZE,
    turns: Turns = oldest_first,
    clock_ms: Callable[[], int] = this_clock_ms,
) -> Copied:
    """One run. The source cannot be changed."""
    comparison = StoreComparison(ReadOnlyStore(source), destination, by, unproven_in(destination))
    copier = ObjectCopier(comparison.source, destination, lambda _: None)
    with difference(comparison, turns) as planned, lease_held(destination, "store copy", clock_ms) as lease:
        run = CopyRun(comparison, planned, turns, copier, lease)
        return Copied(run, list(run.copied()))


class Killed(BaseException):
    """The process is no more."""


class MortalStore(MemoryStore):
    """A store whose user is killed at a boundary: right before something is written, amid an upload, or right after."""

    def __init__(self) -> None:
        super().__init__()
        self.boundaries = 0
        self.kill_at: int | None = None
        self.now_ms = 0

    def clock_ms(self) -> int:
        return self.now_ms

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self._boundary()
        done = super().put_if_absent(key, data)
        self._boundary()
        return done

    def upload(self, key: str, size: int, pieces: Pieces, part_bytes: int = UPLOAD_PART_BYTES) -> StoredObject | None:
        def mortal() -> Iterator[bytes]:
            for piece in pieces():
                self._boundary()
                yield piece

        return super().upload(key, size, mortal, part_bytes)

    def _boundary(self) -> None:
        self.boundaries += 1
        if self.boundaries == self.kill_at:
            raise Killed
