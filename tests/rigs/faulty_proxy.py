"""A proxy on a real socket between a client and an object server, which makes trouble where a test asks for it."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit


class Request(NamedTuple):
    """What the client asked for."""

    method: str
    path: str
    body: bytes


class Trouble(Enum):
    """What becomes of a request and its answer."""

    NOT_DELIVERED = auto()
    """The connection ends before the server saw the request."""
    ANSWER_LOST = auto()
    """The server did what it was asked, and the connection ends before the client hears of it."""
    ANSWER_CUT = auto()
    """The connection ends in the middle of the answer's body."""


@dataclass(frozen=True)
class Answer:
    """An answer that the server never gave; it never saw the request."""

    status: int
    body: bytes = b""
    content_type: str = "application/xml"


Fault = Trouble | Answer


@dataclass
class FaultyProxy:
    """Passes requests on to `upstream`, an `http://host:port`, inside a `with`.

    `faults` are used up one a request, among the requests for which `applies` holds; then all goes well again.
    """

    upstream: str
    faults: list[Fault] = field(default_factory=list)
    applies: Callable[[Request], bool] = lambda _: True
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> Self:
        proxy, lock = self, Lock()

        class Handler(_Handler):
            def fault_for(self, request: Request) -> Fault | None:
                with lock:
                    proxy.requests.append(request)
                    return proxy.faults.pop(0) if proxy.faults and proxy.applies(request) else None

        Handler.upstream = urlsplit(self.upstream).netloc
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str

    def fault_for(self, request: Request) -> Fault | None:
        raise NotImplementedError

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.fault_for(Request(self.command, self.path, body))
        if isinstance(fault, Answer):
            self._answer(fault.status, [("Content-Type", fault.content_type)], fault.body)
        elif fault is Trouble.NOT_DELIVERED:
            self.close_connection = True
        else:
            self._pass_on(body, fault)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = handle_any  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _pass_on(self, body: bytes, fault: Fault | None) -> None:
        connection = http.client.HTTPConnection(self.upstream)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"connection", "expect"}:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if fault is Trouble.ANSWER_LOST:
            self.close_connection = True
            return
        self._answer(answer.status, answer.getheaders(), data, cut=fault is Trouble.ANSWER_CUT)

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes, cut: bool = False) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value
            elif name.lower() not in {"connection", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        self.close_connection |= cut
