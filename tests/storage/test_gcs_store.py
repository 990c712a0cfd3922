"""A bucket of Google Cloud Storage: what is special about it. What every store promises is in test_promises.py."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET, GcsBucket
from tests.rigs.faulty_proxy import Answer, FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ObjectServer
from tests.rigs.ports import free_ports
from tests.storage.missing_bucket import demand_missing
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import DeletionOutcome, KeptVersion, StoredObject
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
    demand_missing(store, lambda: store.put_if_absent("a", b""))


def test_a_deletion_in_a_bucket_that_is_not_there_has_failed(place: GcsPlace) -> None:
    store = replace(place.store, address=BucketAddress("gs", "gone", ""))

    (deletion,) = store.delete([StoredObject("a", 1, 0, "1")])

    assert (deletion.outcome, deletion.error and deletion.error.code) == (DeletionOutcome.FAILED, "bucket-missing")


def test_what_is_stored_compressed_is_read_as_it_is_stored(place: GcsPlace) -> None:
    stored = gzip.compress(b"0123456789" * 100)
    blob = place.bucket.blob(place.root + "a.gz")
    blob.content_encoding = "gzip"
    blob.upload_from_string(stored)

    assert place.head("a.gz").size == len(stored)
    assert place.store.read("a.gz") == stored


def test_a_key_that_would_lead_a_request_to_the_bucket_itself_is_never_sent(fake_gcs_server: ObjectServer) -> None:
    for key in (".", ".."):
        with FaultyProxy(fake_gcs_server.endpoint) as proxy:
            store = bucket_at(proxy.endpoint)

            (deletion,) = store.delete([StoredObject(key, 1, 0, "1")])

            assert (deletion.outcome, store.head(key), proxy.requests) == (DeletionOutcome.FAILED, None, []), key


def bucket_at(endpoint: str) -> GcsStore:
    """A whole bucket as a store."""
    return GcsStore(BucketAddress("gs", BUCKET, ""), GcsConnection(endpoint))


def test_a_refusal_says_nothing_of_what_the_server_quotes(fake_gcs_server: ObjectServer) -> None:
    for status, code in {403: "store-forbidden", 401: "no-credentials", 400: "unreadable"}.items():
        secret = Answer(status, b"Bearer ya29.secret", "text/plain")
        with FaultyProxy(fake_gcs_server.endpoint, [secret]) as proxy, pytest.raises(TieredctlError) as raised:
            bucket_at(proxy.endpoint).read("a")
        assert raised.value.code == code
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


def test_a_server_that_does_not_answer_or_wants_credentials_is_told_from_an_empty_bucket(
    cloud_environment: None,
) -> None:
    (port,) = free_ports(1)

    with refused_with("store-unreachable"):
        next(bucket_at(f"http://127.0.0.1:{port}").list())
    with refused_with("no-credentials"):
        next(bucket_at("https://127.0.0.1:1").list())


def test_a_pickled_store_takes_no_connection_along(place: GcsPlace) -> None:
    place.put("a")
    list(place.store.list())

    copy: GcsStore = pickle.loads(pickle.dumps(place.store))

    assert copy == place.store
    assert [stored.key for stored in copy.list()] == ["a"]


def always(body: bytes) -> Callable[[Request, Server], Reply]:
    return lambda _request, _server: Reply(200, [("Content-Type", "application/json")], body)


def test_a_copy_that_comes_to_no_end_is_given_up(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    place.put("a")
    source = place.head("a")
    standing_still = always(b'{"done": false, "rewriteToken": "t", "totalBytesRewritten": "0", "objectSize": "1"}')

    rule = Rule(standing_still, "POST", "/rewriteTo/")
    with FaultyProxy(fake_gcs_server.endpoint, rules=[rule]) as proxy, refused_with("unreadable"):
        replace(place.store, connection=GcsConnection(proxy.endpoint)).copy(source, "b")

    assert len(proxy.requests) < 10


EMPTY_PAGE = b'{"kind": "storage#objects", "nextPageToken": "t"}'
SAME_VERSION = (
    b'{"kind": "storage#objects", "nextPageToken": "t", "items": [{"name": "a", "size": "1", "generation": "7", '
    b'"timeCreated": "2026-01-01T00:00:00Z", "timeDeleted": "2026-01-02T00:00:00Z", "storageClass": "STANDARD"}]}'
)


def test_pages_of_versions_come_to_an_end(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    for page in (EMPTY_PAGE, SAME_VERSION):
        rule = Rule(always(page), "GET", "versions=True")
        with FaultyProxy(fake_gcs_server.endpoint, rules=[rule]) as proxy, refused_with("unreadable", page):
            list(bucket_at(proxy.endpoint).kept_versions())


SOFT_DELETED = (
    b'{"items": [{"name": "a", "size": "5", "generation": "7", "timeCreated": "2026-01-01T00:00:00Z", "storageClass": '
    b'"NEARLINE", "softDeleteTime": "2026-01-02T00:00:00Z", "hardDeleteTime": "2026-01-09T00:00:00Z"}, '
    b'{"name": "ab", "size": "1", "generation": "8", "timeCreated": "2026-01-01T00:00:00Z", '
    b'"softDeleteTime": "2026-01-02T00:00:00Z"}]}'
)


def test_what_soft_delete_keeps_of_a_key_is_told(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    asked = Rule(always(SOFT_DELETED), "GET", "softDeleted=True")
    with FaultyProxy(fake_gcs_server.endpoint, rules=[asked]) as proxy:
        kept = bucket_at(proxy.endpoint).soft_deleted("a")

    assert kept == [KeptVersion("a", "7", 5, 1_767_225_600_000, False, "NEARLINE")]


def test_a_bucket_that_refuses_the_question_has_nothing_soft_deleted_if_it_says_so(
    place: GcsPlace, fake_gcs_server: ObjectServer
) -> None:
    refused = Rule(lambda _request, _server: Reply(400, [], b"{}"), "GET", "softDeleted=True")
    untold = Rule(lambda _request, _server: Reply(403, [], b"{}"), "GET", f"/b/{BUCKET}?")
    with FaultyProxy(fake_gcs_server.endpoint, rules=[refused]) as proxy:
        assert list(bucket_at(proxy.endpoint).soft_deleted("a")) == []
    with FaultyProxy(fake_gcs_server.endpoint, rules=[refused, untold]) as proxy, refused_with("unreadable"):
        bucket_at(proxy.endpoint).soft_deleted("a")


SOUND_ITEM = {"name": "a", "size": "1", "generation": "7", "timeCreated": "2026-01-01T00:00:00Z"}


IMPOSSIBLE: list[tuple[str, str | None]] = [
    *(("size", size) for size in ("-1", str(1 << 63), "1" * 5_000, "many", None)),
    ("generation", "latest"),
    *(("timeCreated", time) for time in ("yesterday", "99999-01-01T00:00:00Z", None)),
    ("name", None),
]


def test_what_no_object_can_be_is_named(place: GcsPlace, fake_gcs_server: ObjectServer) -> None:
    for field, value in IMPOSSIBLE:
        item = {name: one for name, one in (SOUND_ITEM | {field: value}).items() if one is not None}
        page = Rule(always(json.dumps({"kind": "storage#objects", "items": [item]}).encode()), "GET", "/o?")
        with FaultyProxy(fake_gcs_server.endpoint, rules=[page]) as proxy, pytest.raises(TieredctlError) as raised:
            list(bucket_at(proxy.endpoint).list())
        assert raised.value.code == "unreadable", (field, value)
        assert len(raised.value.message) < 200


def test_the_bytes_of_a_kept_version_are_those_of_its_generation(place: GcsPlace) -> None:
    """The server's listing does not say which generations are past; Google's does."""
    versioned = place.bucket.versioned("versioned-generations")
    store = replace(place.store, address=BucketAddress("gs", versioned.name, place.root))
    first, second = versioned.blob(place.root + "a"), versioned.blob(place.root + "a")
    first.upload_from_string(b"first")
    second.upload_from_string(b"second")
    kept = KeptVersion("a", str(first.generation), 5, 0, is_delete_marker=False)

    assert (store.read_version(kept), store.read("a")) == (b"first", b"second")
    with refused_with("object-missing"):
        store.read_version(kept._replace(version_id="1"))
