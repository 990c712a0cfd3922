"""A bucket of S3: what is special about it. What every store promises is in test_promises.py."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET
from tests.rigs.faulty_proxy import Answer, FaultyProxy
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer
from tests.rigs.ports import free_ports
from tests.storage.missing_bucket import demand_missing
from tests.storage.s3_place import S3Place
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import Capability, DeletionOutcome, StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.route import Route
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import S3Connection

ALL_BUT_CONDITIONAL_DELETE = frozenset(Capability) - {Capability.CONDITIONAL_DELETE}


@pytest.fixture
def nowhere(cloud_environment: None) -> S3Store:
    """At a port where nobody listens."""
    (port,) = free_ports(1)
    return S3Store(BucketAddress("s3", BUCKET, ""), S3Connection(f"http://127.0.0.1:{port}"))


def test_no_proxy_is_asked_for_a_key_that_it_would_get_as_that_of_another_object(nowhere: S3Store) -> None:
    through_proxy = replace(nowhere.connection, route=Route(proxy=nowhere.connection.endpoint))
    store = replace(nowhere, connection=through_proxy)
    stored = StoredObject("a/../b", 1, 0, '"x"')

    for ask in (store.head, store.read, lambda key: store.write(key, b"")):
        for key in ("a/./b", "a/../b", ".."):
            with refused_with("unreadable"):
                ask(key)
        with refused_with("store-unreachable"):
            ask("a/..b./c")
    (deletion,) = store.delete([stored])
    assert deletion.error is not None
    assert deletion.error.code == "unreadable"
    with refused_with("store-unreachable"):
        nowhere.head("a/./b")


def test_the_store_is_what_lies_below_the_prefix(place: S3Place) -> None:
    place.put("orders-0/1.log")
    place.bucket.put(place.root.removesuffix("/") + "-other/1.log", b"")

    assert place.keys() == ["orders-0/1.log"]


def test_a_bucket_can_be_a_store_as_a_whole(place: S3Place) -> None:
    place.put("a")
    whole = S3Store(BucketAddress("s3", BUCKET, ""), place.connection)

    assert [stored.key for stored in whole.list(place.root)] == [place.root + "a"]


def test_the_marker_of_the_stores_own_folder_is_not_an_object(place: S3Place) -> None:
    place.put("", "folder/", "folder/a")

    assert place.keys() == ["folder/", "folder/a"]


def test_a_listing_goes_over_pages(gateway: S3Place) -> None:
    keys = [f"{number:04}" for number in range(1_005)]
    gateway.put(*keys)

    assert gateway.keys() == keys
    assert [stored.key for stored in gateway.store.list(start_after="1001")] == ["1002", "1003", "1004"]


def test_an_answer_that_is_not_a_listing_does_not_look_like_an_empty_one(place: S3Place, moto: ObjectServer) -> None:
    bodies = {
        "nothing": b"",
        "another page": b"<html><body>Please log in</body></html>",
        "half an object": b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "no way on": b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "half a page": b"<ListBucketResult><Contents>",
    }
    for name, body in bodies.items():
        with FaultyProxy(moto.endpoint, [Answer(200, body)]) as proxy, pytest.raises(TieredctlError) as raised:
            list(through(proxy, place.store).list())
        assert raised.value.code in ("unreadable", "store-unreachable"), name


def through(proxy: FaultyProxy, store: S3Store, **changes: Any) -> S3Store:
    return replace(store, connection=replace(store.connection, endpoint=proxy.endpoint), **changes)


def test_a_key_is_listed_as_it_is(place: S3Place) -> None:
    odd = ["a b+c%20", "a&<\"'>", "\u00fc\u4e2d\U0001f600", "a\x01b", "a\rb"]
    place.put(*odd)

    listed = list(place.store.list())

    assert sorted(stored.key for stored in listed) == sorted(odd)
    assert listed == [place.head(stored.key) for stored in listed]


def test_several_keys_are_deleted_in_one_request(moto: ObjectServer, place: S3Place) -> None:
    place.put("a", "b", "c")
    wanted = list(place.store.list())
    with FaultyProxy(moto.endpoint) as proxy:
        deletions = through(proxy, place.store, capabilities=ALL_BUT_CONDITIONAL_DELETE).delete(wanted)

    assert [request.method for request in proxy.requests] == ["POST"]
    assert {deletion.outcome for deletion in deletions} == {DeletionOutcome.GONE}
    assert place.keys() == []


@pytest.mark.parametrize("odd", ["a\rb", "a\x01b"])
def test_a_key_that_xml_would_turn_into_another_is_deleted_by_itself(place: S3Place, odd: str) -> None:
    place.put(odd, "ab", "other")
    store = replace(place.store, capabilities=ALL_BUT_CONDITIONAL_DELETE)

    deletions = store.delete([place.head("other"), place.head(odd)])

    assert [deletion.stored.key for deletion in deletions] == ["other", odd]
    assert {deletion.outcome for deletion in deletions} == {DeletionOutcome.GONE}
    assert place.keys() == ["ab"]


def test_a_key_of_which_the_server_says_nothing_is_not_said_to_be_gone(place: S3Place, moto: ObjectServer) -> None:
    place.put("a")
    with FaultyProxy(moto.endpoint, [Answer(200, b"<DeleteResult></DeleteResult>")]) as proxy:
        store = through(proxy, place.store, capabilities=ALL_BUT_CONDITIONAL_DELETE)

        (deletion,) = store.delete([place.head("a")])

    assert deletion.outcome is DeletionOutcome.FAILED


@pytest.mark.integration
@pytest.mark.parametrize("server", ["place", "gateway"])
def test_uploads_in_parts_are_listed_and_given_up(server: str, request: pytest.FixtureRequest) -> None:
    place: S3Place = request.getfixturevalue(server)
    first, second = place.begin_upload("orders/1 é.log"), place.begin_upload("payments/1.log")

    uploads = list(place.store.multipart_uploads())

    told = [(upload.key, upload.upload_id) for upload in uploads]
    assert told == [("orders/1 é.log", first), ("payments/1.log", second)]
    assert [upload.upload_id for upload in place.store.multipart_uploads("pay")] == [second]
    for upload in (*uploads, *uploads):
        place.store.abort_multipart_upload(upload)
    assert list(place.store.multipart_uploads()) == []


def test_an_upload_in_parts_has_the_time_it_began_at(gateway: S3Place) -> None:
    gateway.put("a")
    gateway.begin_upload("b")

    (upload,) = gateway.store.multipart_uploads()

    assert abs(upload.initiated_ms - gateway.head("a").last_modified_ms) <= 5_000


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_what_is_archived_is_there_but_not_read_or_copied(place: S3Place, storage_class: str) -> None:
    name = place.root + "a"
    place.bucket.client.put_object(Bucket=BUCKET, Key=name, Body=b"bytes", StorageClass=storage_class)
    archived = place.head("a")

    with refused_with("object-archived"):
        place.store.read("a")
    with refused_with("object-archived"):
        next(place.store.stream("a"))
    with refused_with("object-archived"):
        place.store.copy(archived, "b")
    assert archived.storage_class == storage_class
    assert list(place.store.list()) == [archived]


@pytest.mark.parametrize("storage_class", ["STANDARD", "STANDARD_IA", "GLACIER_IR"])
def test_a_listing_and_a_look_at_one_object_tell_its_storage_class(place: S3Place, storage_class: str) -> None:
    place.bucket.client.put_object(Bucket=BUCKET, Key=place.root + "a", Body=b"1", StorageClass=storage_class)

    (listed,) = place.store.list()

    assert listed.storage_class == place.head("a").storage_class == storage_class
    assert place.store.read("a") == b"1"


def test_a_bucket_that_is_not_there_does_not_look_empty(place: S3Place) -> None:
    store = replace(place.store, address=BucketAddress("s3", "gone", ""))
    demand_missing(store)


@pytest.mark.parametrize("capabilities", [frozenset(Capability), ALL_BUT_CONDITIONAL_DELETE])
def test_a_deletion_in_a_bucket_that_is_not_there_has_failed(
    place: S3Place, capabilities: frozenset[Capability]
) -> None:
    store = replace(place.store, address=BucketAddress("s3", "gone", ""), capabilities=capabilities)

    (deletion,) = store.delete([StoredObject("a", 1, 0, '"1"')])

    assert (deletion.outcome, deletion.error and deletion.error.code) == (DeletionOutcome.FAILED, "bucket-missing")


def test_a_server_that_does_not_answer_is_named(nowhere: S3Store) -> None:
    with refused_with("store-unreachable"):
        next(nowhere.list())


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials as AWS' own tools read them: those of the user, and those of somebody else."""
    file = tmp_path / "credentials"
    file.write_text(
        f"[operator]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={SECRET_KEY}\n"
        f"[mallory]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key=guessed-secret\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


def test_credentials_come_from_a_profile_and_wrong_ones_are_told_from_a_missing_object(
    gateway: S3Place, profiles: None
) -> None:
    gateway.put("a")

    def store(profile: str) -> S3Store:
        return replace(gateway.store, connection=replace(gateway.connection, profile=profile))

    assert [stored.key for stored in store("operator").list()] == ["a"]
    for key in ("a", "gone"):
        with pytest.raises(TieredctlError) as raised:
            store("mallory").head(key)
        assert raised.value.code == "store-forbidden"
        assert "guessed-secret" not in f"{raised.value} {raised.value.hint} {raised.value.__cause__}"
    with refused_with("usage"):
        next(store("nobody").list())


def test_a_store_without_credentials_says_so(place: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    store = replace(place.store, connection=replace(place.connection, region="eu-west-1"))

    with refused_with("no-credentials"):
        next(store.list())


def test_no_secret_is_shown_or_taken_along(gateway: S3Place) -> None:
    gateway.put("a")
    list(gateway.store.list())

    assert SECRET_KEY not in f"{gateway.store!r} {gateway.store.url}"
    assert SECRET_KEY.encode() not in pickle.dumps(gateway.store)


def test_an_object_without_an_etag_is_unreadable_in_a_sentence(versitygw: ObjectServer, gateway: S3Place) -> None:
    gateway.put("of-the-api")
    (versitygw.data / BUCKET / gateway.root / "copied-there").write_bytes(b"by no request")

    with refused_with("unreadable"):
        gateway.store.head("copied-there")
    assert gateway.keys() == ["copied-there", "of-the-api"]
