"""A bucket of Google Cloud Storage: what is special about it. What every store promises is in test_promises.py."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.rigs.buckets import BUCKET, GcsBucket
from tests.rigs.faulty_proxy import Answer, FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ObjectServer
from tests.rigs.ports import free_ports
from tests.storage.answers import code_of
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import DeletionOutcome, StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.gcs import GcsStore
from tieredctl.storage.gcs_connection import GcsConnection

_prefixes = count()


class GcsPlace:
    """A prefix of a bucket, as a store and as Google's library sees it."""

    def __init__(self, server: ObjectServer) -> None:
        self.bucket = GcsBucket(server.endpoint)
        self.root = f"gcs-{next(_prefixes)}/"
        self.store = GcsStore(BucketAddress("gs", BUCKET, self.root), GcsConnection(server.endpoint))

    def put(self, *keys: str) -> None:
        for key in keys:
            self.bucket.put(self.root + key, key.encode())

    def head(self, key: str) -> StoredObject:
        stored = self.store.head(key)
        assert stored is not None
        return stored


@pytest.fixture
def place(fake_gcs_server: ObjectServer) -> GcsPlace:
    return GcsPlace(fake_gcs_server)


def test_a_version_is_a_generation_that_grows(place: GcsPlace) -> None:
    place.put("a")
    before = place.head("a")
    place.put("a")

    assert int(place.head("a").version) > int(before.version)


def test_a_bucket_that_is_not_there_does_not_look_empty(place: GcsPlace) -> None:
    store = replace(place.store, address=BucketAddress("gs", "gone", ""))
    looks: list[Callable[[], object]] = [
        lambda: list(store.list()),
        lambda: store.head("a"),
        lambda: store.read("a"),
        lambda: next(store.stream("a")),
        lambda: store.put_if_absent("a", b""),
    ]

    for look in looks:
        with pytest.raises(TieredctlError, match="no bucket") as raised:
            look()
        assert code_of(raised) == "bucket-missing"


def test_a_deletion_in_a_bucket_that_is_not_there_has_failed(place: GcsPlace) -> None:
    store = replace(place.store, address=BucketAddress("gs", "gone", ""))

    (deletion,) = store.delete([StoredObject("a", 1, 0, "1")])

    assert deletion.outcome is DeletionOutcome.FAILED
    assert deletion.error is not None
    assert deletion.error.code == "bucket-missing"


def test_what_is_stored_compressed_is_read_as_it_is_stored(place: GcsPlace) -> None:
    stored = gzip.compress(b"0123456789" * 100)
    blob = place.bucket.blob(place.root + "a.gz")
    blob.content_encoding = "gzip"
    blob.upload_from_string(stored)

    assert place.head("a.gz").size == len(stored)
    assert place.store.read("a.gz") == stored


@pytest.mark.parametrize("key", [".", ".."])
def test_a_key_that_would_lead_a_request_to_the_bucket_itself_is_never_sent(
    fake_gcs_server: ObjectServer, key: str
) -> None:
    with FaultyProxy(fake_gcs_server.endpoint) as proxy:
        store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(proxy.endpoint))

        (deletion,) = store.delete([StoredObject(key, 1, 0, "1")])
        found = store.head(key)

    assert (deletion.outcome, found, proxy.requests) == (DeletionOutcome.FAILED, None, [])


@pytest.mark.parametrize(("status", "code"), [(403, "store-forbidden"), (401, "no-credentials"), (400, "unreadable")])
def test_a_refusal_says_nothing_of_what_the_server_quotes(
    fake_gcs_server: ObjectServer, status: int, code: str
) -> None:
    with FaultyProxy(fake_gcs_server.endpoint, [Answer(status, b"Bearer ya29.secret", "text/plain")]) as proxy:
        store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(proxy.endpoint))

        with pytest.raises(TieredctlError) as raised:
            store.read("a")

    assert code_of(raised) == code
    assert "secret" not in f"{raised.value} {raised.value.hint}"


def test_a_copy_of_many_steps_goes_to_its_end(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    place.put("a")
    source = place.head("a")
    unfinished = Answer(200, b'{"done": false, "rewriteToken": "t", "totalBytesRewritten": 0, "objectSize": 1}')
    with FaultyProxy(
        fake_gcs_server.endpoint,
        [replace(unfinished, content_type="application/json")],
        applies=lambda request: "/rewriteTo/" in request.path,
    ) as proxy:
        store = replace(place.store, connection=GcsConnection(proxy.endpoint))

        made = store.copy(source, "b")

    steps = [request.path for request in proxy.requests if "/rewriteTo/" in request.path]
    assert ["rewriteToken=t" in path for path in steps] == [False, True]
    assert made == place.head("b")


def test_a_server_that_does_not_answer_is_told_from_an_empty_bucket() -> None:
    (port,) = free_ports(1)
    store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(f"http://127.0.0.1:{port}"))

    with pytest.raises(TieredctlError, match="does not answer") as raised:
        next(store.list())

    assert code_of(raised) == "store-unreachable"


def test_a_store_without_credentials_says_so(cloud_environment: None) -> None:
    store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection("https://127.0.0.1:1"))

    with pytest.raises(TieredctlError, match="no credentials") as raised:
        next(store.list())

    assert code_of(raised) == "no-credentials"


def test_a_pickled_store_takes_no_connection_along(place: GcsPlace) -> None:
    place.put("a")
    list(place.store.list())

    copy: GcsStore = pickle.loads(pickle.dumps(place.store))

    assert copy == place.store
    assert [stored.key for stored in copy.list()] == ["a"]


def test_a_copy_that_comes_to_no_end_is_given_up(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    place.put("a")
    source = place.head("a")

    def standing_still(_request: Request, _server: Server) -> Reply:
        body = b'{"done": false, "rewriteToken": "t", "totalBytesRewritten": "0", "objectSize": "1"}'
        return Reply(200, [("Content-Type", "application/json")], body)

    with FaultyProxy(fake_gcs_server.endpoint, rules=[Rule(standing_still, "POST", "/rewriteTo/")]) as proxy:
        store = replace(place.store, connection=GcsConnection(proxy.endpoint))

        with pytest.raises(TieredctlError, match="does not finish copying") as raised:
            store.copy(source, "b")

    assert code_of(raised) == "unreadable"
    assert len(proxy.requests) < 10


EMPTY_PAGE = b'{"kind": "storage#objects", "nextPageToken": "t"}'
SAME_VERSION = (
    b'{"kind": "storage#objects", "nextPageToken": "t", "items": [{"name": "a", "size": "1", "generation": "7", '
    b'"timeCreated": "2026-01-01T00:00:00Z", "timeDeleted": "2026-01-02T00:00:00Z", "storageClass": "STANDARD"}]}'
)


@pytest.mark.parametrize("page", [EMPTY_PAGE, SAME_VERSION], ids=["empty", "the same version"])
def test_pages_of_versions_come_to_an_end(place: GcsPlace, fake_gcs_server: ObjectServer, page: bytes) -> None:
    def endless(_request: Request, _server: Server) -> Reply:
        return Reply(200, [("Content-Type", "application/json")], page)

    with FaultyProxy(fake_gcs_server.endpoint, rules=[Rule(endless, "GET", "versions=True")]) as proxy:
        store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(proxy.endpoint))

        with pytest.raises(TieredctlError) as raised:
            list(store.kept_versions())

    assert code_of(raised) == "unreadable"


SOUND_ITEM = {"name": "a", "size": "1", "generation": "7", "timeCreated": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "changed",
    [
        {"size": "-1"},
        {"size": str(1 << 63)},
        {"size": "1" * 5_000},
        {"size": "many"},
        {"size": None},
        {"generation": "latest"},
        {"timeCreated": "yesterday"},
        {"timeCreated": "99999-01-01T00:00:00Z"},
        {"timeCreated": None},
        {"name": None},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_what_no_object_can_be_is_named(place: GcsPlace, fake_gcs_server: ObjectServer, changed: Any) -> None:
    def page(_request: Request, _server: Server) -> Reply:
        item = {name: value for name, value in (SOUND_ITEM | changed).items() if value is not None}
        body = json.dumps({"kind": "storage#objects", "items": [item]}).encode()
        return Reply(200, [("Content-Type", "application/json")], body)

    with FaultyProxy(fake_gcs_server.endpoint, rules=[Rule(page, "GET", "/o?")]) as proxy:
        store = GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(proxy.endpoint))

        with pytest.raises(TieredctlError) as raised:
            list(store.list())

    assert code_of(raised) == "unreadable"
    assert len(raised.value.message) < 200
