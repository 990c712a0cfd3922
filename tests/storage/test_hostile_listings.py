"""Listings that never end, repeat themselves or hold what no object has; and stores that stay down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, repeat
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from tests.refusals import refused_with
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import MultipartUpload, StoredObject
from tieredctl.storage.bucket_address import bucket_address
from tieredctl.storage.retrying import RetryPolicy
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import Onward, S3Connection, S3Failure, _client

ADDRESS = bucket_address("s3", "//bucket")
CONTENTS = "<Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified><ETag>e</ETag>"
SOUND = {"key": "a", "size": "1", "time": "2026-01-01T00:00:00Z"}


def answer(body: str) -> AWSResponse:
    response = AWSResponse("http://nowhere", 200, {}, None)
    response._content = body.encode()
    return response


def listing_of(monkeypatch: pytest.MonkeyPatch, body: str) -> list[StoredObject]:
    """What is listed of a server that answers with this, always."""
    with answering(monkeypatch, "ListObjectsV2", body) as store:
        return list(store.list())


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, operation: str, body: str) -> Iterator[S3Store]:
    """A store on a server that answers an operation with this, always."""
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    connection = S3Connection("http://nowhere.invalid", "us-east-1")
    import os

    def respond(**_: Any) -> AWSResponse:
        return answer(body)

    events = _client(connection, os.getpid()).meta.events
    events.register(f"before-send.s3.{operation}", respond)
    try:
        yield S3Store(ADDRESS, connection)
    finally:
        events.unregister(f"before-send.s3.{operation}", respond)


def page(*, token: str = "", **fields: str) -> str:
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
    truncated = more if token else "<IsTruncated>false</IsTruncated>"
    contents = f"<Contents>{CONTENTS.format(**fields)}</Contents>" if fields else ""
    return f"<ListBucketResult>{contents}{truncated}</ListBucketResult>"


def test_a_sound_page_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [stored.key for stored in listing_of(monkeypatch, page(**SOUND))] == ["a"]


IMPOSSIBLE = [
    *(("size", size) for size in ("-1", str(1 << 63), "1" * 5_000, "many", "")),
    *(("time", time) for time in ("yesterday", "99999-01-01T00:00:00Z", "")),
]


def test_what_no_object_can_be_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for field, value in IMPOSSIBLE:
        with refused_with("unreadable", f"{field} {value}"):
            listing_of(monkeypatch, page(**(SOUND | {field: value})))


def test_an_answer_that_is_not_a_listing_or_repeats_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for body in ("", "<", "junk", "<ListBucketResult>", "<Other/>", page(token="t", **SOUND)):
        with pytest.raises(TieredctlError) as raised:
            listing_of(monkeypatch, body)
        # What is cut is asked for again.
        assert raised.value.code in ("unreadable", "store-unreachable"), body


def test_a_page_that_does_not_say_whether_more_comes_is_not_taken_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", "<IsTruncated/>", "<IsTruncated>maybe</IsTruncated>"):
        body = page(**SOUND).replace("<IsTruncated>false</IsTruncated>", said)

        with refused_with("unreadable", said):
            listing_of(monkeypatch, body)


def test_nor_is_one_of_uploads_of_parts_or_of_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    listings: tuple[tuple[str, str, Callable[[S3Store], Any]], ...] = (
        ("ListMultipartUploads", "ListMultipartUploadsResult", lambda store: list(store.multipart_uploads())),
        ("ListParts", "ListPartsResult", lambda store: store.multipart_upload_bytes(UPLOAD)),
        ("ListObjectVersions", "ListVersionsResult", lambda store: list(store.kept_versions())),
    )
    for operation, root, listed in listings:
        for said in ("", "<IsTruncated>true</IsTruncated>"):
            body = f"<{root}>{said}</{root}>"
            with refused_with("unreadable", body), answering(monkeypatch, operation, body) as store:
                listed(store)


PARTS = "<Part><PartNumber>1</PartNumber><Size>5</Size><ETag>e</ETag></Part>"
VERSIONS = (
    "<Version><Key>a</Key><VersionId>v</VersionId><IsLatest>false</IsLatest><Size>1</Size><ETag>e</ETag>"
    "<LastModified>2026-01-01T00:00:00Z</LastModified></Version>"
)
NEXT_PART = "<IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker>"
NEXT_VERSION = (
    "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker><NextVersionIdMarker>v</NextVersionIdMarker>"
)
UPLOAD = MultipartUpload("a", "u", 0)


def test_pages_of_an_uploads_parts_and_of_versions_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty ones, and those that have the same part or version again."""
    for found in ("", PARTS):
        body = f"<ListPartsResult>{found}{NEXT_PART}</ListPartsResult>"
        with refused_with("unreadable", body), answering(monkeypatch, "ListParts", body) as store:
            store.multipart_upload_bytes(UPLOAD)
    for found in ("", VERSIONS):
        body = f"<ListVersionsResult>{found}{NEXT_VERSION}</ListVersionsResult>"
        with refused_with("unreadable", body), answering(monkeypatch, "ListObjectVersions", body) as store:
            list(store.kept_versions())


def test_pages_of_uploads_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = "<Upload><Key>a</Key><UploadId>u</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>"
    more = "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"
    body = f"<ListMultipartUploadsResult>{upload}{more}</ListMultipartUploadsResult>"

    with refused_with("unreadable"), answering(monkeypatch, "ListMultipartUploads", body) as store:
        list(islice(store.multipart_uploads(), 10))


def test_pages_of_one_name_begin_in_any_order_but_nowhere_twice() -> None:
    onward = Onward("s3://bucket")
    for name, mark in (("a", "2"), ("a", "1"), ("a", ""), ("b", "2")):
        onward.demand(name, mark)

    for name, mark in (("b", "2"), ("a", "3")):
        with refused_with("unreadable", name):
            onward.demand(name, mark)


def test_what_an_answer_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lists_one = "<IsTruncated>false</IsTruncated><{0}><Key>a</Key></{0}>"
    cases: tuple[tuple[str, str, Callable[[S3Store], Any]], ...] = (
        ("ListMultipartUploads", lists_one.format("Upload"), lambda store: list(store.multipart_uploads())),
        ("ListObjectVersions", lists_one.format("Version"), lambda store: list(store.kept_versions())),
        ("ListParts", lists_one.format("Part"), lambda store: store.multipart_upload_bytes(UPLOAD)),
        ("HeadObject", "", lambda store: store.head("a")),
        ("PutObject", "", lambda store: store.put_if_absent("a", b"1")),
        ("CreateMultipartUpload", "", lambda store: store.upload("a", 1, lambda: iter((b"1",)), part_bytes=1)),
    )
    for operation, body, asked in cases:
        with refused_with("unreadable", operation), answering(monkeypatch, operation, f"<R>{body}</R>") as store:
            asked(store)


def test_empty_pages_among_others_are_passed_over_and_do_not_continue_for_ever() -> None:
    pages, endless = [*[[]] * 900, [1], *[[]] * 900, [2]], repeat(list[int]())

    assert list(ADDRESS.pages_that_end(pages, lambda page: not page)) == pages
    with pytest.raises(TieredctlError, match="1001 empty pages of a listing in a row"):
        list(ADDRESS.pages_that_end(endless, lambda page: not page))


def test_a_store_that_is_down_is_waited_for_once() -> None:
    asked: list[int] = []
    pauses: list[float] = []
    policy = RetryPolicy(sleep=pauses.append)

    def refuse(_: bool) -> None:
        asked.append(1)
        raise S3Failure(ErrorCode.STORE_THROTTLED, "asks for patience")

    for _ in range(100):
        with pytest.raises(TieredctlError):
            policy.run(refuse)

    assert len(asked) == policy.attempts + 99
    assert len(pauses) == policy.attempts - 1


def test_a_store_that_answers_again_is_waited_for_again() -> None:
    pauses: list[float] = []
    policy = RetryPolicy(sleep=pauses.append)

    def refuse(_: bool) -> None:
        raise S3Failure(ErrorCode.STORE_THROTTLED, "asks for patience")

    for _ in range(2):
        with pytest.raises(TieredctlError):
            policy.run(refuse)
        policy.run(lambda _: None)

    assert len(pauses) == 2 * (policy.attempts - 1)
