"""A scrape is answered whatever other clients do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from threading import active_count
from urllib.parse import urlsplit

import pytest
from prometheus_client import Metric
from prometheus_client.registry import Collector

from tests.refusals import refused_with
from tests.rigs.waiting import wait_until
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.process.metrics_server import listening_address, serving

SECONDS = 60
MANY = 100
AT_ONCE = 50


class OneMetric(Collector):
    def collect(self) -> Iterator[Metric]:
        family = Metric("tieredctl_up", "It is.", "gauge")
        family.add_sample("tieredctl_up", {}, 1)
        yield family


def answered(url: str, method: str = "GET", path: str = "/metrics", **headers: str) -> tuple[int, str]:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def connected(url: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=SECONDS)


def has_ended(client: socket.socket) -> bool:
    """Whether the server ended it, after one more byte."""
    try:
        client.sendall(b"x")
        client.setblocking(False)
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        client.setblocking(True)


def addresses() -> list[str]:
    """Those that this machine has."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1", "localhost", ""]
    return ["127.0.0.1", "localhost", "", "::1", "::"]


def test_it_is_served_on_each_kind_of_address() -> None:
    for host in addresses():
        with serving(host, 0, OneMetric()) as url:
            assert "tieredctl_up 1.0" in answered(url)[1], host


def test_an_address_is_read_as_it_is_written_and_what_is_none_is_refused() -> None:
    read = {
        "127.0.0.1:19405": ("127.0.0.1", 19405),
        "[::1]:19405": ("::1", 19405),
        "[::]:0": ("::", 0),
        ":9405": ("", 9405),
        "exporter.example.com:1": ("exporter.example.com", 1),
    }
    assert {text: listening_address(text) for text in read} == read
    for text in ("", "19405", "::1:80", "[::1]", "[::1]:", "host:", "host:65536", "host:-1", "host:٣", "a:b:1"):
        with refused_with(ErrorCode.USAGE, text):
            listening_address(text)


def test_a_port_in_use_is_named() -> None:
    with serving("127.0.0.1", 0, OneMetric()) as url:
        port = urlsplit(url).port or 0

        taken = f"Cannot listen on 127.0.0.1:{port}: Address already in use"
        with pytest.raises(TieredctlError, match=taken), serving("127.0.0.1", port, OneMetric()):
            pytest.fail("Two listen there.")


def raw_answer(url: str, request: bytes) -> bytes:
    """All that is answered until the connection ends."""
    with connected(url) as client, client.makefile("rb") as answer:
        with suppress(OSError):  # it may end before all is sent
            client.sendall(request)
            client.shutdown(socket.SHUT_WR)
        with suppress(ConnectionResetError):
            return answer.read()
        return b""


def test_a_head_has_the_headers_of_a_get_and_no_body() -> None:
    with serving("127.0.0.1", 0, OneMetric()) as url:
        head, get = (raw_answer(url, f"{method} /metrics HTTP/1.0\r\n\r\n".encode()) for method in ("HEAD", "GET"))

    headers, _, body = get.partition(b"\r\n\r\n")
    undated = [line for line in headers.splitlines() if not line.startswith(b"Date:")]
    assert [line for line in head.splitlines() if line and not line.startswith(b"Date:")] == undated
    assert f"Content-Length: {len(body)}".encode() in head


HOSTILE = {
    "nothing": b"",
    "no request": b"\r\n\r\n",
    "noise": bytes(range(256)) * 8,
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no version": b"GET /metrics\r\n",
    "a wrong version": b"GET /metrics HTTP/999999999999.1\r\n\r\n",
    "a huge header": b"GET /metrics HTTP/1.1\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n",
    "many headers": b"GET /metrics HTTP/1.1\r\n" + b"X: x\r\n" * 100_000 + b"\r\n",
    "a header without a name": b"GET /metrics HTTP/1.1\r\n: x\r\n\r\n",
    "a header that is no text": b"GET /metrics HTTP/1.1\r\nAccept: \xff\x00\xfe\r\n\r\n",
    "many accepted types": b"GET /metrics HTTP/1.1\r\nAccept: " + b"a/b;q=0.1," * 6_000 + b"\r\n\r\n",
    "a body": b"POST /metrics HTTP/1.1\r\nContent-Length: 9999999999999\r\n\r\n" + b"x" * (1 << 20),
    "a half request": b"GET /metr",
}


def test_whatever_a_client_sends_the_next_one_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    with serving("127.0.0.1", 0, OneMetric()) as url:
        for name, request in HOSTILE.items():
            answer = raw_answer(url, request)

            assert "tieredctl_up 1.0" in answered(url)[1], name
            assert b"Traceback" not in answer, name
    assert capsys.readouterr() == ("", "")


def test_many_ask_at_once_and_all_are_answered() -> None:
    with serving("127.0.0.1", 0, OneMetric()) as url, ThreadPoolExecutor(AT_ONCE) as clients:
        answers = list(clients.map(lambda _: answered(url), range(4 * AT_ONCE)))

    assert {status for status, _ in answers} == {200}


def test_other_requests_and_whatever_a_scraper_accepts() -> None:
    requests = [
        ("HEAD", "/metrics", 200),
        ("GET", "/metrics?name[]=x", 200),
        ("GET", "/", 200),
        ("GET", "/else", 404),
        ("GET", "/metrics/../../etc/passwd", 404),
        ("POST", "/metrics", 501),
        ("DELETE", "/metrics", 501),
        ("GET", f"/{'x' * 100_000}", 414),
    ]
    with serving("127.0.0.1", 0, OneMetric()) as url:
        for method, path, status in requests:
            assert answered(url, method, path)[0] == status, (method, path[:30])
        for accept in ("", "application/openmetrics-text; version=abc", "*/*;q=x", "text/plain;version=;escaping="):
            assert answered(url, Accept=accept)[0] == 200, accept


def test_clients_that_say_nothing_keep_nobody_out() -> None:
    before = active_count()
    with serving("127.0.0.1", 0, OneMetric()) as url, ExitStack() as silent:
        clients = [silent.enter_context(connected(url)) for _ in range(MANY)]

        status, _ = answered(url)

        assert status == 200
        assert clients[0].recv(1) == b""
        wait_until(lambda: active_count() - before < MANY - 10, "the threads of most clients ended", SECONDS)


def test_a_client_that_sends_a_byte_now_and_then_is_ended() -> None:
    with serving("127.0.0.1", 0, OneMetric(), most_seconds=0.2) as url, connected(url) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")

        wait_until(lambda: has_ended(slow), "the connection ended", SECONDS)


def test_nobody_is_asked_for_the_name_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(socket, "getfqdn", asked.append)

    with serving("127.0.0.1", 0, OneMetric()) as url:
        assert answered(url)[0] == 200

    assert asked == []
