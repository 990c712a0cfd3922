"""An HTTP server of metrics. A scrape is answered from what is known, at once, whatever else is going on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any

from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tieredctl.errors import ErrorCode, TieredctlError

PATH = "/metrics"
_SECONDS_WITHOUT_REQUEST = 10
_SECONDS_IN_ALL = 20.0
_MOST_CONNECTIONS = 64
"""At once, each with a thread of its own."""
_INDEX = f'<!doctype html><title>tieredctl</title><p><a href="{PATH}">Metrics</a></p>\n'.encode()
_MOST_WAITING = 64
"""Connections that nobody answers yet."""


def listening_address(text: str) -> tuple[str, int]:
    """HOST:PORT, [IPv6]:PORT, or :PORT for all addresses. Raises TieredctlError `usage` for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise TieredctlError(
            ErrorCode.USAGE, f"--listen {text!r} is not HOST:PORT.", hint="Give, say, 127.0.0.1:19405."
        )
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise TieredctlError(ErrorCode.USAGE, f"--listen {text!r} is not HOST:PORT.", hint="Give IPv6 as [::1]:19405.")
    return host.strip("[]"), int(port)


@contextmanager
def serving(host: str, port: int, metrics: Collector, *, most_seconds: float = _SECONDS_IN_ALL) -> Iterator[str]:
    """Serves metrics at the URL that it gives. A connection ends after so many seconds, whatever its client does.
    Raises TieredctlError where it cannot listen there."""
    try:
        server = _server(host, port, metrics, most_seconds)
    except (OSError, UnicodeError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        hint = "Choose another address with --listen."
        raise TieredctlError(ErrorCode.USAGE, f"Cannot listen on {host}:{port}: {why}.", hint=hint) from None
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True, name="metrics")
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
        yield f"http://{shown}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()


class _Connections:
    """The open connections, the oldest first. Slow clients never keep out one that asks now."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._since: dict[socket.socket, float] = {}
        self._lock = Lock()

    def add(self, connection: socket.socket) -> None:
        with self._lock:
            if len(self._since) >= _MOST_CONNECTIONS:
                self._end(next(iter(self._since)))
            self._since[connection] = time.monotonic()

    def remove(self, connection: socket.socket) -> None:
        with self._lock:
            self._since.pop(connection, None)

    def end_overdue(self) -> None:
        least = time.monotonic() - self._most_seconds
        with self._lock:
            for connection in [one for one, since in self._since.items() if since < least]:
                self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        """Ends a connection: its thread then reads an end, and closes it."""
        del self._since[connection]
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _server(host: str, port: int, metrics: Collector, most_seconds: float) -> ThreadingHTTPServer:
    family, _, _, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
        0
    ]
    connections = _Connections(most_seconds)

    class Server(ThreadingHTTPServer):
        address_family = family
        daemon_threads = True
        block_on_close = False
        request_queue_size = _MOST_WAITING

        def server_bind(self) -> None:
            TCPServer.server_bind(self)  # HTTPServer's asks DNS for a name, which may take long

        def process_request(self, request: Any, client_address: Any) -> None:
            connections.add(request)
            super().process_request(request, client_address)

        def close_request(self, request: Any) -> None:
            connections.remove(request)
            super().close_request(request)

        def service_actions(self) -> None:
            connections.end_overdue()

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is its own affair."""

    class Handler(_Handler):
        collected = metrics

    return Server((str(address[0]), int(address[1])), Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    collected: Collector
    timeout = _SECONDS_WITHOUT_REQUEST
    server_version = "tieredctl"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == PATH:
            encode, content_type = self._accepted()
            self._answer(encode(self.collected), content_type)
        elif path == "/":
            self._answer(_INDEX, "text/html; charset=utf-8")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815 - the name that BaseHTTPRequestHandler calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is in the base class
        """Scrapes are not worth a line each."""

    def _accepted(self) -> tuple[Callable[[Collector], bytes], str]:
        try:
            return choose_encoder(self.headers.get("Accept", ""))
        except (TypeError, ValueError):  # for a version that is not one
            return choose_encoder("")

    def _answer(self, body: bytes, content_type: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
