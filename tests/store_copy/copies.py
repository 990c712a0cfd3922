"""Copies from store to store without a command line, and stores in memory that do what a test wants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.rigs.mortal_store import Killed, MortalStore
from tieredctl.cli.arguments import clock_ms as this_clock_ms
from tieredctl.errors import ExitCode
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.store_copy.comparison import By, StoreComparison
from tieredctl.ops.store_copy.copying import CopiedObject, ObjectCopier
from tieredctl.ops.store_copy.difference import Turns, oldest_first
from tieredctl.ops.store_copy.run import CopyRun, difference
from tieredctl.ops.store_copy.unproven import unproven_in
from tieredctl.ports.layout import Rewrapping
from tieredctl.ports.object_store import (
    ObjectStore,
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


class Etagged(MemoryStore):
    """A store whose versions are the MD5 of what it holds, as S3's are of uploads at once."""

    def put(self, key: str, data: bytes, last_modified_ms: int = 0) -> StoredObject:
        version = f'"{hashlib.md5(data).hexdigest()}"'
        stored = super().put(key, data, last_modified_ms)._replace(version=version)
        self._objects[key] = (stored, data)
        return stored

    def checksums(self, stored: StoredObject) -> Mapping[str, str]:
        there = self.head(stored.key)
        return {} if there is None or there.version != stored.version else {"md5": there.version.strip('"')}


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
    rewrapping: Rewrapping | None = None,
    *,
    listed_from: int = 10_000,
) -> Copied:
    """One run. The source cannot be changed."""
    comparison = StoreComparison(
        ReadOnlyStore(source), destination, by, unproven_in(destination), rewrapping=rewrapping
    )
    copier = ObjectCopier(comparison.source, destination, lambda _: None, rewrapping=rewrapping)
    with difference(comparison, turns) as planned, lease_held(destination, "store copy", clock_ms) as lease:
        run = CopyRun(comparison, planned, turns, copier, lease, listed_from=listed_from)
        return Copied(run, list(run.copied()))


def killed_at_each_boundary(run: Callable[[MortalStore], Copied]) -> Iterator[MortalStore]:
    """The stores that runs left which were killed, each at another change of its store; a whole run ends clean."""
    whole = MortalStore()
    assert run(whole).run.exit_code() == ExitCode.CLEAN
    for boundary in range(1, whole.boundaries + 1):
        store = MortalStore()
        store.kill_at = boundary
        with pytest.raises(Killed):
            run(store)
        store.kill_at = None
        yield store
