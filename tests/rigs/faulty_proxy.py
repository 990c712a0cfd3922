"""A proxy on a real socket between a client and an object server, which makes trouble and lies where a test asks."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from tests.rigs.gone_clients import SilentAboutGoneClients


class Request(NamedTuple):
    """What the client asked for."""

    method: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    """By names in small letters."""


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


class Reply(NamedTuple):
    """What a client gets to hear."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


Server = Callable[[Request], Reply]
"""Asks the real server."""
Lie = Callable[[Request, Server], Reply]
"""What the client gets to hear of a request, and what the server does."""


@dataclass
class Rule:
    """A lie, and about which requests it is told: those of a method, among them those whose path has the text in it,
    whose body has the text in it and that have the header; of these the first to be lied about, and how many."""

    lie: Lie
    method: str
    path: str = ""
    header: str | None = None
    first: int = 1
    most: int | None = None
    met: int = 0
    body: str = ""

    def applies(self, request: Request) -> bool:
        """Whether the lie is told about the next request; counts it."""
        is_meant = request.method == self.method and self.path in unquote(request.path)
        if not is_meant or (self.header is not None and self.header not in request.headers):
            return False
        if self.body and self.body not in unquote(request.body.decode(errors="replace")):
            return False
        self.met += 1
        return self.met >= self.first and (self.most is None or self.met < self.first + self.most)


@dataclass
class FaultyProxy:
    """Passes requests on to `upstream`, an `http://host:port`, inside a `with`.

    `faults` are used up one a request, among the requests for which `applies` holds; then the first of the `rules` that
    applies is kept, for as long as it is there; else all goes well.
    """

    upstream: str
    faults: list[Fault] = field(default_factory=list)
    applies: Callable[[Request], bool] = lambda _: True
    requests: list[Request] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)

    def __enter__(self) -> Self:
        proxy, lock = self, Lock()

        class Handler(_Handler):
            def fault_for(self, request: Request) -> Fault | Lie | None:
                with lock:
                    proxy.requests.append(request)
                    if proxy.faults and proxy.applies(request):
                        return proxy.faults.pop(0)
                    return next((rule.lie for rule in proxy.rules if rule.applies(request)), None)

        Handler.upstream = urlsplit(self.upstream).netloc
        self._server = _Server(("127.0.0.1", 0), Handler)
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


class _Server(SilentAboutGoneClients, ThreadingHTTPServer):
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is sent in two pieces, and with it the second would wait 40 ms for the first to be acknowledged.
    disable_nagle_algorithm = True
    upstream: str

    def fault_for(self, request: Request) -> Fault | Lie | None:
        raise NotImplementedError

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, body, headers)
        fault = self.fault_for(request)
        if isinstance(fault, Answer):
            self._answer(fault.status, [("Content-Type", fault.content_type)], fault.body)
        elif fault is Trouble.NOT_DELIVERED:
            self.close_connection = True
        elif fault is None or isinstance(fault, Trouble):
            self._pass_on(request, fault)
        else:
            reply = fault(request, self._asked)
            self._answer(reply.status, reply.headers, reply.body)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = handle_any  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _asked(self, request: Request) -> Reply:
        connection = http.client.HTTPConnection(self.upstream)
        try:
            connection.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name not in {"connection", "expect"}:
                    connection.putheader(name, value)
            connection.endheaders(request.body)
            answer = connection.getresponse()
            return Reply(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def _pass_on(self, request: Request, fault: Trouble | None) -> None:
        reply = self._asked(request)
        if fault is Trouble.ANSWER_LOST:
            self.close_connection = True
            return
        self._answer(*reply, cut=fault is Trouble.ANSWER_CUT)

    def _answer(self, status: int, headers: Sequence[tuple[str, str]], data: bytes, cut: bool = False) -> None:
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
