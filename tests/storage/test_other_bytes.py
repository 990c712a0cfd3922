"""Answers of an S3 server that have other bytes than were asked for: they are never taken for the object's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.refusals import refused_with
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.lies import altered, half
from tests.rigs.object_servers import ObjectServer
from tieredctl.storage.registry import open_store

DATA = bytes(range(100))
KEY = "other-bytes/object"


@pytest.fixture
def proxy(moto: ObjectServer, asked_once: None) -> Iterator[FaultyProxy]:
    S3Bucket(moto.endpoint).put(KEY, DATA)
    with FaultyProxy(moto.endpoint) as running:
        yield running


def cut_short(request: Request, server: Server) -> Reply:
    """Fewer bytes than the answer says that it has."""
    status, headers, body = server(request)
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return Reply(status, [*kept, ("Content-Length", str(len(body) // 2))], half(body))


def another_range(request: Request, server: Server) -> Reply:
    return server(request._replace(headers={**request.headers, "range": "bytes=2-21"}))


def no_range(request: Request, server: Server) -> Reply:
    return server(request._replace(headers={name: one for name, one in request.headers.items() if name != "range"}))


@pytest.mark.parametrize("lie", [cut_short, another_range])
def test_a_range_that_is_not_the_one_that_was_asked_for_is_no_answer(proxy: FaultyProxy, lie: object) -> None:
    assert callable(lie)
    store = open_store(f"s3://{BUCKET}", proxy_options(proxy))
    proxy.rules.append(Rule(lie, "GET", KEY))

    with refused_with("store-unreachable"):
        store.read(KEY, 10, 30)


def test_what_a_server_without_ranges_gives_is_cut_to_what_was_asked_for(proxy: FaultyProxy) -> None:
    store = open_store(f"s3://{BUCKET}", proxy_options(proxy))
    proxy.rules.append(Rule(no_range, "GET", KEY))

    assert (store.read(KEY, 10, 30), store.read(KEY, 90), store.read(KEY)) == (DATA[10:30], DATA[90:], DATA)


def test_a_stream_of_fewer_bytes_than_the_object_has_is_no_answer(proxy: FaultyProxy) -> None:
    store = open_store(f"s3://{BUCKET}", proxy_options(proxy))
    proxy.rules.append(Rule(altered(half), "GET", KEY))

    with refused_with("store-unreachable"):
        list(store.stream(KEY))


def proxy_options(proxy: FaultyProxy) -> dict[str, str]:
    return {"endpoint": proxy.endpoint, "addressing-style": "path"}
