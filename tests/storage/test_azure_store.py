"""A container of Azure Blob Storage: what is special about it. What every store promises is in test_promises.py."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET, AzureContainer
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import AZURE_ACCOUNT, AZURE_KEY, ObjectServer
from tests.rigs.ports import free_ports
from tests.storage.missing_bucket import demand_missing
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import Deletion, DeletionOutcome, Retention, StoredObject, Versioning
from tieredctl.storage.azure import AzureStore
from tieredctl.storage.azure_connection import AzureConnection
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.retrying import RetryingStore, RetryPolicy

_prefixes = count()


class AzurePlace:
    """A prefix of a container, as a store and as Azure's library sees it."""

    def __init__(self, server: ObjectServer) -> None:
        self.endpoint = server.endpoint
        self.container = AzureContainer(server.endpoint)
        self.root = f"azure-{next(_prefixes)}/"
        self.store = self.store_at(server.endpoint)

    def store_at(self, endpoint: str) -> AzureStore:
        return AzureStore(BucketAddress("az", BUCKET, self.root), AzureConnection(endpoint=endpoint))

    def put(self, *keys: str) -> list[StoredObject]:
        for key in keys:
            self.container.put(self.root + key, key.encode())
        return [self.head(key) for key in keys]

    def blob(self, key: str) -> Any:
        return self.container.client.get_blob_client(self.root + key)

    def head(self, key: str) -> StoredObject:
        stored = self.store.head(key)
        assert stored is not None
        return stored


@contextmanager
def behind(place: AzurePlace, *rules: Rule) -> Iterator[tuple[AzureStore, FaultyProxy]]:
    """The store by way of a proxy in front of its server."""
    parts = urlsplit(place.endpoint)
    with FaultyProxy(f"http://{parts.netloc}", rules=list(rules)) as proxy:
        yield place.store_at(proxy.endpoint + parts.path), proxy


@pytest.fixture
def place(azurite: ObjectServer) -> AzurePlace:
    return AzurePlace(azurite)


def answered(status: int, reason: str = "", body: bytes = b"", **headers: str) -> Callable[[Request, Server], Reply]:
    told = [("x-ms-error-code", reason), *((name.replace("_", "-"), value) for name, value in headers.items())]
    return lambda _request, _server: Reply(status, told, body)


def outcomes(deletions: Sequence[Deletion]) -> list[tuple[DeletionOutcome, str | None]]:
    return [(deletion.outcome, deletion.error.code if deletion.error else None) for deletion in deletions]


GONE, FAILED = DeletionOutcome.GONE, DeletionOutcome.FAILED


def test_a_container_that_is_not_there_does_not_look_empty(place: AzurePlace) -> None:
    store = replace(place.store, address=BucketAddress("az", "gone", ""))
    demand_missing(store, lambda: store.put_if_absent("a", b""))
    assert outcomes(store.delete([StoredObject("a", 1, 0, '"1"')])) == [(FAILED, "bucket-missing")]


def test_an_answer_of_another_server_is_not_a_missing_object(place: AzurePlace) -> None:
    other = Rule(lambda _request, _server: Reply(404, [], b"nginx"), "HEAD")
    with behind(place, other) as (store, _), refused_with("unreadable"):
        store.head("a")


def test_what_is_stored_compressed_is_read_as_it_is_stored(place: AzurePlace) -> None:
    from azure.storage.blob import ContentSettings

    stored = gzip.compress(b"0123456789" * 100)
    settings = ContentSettings(content_encoding="gzip")
    place.container.client.upload_blob(f"{place.root}a.gz", stored, content_settings=settings)

    assert place.head("a.gz").size == len(stored)
    assert place.store.read("a.gz") == stored


def test_an_archived_blob_is_named_whether_it_is_read_or_copied(place: AzurePlace) -> None:
    place.put("a")
    place.blob("a").set_standard_blob_tier("Archive")
    archived = place.head("a")

    assert (archived.storage_class, [stored.storage_class for stored in place.store.list()]) == ("Archive", ["Archive"])
    for use in (lambda: place.store.read("a"), lambda: place.store.copy(archived, "b")):
        with refused_with("object-archived"):
            use()


def test_a_copy_keeps_tier_and_tags(place: AzurePlace) -> None:
    place.put("a")
    blob = place.blob("a")
    blob.set_standard_blob_tier("Cool")
    blob.set_blob_tags({"team": "a b", "part": "log/1"})

    made = place.store.copy(place.head("a"), "b")

    assert made is not None
    assert made.storage_class == "Cool"
    assert place.blob("b").get_blob_tags() == {"team": "a b", "part": "log/1"}


def test_a_copy_is_waited_for_and_one_that_failed_is_an_error(place: AzurePlace) -> None:
    (source,) = place.put("a")

    def told(status: str) -> Rule:
        def lie(request: Request, server: Server) -> Reply:
            code, headers, body = server(request)
            named = [(name, status if name == "x-ms-copy-status" else value) for name, value in headers]
            return Reply(code, named, body)

        return Rule(lie, "PUT", header="x-ms-copy-source")

    with behind(place, told("pending")) as (store, _):
        assert store.copy(source, "b") == place.head("b")
    with behind(place, told("aborted")) as (store, _), refused_with("unreadable"):
        store.copy(source, "c")


def test_tags_that_cannot_be_understood_are_named(place: AzurePlace) -> None:
    (source,) = place.put("a")
    place.blob("a").set_blob_tags({"team": "a"})

    with (
        behind(place, Rule(answered(200, body=b"<Tags"), "GET", "comp=tags")) as (store, _),
        refused_with("unreadable"),
    ):
        store.copy(source, "b")


def test_what_is_leased_or_has_snapshots_is_not_deleted_nor_called_changed(place: AzurePlace) -> None:
    leased, with_snapshot, plain = place.put("leased", "with-snapshot", "plain")
    lease = place.blob("leased").acquire_lease(15)
    place.blob("with-snapshot").create_snapshot()

    done = outcomes(place.store.delete([leased, with_snapshot, plain]))

    assert done == [(FAILED, "store-forbidden"), (FAILED, "store-forbidden"), (GONE, None)]
    lease.release()


def test_snapshots_are_kept_versions_and_can_be_deleted(place: AzurePlace) -> None:
    place.put("a", "b")
    for _ in range(2):
        place.blob("a").create_snapshot()

    kept = list(place.store.kept_versions())
    read = [place.store.read_version(one) for one in kept]
    for one in kept:
        place.store.delete_version(one)
        place.store.delete_version(one)

    assert [(one.key, one.size, one.is_delete_marker) for one in kept] == [("a", 1, False)] * 2
    assert read == [place.store.read("a")] * 2
    with pytest.raises(TieredctlError):
        place.store.read_version(kept[0])
    assert list(place.store.kept_versions()) == []
    assert [stored.key for stored in place.store.list()] == ["a", "b"]


VERSIONS = b"""<?xml version="1.0"?><EnumerationResults><Blobs>%s</Blobs><NextMarker/></EnumerationResults>"""


def version(key: str, version_id: str, second: int, more: str = "") -> bytes:
    return (
        f"<Blob><Name>{key}</Name><VersionId>{version_id}</VersionId>{more}<Properties><Last-Modified>Sat, 28 Nov 2026"
        f" 19:00:{second:02} GMT</Last-Modified><Etag>0x1</Etag><Content-Length>5</Content-Length></Properties></Blob>"
    ).encode()


CURRENT = "<IsCurrentVersion>true</IsCurrentVersion>"


def test_past_versions_are_kept_and_the_blob_written_last_shows_whether_more_will_be(place: AzurePlace) -> None:
    root = place.root
    past, current = version(f"{root}a", "1", 1), version(f"{root}a", "2", 2, CURRENT)
    unversioned = version(f"{root}b", "", 3).replace(b"<VersionId></VersionId>", b"")
    for blobs, versioning, ids in (
        (past + current, Versioning.ENABLED, ["1"]),
        (past + unversioned, Versioning.SUSPENDED, ["1"]),
        (unversioned, Versioning.UNKNOWN, []),
    ):
        with behind(place, Rule(answered(200, body=VERSIONS % blobs), "GET", "include=")) as (store, _):
            assert store.retention().versioning is versioning
            assert [kept.version_id for kept in store.kept_versions()] == ids
    twice = Rule(answered(200, body=VERSIONS % (past + past)), "GET", "include=")
    with behind(place, twice) as (store, _), refused_with("unreadable"):
        list(store.kept_versions())


DELETED = "<Deleted>true</Deleted>"


def test_what_soft_delete_keeps_of_a_blob_is_told(place: AzurePlace) -> None:
    """Also of its versions and snapshots, and of no other blob."""
    a = f"{place.root}a"
    blobs = version(a, "1", 1, DELETED) + version(a, "2", 2, CURRENT) + version(f"{a}b", "3", 3, DELETED)
    blobs += version(a, "", 4, f"{DELETED}<Snapshot>4</Snapshot>")
    listed = Rule(answered(200, body=VERSIONS % blobs), "GET", "include=deleted")
    with behind(place, listed) as (store, _):
        assert [(kept.key, kept.version_id) for kept in store.soft_deleted("a")] == [("a", "1"), ("a", "snapshot=4")]
    place.put("a")
    assert place.store.soft_deleted("a") == []


SERVICE = b"""<?xml version="1.0"?><StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>
<Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>"""


def test_soft_delete_and_locks_are_told_and_what_may_not_be_asked_is_unknown(place: AzurePlace) -> None:
    soft_delete = Rule(answered(200, body=SERVICE), "GET", "restype=service")
    held = Rule(answered(200, x_ms_has_legal_hold="true"), "HEAD", "restype=container")
    refused = Rule(answered(403, "AuthorizationPermissionMismatch"), "HEAD", "restype=container")

    with behind(place, soft_delete, held) as (store, _):
        told = store.retention()
    with behind(place, refused) as (store, _):
        untold = store.retention()

    assert (told.soft_delete_days, told.lock is None) == (7, False)
    assert untold == Retention(Versioning.UNKNOWN)


def test_locks_and_versions_are_told_to_whoever_may_not_ask_for_soft_delete(place: AzurePlace) -> None:
    refused = Rule(answered(403, "AuthorizationPermissionMismatch"), "GET", "restype=service")
    held = Rule(answered(200, x_ms_has_legal_hold="true"), "HEAD", "restype=container")
    unversioned = version("b", "", 3).replace(b"<VersionId></VersionId>", b"")
    for blobs, versioning in (
        (version("a", "2", 2, CURRENT), Versioning.ENABLED),
        (version("a", "1", 1) + unversioned, Versioning.UNKNOWN),
    ):
        listed = Rule(answered(200, body=VERSIONS % blobs), "GET", "include=versions")
        with behind(place, refused, held, listed) as (store, _):
            told = store.retention()
        assert (told.versioning, told.lock is None, told.soft_delete_days) == (versioning, False, None)


def test_more_than_a_batch_of_256_is_deleted_and_each_answer_is_read(place: AzurePlace) -> None:
    objects = [StoredObject(f"{number:03}", 1, 0, '"0x1"') for number in range(300)]
    objects[7], objects[299] = place.put("007", "299")
    place.put("150")

    with behind(place) as (store, proxy):
        done = store.delete(objects)

    sizes = sorted(request.body.count(b"\r\nDELETE ") for request in proxy.requests if "comp=batch" in request.path)
    by_key = {deletion.stored.key: deletion.outcome for deletion in done}
    assert sizes == [44, 256]
    assert [deletion.stored for deletion in done] == objects
    assert by_key.pop("150") is DeletionOutcome.CHANGED
    assert set(by_key.values()) == {GONE}
    assert [stored.key for stored in place.store.list()] == ["150"]


def test_a_batch_is_read_by_the_numbers_of_its_answers_and_silence_is_not_success(place: AzurePlace) -> None:
    a, b, c = place.put("a", "b", "c")
    busy = b"HTTP/1.1 503 Busy\r\nx-ms-error-code: ServerBusy\r\nRetry-After: 2\r\n\r\n"
    parts = [b"Content-ID: 2\r\n\r\n" + busy, b"Content-ID: 0\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"]
    body = b"".join(b"--x\r\nContent-Type: application/http\r\n" + part + b"\r\n" for part in parts) + b"--x--\r\n"
    lie = answered(202, body=body, Content_Type="multipart/mixed; boundary=x")

    with behind(place, Rule(lie, "POST", "comp=batch")) as (store, _):
        done = store.delete([a, b, c])

    assert outcomes(done) == [(GONE, None), (FAILED, "store-unreachable"), (FAILED, "store-throttled")]
    assert done[2].error is not None
    assert done[2].error.retry_after_seconds == 2


def test_a_server_that_throttles_is_left_alone_for_as_long_as_it_asks(place: AzurePlace) -> None:
    place.put("a")
    waited: list[float] = []
    busy = Rule(answered(503, "ServerBusy", Retry_After="7"), "GET", "/a", most=1)

    with behind(place, busy) as (store, _):
        data = RetryingStore(store, RetryPolicy(sleep=waited.append)).read("a")

    assert (data, waited) == (b"a", [7])


def test_a_listing_starts_where_it_is_asked_to_or_filters_where_the_service_cannot(place: AzurePlace) -> None:
    place.put("a", "b", "c")
    too_old = Rule(answered(400, "UnsupportedQueryParameter"), "GET", "startFrom=")

    for rules in ([], [too_old]):
        with behind(place, *rules) as (store, proxy):
            assert [stored.key for stored in store.list(start_after="a")] == ["b", "c"]
        assert "startFrom" in proxy.requests[0].path


def hierarchical(request: Request, server: Server) -> Reply:
    """What an account with a hierarchical namespace would list: folders as blobs, and by folder, not by text."""
    status, headers, body = server(request)
    page = ElementTree.fromstring(body)
    blobs = page.find("Blobs")
    assert blobs is not None
    for blob in blobs.iter("Blob"):
        properties = blob.find("Properties")
        assert properties is not None
        ElementTree.SubElement(properties, "ResourceType").text = "file"
    folders = {(blob.findtext("Name") or "").rpartition("/")[0] for blob in blobs.iter("Blob")}
    folders |= {(one.findtext("Name") or "").rstrip("/") for one in blobs.iter("BlobPrefix")}
    for name in folders:
        blobs.append(ElementTree.fromstring(FOLDER % name))
    blobs[:] = sorted(blobs, key=lambda blob: (blob.findtext("Name") or "").split("/"))
    return Reply(status, [pair for pair in headers if pair[0].lower() != "content-length"], ElementTree.tostring(page))


FOLDER = (
    "<Blob><Name>%s</Name><Properties><Last-Modified>Sat, 28 Nov 2026 19:00:00 GMT</Last-Modified><Etag>0x1</Etag>"
    "<Content-Length>0</Content-Length><ResourceType>directory</ResourceType></Properties></Blob>"
)


def test_folders_of_a_hierarchical_namespace_are_no_objects_and_keys_ascend_all_the_same(place: AzurePlace) -> None:
    keys = ["orders-0-audit/1.log", "orders-0/1.log", "orders-0/sub/2.log", "orders-01/1.log", "top"]
    place.put(*keys)

    with behind(place, Rule(hierarchical, "GET", "comp=list")) as (store, _):
        assert [stored.key for stored in store.list()] == keys
        assert [stored.key for stored in store.list("orders-0")] == keys[:4]
        assert [stored.key for stored in store.list("orders-0/", "orders-0/1.log")] == ["orders-0/sub/2.log"]
        assert [stored.key for stored in store.list(start_after="orders-0/sub")] == keys[2:]


def test_the_marker_of_a_folder_is_no_object(place: AzurePlace) -> None:
    place.container.client.upload_blob(f"{place.root}folder", b"", metadata={"hdi_isfolder": "true"})
    place.put("folder/a")

    assert [stored.key for stored in place.store.list()] == ["folder/a"]
    assert place.store.head("folder") is None
    with refused_with("object-missing"):
        place.store.read("folder")


SOUND = {"Last-Modified": "Sat, 28 Nov 2026 19:00:00 GMT", "Etag": "0x1", "Content-Length": "5"}


def test_what_no_blob_can_be_is_named(place: AzurePlace) -> None:
    for field, value in (
        *(("Content-Length", size) for size in ("-1", "many", None, "9" * 5_000)),
        *(("Last-Modified", time) for time in ("yesterday", None)),
        ("Etag", None),
    ):
        fields = {name: one for name, one in (SOUND | {field: value}).items() if one is not None}
        properties = "".join(f"<{name}>{one}</{name}>" for name, one in fields.items())
        blob = f"<Blob><Name>{place.root}a</Name><Properties>{properties}</Properties></Blob>".encode()
        page = Rule(answered(200, body=VERSIONS % blob), "GET", "comp=list")
        with behind(place, page) as (store, _), refused_with("unreadable", (field, value)):
            list(store.list())
    for body in (b"", b"<html/>", b"{}", VERSIONS[:40]):
        with (
            behind(place, Rule(answered(200, body=body), "GET", "comp=list")) as (store, _),
            refused_with("unreadable"),
        ):
            list(store.list())


def test_a_pickled_store_takes_neither_connection_nor_key_along(place: AzurePlace) -> None:
    place.put("a")
    list(place.store.list())

    pickled = pickle.dumps(place.store)

    assert AZURE_KEY.encode() not in pickled
    assert [stored.key for stored in pickle.loads(pickled).list()] == ["a"]


def test_a_server_that_does_not_answer_is_told_from_an_empty_container(place: AzurePlace) -> None:
    (port,) = free_ports(1)

    with refused_with("store-unreachable"):
        next(place.store_at(f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}").list())
