"""Answers of a server that have other bytes than were asked for: they are never taken for the object's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET, AzureContainer, GcsBucket, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Lie, Reply, Request, Rule, Server
from tests.rigs.lies import altered, half
from tests.rigs.object_servers import ObjectServer
from tieredctl.ports.object_store import ObjectStore
from tieredctl.storage.registry import open_store

pytestmark = pytest.mark.usefixtures("asked_once")

DATA = bytes(range(100))
KEY = "other-bytes"
BUCKETS = {"moto": S3Bucket, "azurite": AzureContainer, "fake_gcs_server": GcsBucket}
Lying = Callable[[Lie], ObjectStore]


@pytest.fixture(params=BUCKETS)
def lying(request: pytest.FixtureRequest) -> Iterator[Lying]:
    """Gives a server's bucket whose answers with an object's bytes are lies."""
    server, bucket = request.getfixturevalue(request.param), BUCKETS[request.param]
    with lying_server(server, bucket(server.endpoint)) as lying:
        yield lying


@contextmanager
def lying_server(server: ObjectServer, bucket: S3Bucket | AzureContainer | GcsBucket) -> Iterator[Lying]:
    bucket.put(KEY, DATA)
    parts = urlsplit(server.endpoint)
    style = {"addressing-style": "path"} if bucket.scheme == "s3" else {}
    with FaultyProxy(f"{parts.scheme}://{parts.netloc}") as proxy:

        def store(lie: Lie) -> ObjectStore:
            proxy.rules[:] = [Rule(lie, "GET", KEY)]
            return open_store(f"{bucket.scheme}://{BUCKET}", {"endpoint": proxy.endpoint + parts.path, **style})

        yield store


def cut_short(request: Request, server: Server) -> Reply:
    """Fewer bytes than the answer says that it has."""
    status, headers, body = server(request)
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return Reply(status, [*kept, ("Content-Length", str(len(body) // 2))], half(body))


def another_range(request: Request, server: Server) -> Reply:
    status, headers, body = server(request)
    kept = [(name, value) for name, value in headers if name.lower() != "content-range"]
    return Reply(status, [*kept, ("Content-Range", f"bytes 2-{1 + len(body)}/{len(DATA)}")], body)


def every_byte(_request: Request, _server: Server) -> Reply:
    return Reply(200, [("Content-Length", str(len(DATA)))], DATA)


def with_another_status(request: Request, server: Server) -> Reply:
    return server(request)._replace(status=200)


@pytest.mark.parametrize("lie", [cut_short, another_range])
def test_a_range_that_is_not_the_one_that_was_asked_for_is_no_answer(lying: Lying, lie: Lie) -> None:
    with refused_with("store-unreachable"):
        lying(lie).read(KEY, 10, 30)


def test_what_a_server_without_ranges_gives_is_cut_to_what_was_asked_for(lying: Lying) -> None:
    store = lying(every_byte)

    assert (store.read(KEY, 10, 30), store.read(KEY, 90), store.read(KEY)) == (DATA[10:30], DATA[90:], DATA)


@pytest.mark.parametrize("lying", ["moto", "azurite"], indirect=True)  # Google's library compares checksums then
def test_a_range_that_says_which_one_it_is_needs_no_status_of_its_own(lying: Lying) -> None:
    assert lying(with_another_status).read(KEY, 10, 30) == DATA[10:30]


def test_a_stream_of_fewer_bytes_than_the_object_has_is_no_answer(lying: Lying) -> None:
    with refused_with("store-unreachable"):
        list(lying(altered(half)).stream(KEY))
