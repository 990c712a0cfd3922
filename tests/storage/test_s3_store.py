"""A bucket of S3: what is special about it. What every store promises is in test_promises.py."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.buckets import BUCKET
from tests.rigs.faulty_proxy import Answer, FaultyProxy
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer
from tests.rigs.ports import free_ports
from tests.storage.answers import code_of
from tests.storage.s3_place import S3Place
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import Capability, DeletionOutcome, StoredObject
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import S3Connection

ALL_BUT_CONDITIONAL_DELETE = frozenset(Capability) - {Capability.CONDITIONAL_DELETE}


@pytest.fixture
def nowhere(cloud_environment: None) -> S3Store:
    """At a port where nobody listens."""
    (port,) = free_ports(1)
    return S3Store(BucketAddress("s3", BUCKET, ""), S3Connection(f"http://127.0.0.1:{port}"))


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


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Please log in</body></html>",
        b"<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        b"<ListBucketResult><Contents>",
    ],
    ids=["nothing", "another page", "half an object", "no way on", "half a page"],
)
def test_an_answer_that_is_not_a_listing_does_not_look_like_an_empty_one(
    place: S3Place, moto: ObjectServer, body: bytes
) -> None:
    with FaultyProxy(moto.endpoint, [Answer(200, body)]) as proxy:
        store = replace(place.store, connection=replace(place.connection, endpoint=proxy.endpoint))

        with pytest.raises(TieredctlError) as raised:
            list(store.list())

    assert code_of(raised) in ("unreadable", "store-unreachable")


@pytest.mark.parametrize("odd", ["a b+c%20", "a&<\"'>", "\u00fc\u4e2d\U0001f600", "a\x01b", "a\rb"])
def test_a_key_is_listed_as_it_is(place: S3Place, odd: str) -> None:
    place.put(odd)

    assert place.keys() == [odd]
    assert list(place.store.list()) == [place.head(odd)]


def test_several_keys_are_deleted_in_one_request(moto: ObjectServer, place: S3Place) -> None:
    place.put("a", "b", "c")
    wanted = list(place.store.list())
    with FaultyProxy(moto.endpoint) as proxy:
        connection = replace(place.connection, endpoint=proxy.endpoint)
        store = replace(place.store, connection=connection, capabilities=ALL_BUT_CONDITIONAL_DELETE)

        deletions = store.delete(wanted)

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
        connection = replace(place.connection, endpoint=proxy.endpoint)
        store = replace(place.store, connection=connection, capabilities=ALL_BUT_CONDITIONAL_DELETE)

        (deletion,) = store.delete([place.head("a")])

    assert deletion.outcome is DeletionOutcome.FAILED


@pytest.mark.integration
@pytest.mark.parametrize("server", ["place", "gateway"])
def test_uploads_in_parts_are_listed(server: str, request: pytest.FixtureRequest) -> None:
    place: S3Place = request.getfixturevalue(server)
    first, second = place.begin_upload("orders/1 é.log"), place.begin_upload("payments/1.log")

    uploads = list(place.store.multipart_uploads())

    assert [(upload.key, upload.upload_id) for upload in uploads] == [
        ("orders/1 é.log", first),
        ("payments/1.log", second),
    ]
    assert [upload.upload_id for upload in place.store.multipart_uploads("pay")] == [second]


def test_an_upload_in_parts_has_the_time_it_began_at(gateway: S3Place) -> None:
    gateway.put("a")
    gateway.begin_upload("b")

    (upload,) = gateway.store.multipart_uploads()

    assert abs(upload.initiated_ms - gateway.head("a").last_modified_ms) <= 5_000


@pytest.mark.integration
@pytest.mark.parametrize("server", ["place", "gateway"])
def test_an_upload_in_parts_is_given_up(server: str, request: pytest.FixtureRequest) -> None:
    place: S3Place = request.getfixturevalue(server)
    place.begin_upload("a")
    (upload,) = place.store.multipart_uploads()

    place.store.abort_multipart_upload(upload)
    place.store.abort_multipart_upload(upload)

    assert list(place.store.multipart_uploads()) == []


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_what_is_archived_is_there_but_not_read_or_copied(place: S3Place, storage_class: str) -> None:
    name = place.root + "a"
    place.bucket.client.put_object(Bucket=BUCKET, Key=name, Body=b"bytes", StorageClass=storage_class)
    archived = place.head("a")

    for look in (
        lambda: place.store.read("a"),
        lambda: next(place.store.stream("a")),
        lambda: place.store.copy(archived, "b"),
    ):
        with pytest.raises(TieredctlError, match=r"a in s3://.* is archived") as raised:
            look()
        assert code_of(raised) == "object-archived"
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
    looks: list[Callable[[], object]] = [
        lambda: list(store.list()),
        lambda: store.head("a"),
        lambda: store.read("a"),
        lambda: next(store.stream("a")),
    ]

    for look in looks:
        with pytest.raises(TieredctlError, match="no bucket") as raised:
            look()
        assert code_of(raised) == "bucket-missing"


@pytest.mark.parametrize("capabilities", [frozenset(Capability), ALL_BUT_CONDITIONAL_DELETE])
def test_a_deletion_in_a_bucket_that_is_not_there_has_failed(
    place: S3Place, capabilities: frozenset[Capability]
) -> None:
    store = replace(place.store, address=BucketAddress("s3", "gone", ""), capabilities=capabilities)

    (deletion,) = store.delete([StoredObject("a", 1, 0, '"1"')])

    assert deletion.outcome is DeletionOutcome.FAILED
    assert deletion.error is not None
    assert deletion.error.code == "bucket-missing"


def test_a_server_that_does_not_answer_is_named(nowhere: S3Store) -> None:
    with pytest.raises(TieredctlError, match=r"does not answer at http://127\.0\.0\.1") as raised:
        next(nowhere.list())

    assert code_of(raised) == "store-unreachable"


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials as AWS' own tools read them: those of the user, and those of somebody else."""
    file = tmp_path / "credentials"
    file.write_text(
        f"[operator]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key={SECRET_KEY}\n"
        f"[mallory]\naws_access_key_id={ACCESS_KEY}\naws_secret_access_key=guessed-secret\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))


def test_credentials_come_from_a_profile(gateway: S3Place, profiles: None) -> None:
    gateway.put("a")

    store = replace(gateway.store, connection=replace(gateway.connection, profile="operator"))

    assert [stored.key for stored in store.list()] == ["a"]


@pytest.mark.parametrize("key", ["a", "gone"])
def test_wrong_credentials_are_told_from_a_missing_object(gateway: S3Place, profiles: None, key: str) -> None:
    gateway.put("a")
    store = replace(gateway.store, connection=replace(gateway.connection, profile="mallory"))

    with pytest.raises(TieredctlError) as raised:
        store.head(key)

    assert code_of(raised) == "store-forbidden"
    assert "guessed-secret" not in f"{raised.value} {raised.value.hint} {raised.value.__cause__}"


def test_an_unknown_profile_is_wrong_usage(gateway: S3Place, profiles: None) -> None:
    store = replace(gateway.store, connection=replace(gateway.connection, profile="nobody"))

    with pytest.raises(TieredctlError, match="nobody") as raised:
        next(store.list())

    assert code_of(raised) == "usage"


def test_a_store_without_credentials_says_so(place: S3Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    store = replace(place.store, connection=replace(place.connection, region="eu-west-1"))

    with pytest.raises(TieredctlError, match="no credentials") as raised:
        next(store.list())

    assert code_of(raised) == "no-credentials"


def test_no_secret_is_shown_or_taken_along(gateway: S3Place) -> None:
    gateway.put("a")
    list(gateway.store.list())

    assert SECRET_KEY not in f"{gateway.store!r} {gateway.store.url}"
    assert SECRET_KEY.encode() not in pickle.dumps(gateway.store)


def test_an_object_without_an_etag_is_unreadable_in_a_sentence(versitygw: ObjectServer, gateway: S3Place) -> None:
    gateway.put("of-the-api")
    (versitygw.data / BUCKET / gateway.root / "copied-there").write_bytes(b"by no request")

    with pytest.raises(TieredctlError, match="no ETag") as raised:
        gateway.store.head("copied-there")

    assert code_of(raised) == "unreadable"
    assert gateway.keys() == ["copied-there", "of-the-api"]
