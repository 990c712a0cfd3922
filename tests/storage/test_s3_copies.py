"""Copies in a bucket of S3, at once and in parts: they keep all that describes an object."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET
from tests.rigs.faulty_proxy import Answer, FaultyProxy
from tests.rigs.object_servers import ObjectServer
from tests.storage.s3_place import S3Place


def test_an_object_too_large_to_copy_at_once_is_copied_in_parts(gateway: S3Place) -> None:
    data = b"0123456789abcdef" * (6 << 16)
    gateway.bucket.put(gateway.root + "large", data, "application/x-kafka", segment="7")
    store = replace(gateway.store, largest_copy_at_once=5 << 20)

    made = store.copy(gateway.head("large"), "copy")

    assert made == gateway.head("copy")
    assert store.read("copy") == data
    assert gateway.bucket.described(gateway.root + "copy") == ("application/x-kafka", {"segment": "7"})
    assert list(store.multipart_uploads()) == []


DESCRIBED = {
    "CacheControl": "max-age=60",
    "ContentDisposition": 'attachment; filename="a"',
    "ContentEncoding": "zstd",
    "ContentLanguage": "de",
    "ContentType": "application/x-kafka",
    "ExpiresString": "Wed, 01 Jan 2031 00:00:00 GMT",
    "Metadata": {"segment": "7"},
    "ServerSideEncryption": "aws:kms",
    "SSEKMSKeyId": "arn:aws:kms:us-east-1:123456789012:key/1",
    "StorageClass": "STANDARD_IA",
}
ANYBODY = "http://acs.amazonaws.com/groups/global/AllUsers"


@pytest.mark.parametrize("largest_copy_at_once", [1 << 30, 5 << 20], ids=["at once", "in parts"])
def test_a_copy_keeps_all_that_describes_an_object(place: S3Place, largest_copy_at_once: int) -> None:
    client, name = place.bucket.client, place.root + "large"
    told = {"Expires" if field == "ExpiresString" else field: value for field, value in DESCRIBED.items()}
    tags = "team=a%20b&keep=%C3%A9"
    client.put_object(Bucket=BUCKET, Key=name, Body=b"0" * (6 << 20), Tagging=tags, ACL="public-read", **told)
    store = replace(place.store, largest_copy_at_once=largest_copy_at_once)

    store.copy(place.head("large"), "copy")

    copy = {"Bucket": BUCKET, "Key": place.root + "copy"}
    found = client.head_object(**copy)
    acl = client.get_object_acl(**copy)["Grants"]
    assert {field: found.get(field) for field in DESCRIBED} == DESCRIBED
    assert client.get_object_tagging(**copy)["TagSet"] == [
        {"Key": "team", "Value": "a b"},
        {"Key": "keep", "Value": "é"},
    ]
    assert acl == client.get_object_acl(Bucket=BUCKET, Key=name)["Grants"]
    assert [grant["Permission"] for grant in acl if grant["Grantee"].get("URI") == ANYBODY] == ["READ"]


@pytest.mark.parametrize("size", [1, 6 << 20], ids=["at once", "in parts"])
def test_a_strict_servers_copy_keeps_tags_and_headers(gateway: S3Place, size: int) -> None:
    told = {field: DESCRIBED[field] for field in ("CacheControl", "ContentEncoding", "ContentType", "Metadata")}
    client, name = gateway.bucket.client, gateway.root + "large"
    client.put_object(Bucket=BUCKET, Key=name, Body=b"0" * size, Tagging="a=1", **told)
    store = replace(gateway.store, largest_copy_at_once=5 << 20)

    store.copy(gateway.head("large"), "copy")

    copy = {"Bucket": BUCKET, "Key": gateway.root + "copy"}
    found = client.head_object(**copy)
    assert {field: found.get(field) for field in told} == told
    assert client.get_object_tagging(**copy)["TagSet"] == [{"Key": "a", "Value": "1"}]


def test_tags_that_may_not_be_read_are_not_lost_by_a_copy_in_parts(place: S3Place, moto: ObjectServer) -> None:
    place.bucket.put(place.root + "large", b"0" * (6 << 20))
    denied = Answer(403, b"<Error><Code>AccessDenied</Code></Error>")
    with FaultyProxy(moto.endpoint, [denied], lambda request: "?tagging" in request.path) as proxy:
        connection = replace(place.connection, endpoint=proxy.endpoint)
        store = replace(place.store, connection=connection, largest_copy_at_once=5 << 20)

        with refused_with("store-forbidden"):
            store.copy(place.head("large"), "copy")
    assert place.keys() == ["large"]


def test_a_past_version_is_not_copied_in_parts(gateway: S3Place) -> None:
    gateway.bucket.put(gateway.root + "large", b"0" * (6 << 20))
    past = gateway.head("large")
    gateway.bucket.put(gateway.root + "large", b"1" * (6 << 20))
    store = replace(gateway.store, largest_copy_at_once=5 << 20)

    assert store.copy(past, "copy") is None
    assert gateway.keys() == ["large"]
    assert list(store.multipart_uploads()) == []
