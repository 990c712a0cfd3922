"""Every store there is, with objects in it: on this machine's disk, in memory, and on real servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeVar

import pytest

from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.storage.s3_place import S3Place
from tieredctl.ports.object_store import ObjectStore, WritableObjectStore
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store, open_writable_store

_Store = TypeVar("_Store", bound=ObjectStore)
StoreWith = Callable[[Mapping[str, bytes]], ObjectStore]
"""Makes a store that holds these objects and no others."""
WritableWith = Callable[[Mapping[str, bytes]], WritableObjectStore]
"""The same, of a store that can be changed."""

SERVERS: dict[str, tuple[str, type[Bucket]]] = {
    "moto": ("moto", S3Bucket),
    "versitygw": ("versitygw", S3Bucket),
    "fake-gcs-server": ("fake_gcs_server", GcsBucket),
    "gcp-storage-emulator": ("gcp_storage_emulator", GcsBucket),
    "azurite": ("azurite", AzureContainer),
}
STORES = ("file", "memory", *SERVERS)

_prefixes = count()


@dataclass(frozen=True)
class BucketPart:
    """The part of a bucket that a test has for itself, and how to open it."""

    bucket: Bucket
    prefix: str

    @property
    def url(self) -> str:
        return f"{self.bucket.scheme}://{BUCKET}/{self.prefix}"

    @property
    def options(self) -> Mapping[str, str]:
        return self.bucket.options

    def put(self, key: str, data: bytes, content_type: str = "text/plain", **metadata: str) -> None:
        self.bucket.put(self.prefix + key, data, content_type, **metadata)

    def described(self, key: str) -> tuple[str, Mapping[str, str]]:
        return self.bucket.described(self.prefix + key)


BucketWith = Callable[[Mapping[str, bytes]], BucketPart]
"""Puts objects into a bucket."""


@pytest.fixture(scope="session")
def buckets() -> dict[str, Bucket]:
    """The bucket of each server that was asked for."""
    return {}


@pytest.fixture(params=STORES)
def store_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bucket_with(store_kind: str, buckets: dict[str, Bucket], request: pytest.FixtureRequest) -> BucketWith:
    """A prefix of its own for these objects, on the server of `store_kind`."""
    server_fixture, bucket_kind = SERVERS[store_kind]
    if store_kind not in buckets:
        buckets[store_kind] = bucket_kind(request.getfixturevalue(server_fixture).endpoint)
    bucket = buckets[store_kind]

    def with_objects(objects: Mapping[str, bytes]) -> BucketPart:
        part = BucketPart(bucket, f"case-{next(_prefixes)}/")
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(part.put, objects.keys(), objects.values()))
        return part

    return with_objects


@pytest.fixture
def store_with(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> StoreWith:
    return _store_with(open_store, store_kind, tmp_path, request)


@pytest.fixture
def writable_with(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> WritableWith:
    return _store_with(open_writable_store, store_kind, tmp_path, request)


def _store_with(
    opened: Callable[[str, Mapping[str, str]], _Store], store_kind: str, folder: Path, request: pytest.FixtureRequest
) -> Callable[[Mapping[str, bytes]], _Store | WritableObjectStore]:
    """Of this kind, where one on a server is opened in this way."""
    if store_kind not in SERVERS:
        return _local_store_with(store_kind, folder)
    bucket_with = request.getfixturevalue("bucket_with")

    def server_store(objects: Mapping[str, bytes]) -> _Store:
        place: BucketPart = bucket_with(objects)
        return opened(place.url, place.options)

    return server_store


def _local_store_with(store_kind: str, folder: Path) -> WritableWith:
    def file_store(objects: Mapping[str, bytes]) -> WritableObjectStore:
        root = Path(mkdtemp(dir=folder))
        for key, data in objects.items():
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            (root / key).write_bytes(data)
        return FileStore(str(root))

    def memory_store(objects: Mapping[str, bytes]) -> WritableObjectStore:
        store = MemoryStore()
        for key, data in objects.items():
            store.put(key, data)
        return store

    return file_store if store_kind == "file" else memory_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with three objects,"""
    folder = tmp_path / "store"
    for key in ("a/1.log", "a/2.log", "b/1.log"):
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(key.encode())
    return folder


@pytest.fixture
def store(root: Path) -> FileStore:
    """as a store."""
    return FileStore(str(root))


@pytest.fixture
def gateway(versitygw: ObjectServer) -> S3Place:
    """At a strict server."""
    return S3Place(versitygw)


@pytest.fixture
def place(moto: ObjectServer) -> S3Place:
    """At a server that asks nobody who they are."""
    return S3Place(moto)
