"""What a token endpoint may answer: whatever it is, it gives a token or one error, in bounded time."""

from __future__ import annotations

import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.sign_in import token_endpoint
from tieredctl.kafka.sign_in.token_endpoint import TokenEndpoint
from tieredctl.kafka.sign_in.tokens import ends_at

DEEP = b"[" * 100_000
PASSWORD = "hunter22"


@contextmanager
def answering(body: bytes, status: int = 200, *, header: str = "X: y", ends: bool = True) -> Iterator[TokenEndpoint]:
    """An endpoint with this answer, which is followed by a space now and then where it does not end."""
    is_over = Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header(*header.split(": "))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)
            while not ends and not is_over.wait(0.05):
                self.wfile.write(b" ")
                self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield TokenEndpoint(f"http://127.0.0.1:{server.server_port}", ssl.create_default_context())
    finally:
        is_over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def refusal(endpoint: TokenEndpoint) -> ErrorCode:
    with pytest.raises(TieredctlError) as refused:
        endpoint.token({}, {})
    return refused.value.code


def jwt(payload: bytes) -> str:
    return f"e30.{urlsafe_b64encode(payload).decode().rstrip('=')}.x"


def test_a_url_with_a_password_is_refused_and_not_repeated() -> None:
    for host in (
        f"bob:{PASSWORD}@host",
        f"{PASSWORD}@host",
        f"bob:{PASSWORD}/@host",
        f"[{PASSWORD}",
        f"@host:{PASSWORD}",
    ):
        with pytest.raises(TieredctlError) as refused:
            TokenEndpoint(f"https://{host}/token", ssl.create_default_context())

        assert refused.value.code is ErrorCode.USAGE
        assert PASSWORD not in f"{refused.value.message}{refused.value.hint}"


def test_a_hostile_answer_is_an_answer_without_a_token() -> None:
    for body in (DEEP, b'{"access_token": ' + DEEP, b"{", b"[]", b"\xff"):
        with answering(body) as endpoint:
            assert refusal(endpoint) is ErrorCode.BROKER_REFUSED
    with answering(DEEP, status=401) as endpoint:
        assert refusal(endpoint) is ErrorCode.BROKER_REFUSED


def test_a_refusal_is_one_though_its_reason_is_cut_short() -> None:
    with answering(b"ff\r\n{", status=401, header="Transfer-Encoding: chunked") as endpoint:
        assert refusal(endpoint) is ErrorCode.BROKER_REFUSED


def test_an_answer_that_is_cut_short_or_never_ends_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_endpoint, "_SECONDS_IN_ALL", 0.5)
    with answering(b"ff\r\n{", header="Transfer-Encoding: chunked") as endpoint:
        assert refusal(endpoint) is ErrorCode.BROKER_UNREACHABLE
    for status in (200, 401):
        with answering(b"{", status, ends=False) as endpoint:
            assert refusal(endpoint) is ErrorCode.BROKER_UNREACHABLE


def test_a_token_that_has_ended_is_refused() -> None:
    ended = jwt(b'{"exp": 1}').encode()
    for body in (b'{"access_token": "%s", "expires_in": 60}' % ended, b'{"access_token": "a", "expires_in": -1}'):
        with answering(body) as endpoint:
            assert refusal(endpoint) is ErrorCode.BROKER_REFUSED


def test_an_end_that_is_not_a_finite_number_is_unknown() -> None:
    for stated in (b"1" + b"0" * 400, b"1e400", b"NaN", b"-Infinity", b"true", b'"soon"', DEEP):
        assert ends_at(jwt(b'{"exp": ' + stated + b"}")) is None
        if stated is not DEEP:
            with answering(b'{"access_token": "a", "expires_in": ' + stated + b"}") as endpoint:
                assert time.time() < endpoint.token({}, {}).ends_at < time.time() + 3600
