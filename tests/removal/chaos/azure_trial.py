"""A trial whose objects are in a container of Azurite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from tests.removal.chaos.aged_store import AGES, SCHEME, AgedStore
from tests.removal.chaos.histories import drawn_history
from tests.removal.chaos.model_cluster import ModelCluster
from tests.removal.chaos.trial import LEASE_RUN_OUT_MS, Trial, now_ms
from tests.rigs.buckets import AzureContainer
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.storage.azure_connection import AzureConnection
from tieredctl.storage.bucket_address import BucketAddress


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

    @property
    def store_words(self) -> Sequence[str]:
        options = {"endpoint": self.endpoint, AGES: f"{self._bucket.store.ages}"}
        return [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]

    def let_the_lease_run_out(self) -> None:
        lease = self._bucket.store.head(LEASE_KEY)
        if lease is not None:
            self._bucket.store.age_of(lease).write_text(str(lease.last_modified_ms - LEASE_RUN_OUT_MS))

    def _begun_cluster(self) -> ModelCluster:
        container, ages = f"chaos-{uuid4().hex}", self.folder / AGES
        AzureContainer(self.endpoint, container)
        ages.mkdir()
        address, connection = BucketAddress(SCHEME, container, ""), AzureConnection(endpoint=self.endpoint)
        self._bucket = ContainerBucket(AgedStore(address, connection, ages=ages))
        return ModelCluster.begun(self.folder, drawn_history(self.setting.seed), now_ms(), self._bucket)
