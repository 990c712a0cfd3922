"""A trial whose objects are in a container of Azurite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from tests.removal.chaos.histories import drawn_history
from tests.removal.chaos.model_cluster import ModelCluster
from tests.removal.chaos.trial import Trial, now_ms
from tests.rigs.buckets import AzureContainer
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import StoredObject, WritableObjectStore
from tieredctl.storage.azure import AzureStore
from tieredctl.storage.azure_connection import AzureConnection
from tieredctl.storage.bucket_address import BucketAddress


@dataclass(frozen=True, slots=True)
class AgedStore(AzureStore):
    """A container in which some objects are as old as a model says, whatever the server does."""

    ages: Path = Path()
    """A folder with a file for each version of them."""

    def _listing(self, prefix: str, start_after: str) -> Iterator[StoredObject]:
        # A dataclass with slots is another class than the one that super() would look for.
        return map(self.aged, AzureStore._listing(self, prefix, start_after))

    def head(self, key: str) -> StoredObject | None:
        found = AzureStore.head(self, key)
        return None if found is None else self.aged(found)

    def aged(self, stored: StoredObject) -> StoredObject:
        try:
            return stored._replace(last_modified_ms=int(self.age_of(stored).read_text()))
        except FileNotFoundError:
            return stored

    def age_of(self, stored: StoredObject) -> Path:
        return self.ages / sha256(f"{stored.key} {stored.version}".encode()).hexdigest()


@dataclass(frozen=True)
class ContainerBucket:
    """A `Bucket` in a container. For any number of processes, one after the other."""

    store: AgedStore

    def upload(self, key: str, data: bytes, now_ms: int) -> None:
        self.store.age_of(self.store.write(key, data)).write_text(str(now_ms))

    def remove(self, key: str) -> None:
        found = self.store.head(key)
        if found is not None:
            self.store.delete([found])

    def read(self, key: str) -> bytes | None:
        try:
            return self.store.read(key)
        except TieredctlError as error:
            if error.code is not ErrorCode.OBJECT_MISSING:
                raise
            return None

    def alter(self, key: str, data: bytes) -> None:
        self.store.write(key, data)

    def keys(self) -> set[str]:
        return {stored.key for stored in self.store.list()}


@dataclass
class AzureTrial(Trial):
    """A trial in a container of its own, of the server at an endpoint."""

    endpoint: str = ""

    def bare_store(self) -> WritableObjectStore:
        return self._bucket.store

    def _begun_cluster(self) -> ModelCluster:
        container, ages = f"chaos-{uuid4().hex}", self.folder / "ages"
        AzureContainer(self.endpoint, container)
        ages.mkdir()
        address, connection = BucketAddress("az", container, ""), AzureConnection(endpoint=self.endpoint)
        self._bucket = ContainerBucket(AgedStore(address, connection, ages=ages))
        return ModelCluster.begun(self.folder, drawn_history(self.setting.seed), now_ms(), self._bucket)
