"""What stands between clients and a server in a private network: TLS in front of the server, and a proxy of CONNECT."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

_LONGEST_HEAD = 1 << 16
_SECONDS = 60
_RECORD_HEAD = 5
"""Of a TLS record: type, version, and its length in two bytes."""


class _Relay:
    """Listens on the loopback inside a `with`, and takes each connection in a thread."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What waits in accept() is only woken by this.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                connection.settimeout(_SECONDS)
                Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            self._relay(connection)

    def _relay(self, connection: socket.socket) -> None:
        raise NotImplementedError


class TlsFront(_Relay):
    """Speaks TLS with a certificate, and hands on to a server that does not."""

    def __init__(self, certificate: Path, server_port: int) -> None:
        super().__init__()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate)
        self._server_port = server_port

    def _relay(self, connection: socket.socket) -> None:
        with (
            self._context.wrap_socket(connection, server_side=True) as client,
            socket.create_connection(("127.0.0.1", self._server_port), _SECONDS) as server,
        ):
            _hand_on(client, server)


class TornTls(_Relay):
    """Hands on what client and server say in TLS, and after the server's first records what is none."""

    def __init__(self, server_port: int, records: int) -> None:
        super().__init__()
        self._server_port, self._records = server_port, records

    def _relay(self, connection: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._server_port), _SECONDS) as server:
            Thread(target=_copy, args=(connection, server), daemon=True).start()
            with server.makefile("rb") as told:
                for _ in range(self._records):
                    head = told.read(_RECORD_HEAD)
                    connection.sendall(head + told.read(int.from_bytes(head[-2:])))
            connection.sendall(b"no record")


class ConnectProxy(_Relay):
    """A proxy of CONNECT, which knows hosts that nobody else does, by their names, and may want a password."""

    def __init__(self, ports: Mapping[str, int], user: str | None = None, password: str = "") -> None:
        """`ports` are those on the loopback that a host's name stands for."""
        super().__init__()
        self._ports = ports
        login = "" if user is None else f"{user}:{password}"
        self._expected = f"proxy-authorization: basic {b64encode(login.encode()).decode()}".lower() if login else ""
        self.url = f"http://{login}@127.0.0.1:{self.port}" if login else f"http://127.0.0.1:{self.port}"
        self.connected: list[str] = []
        """The hosts that clients were connected to."""
        self.refused: list[str] = []
        """The hosts that clients with another password, or with none, asked for."""

    def _relay(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head and len(head) < _LONGEST_HEAD:
            head += connection.recv(4096) or b"\r\n\r\n"
        line, *headers = head.decode("latin-1").split("\r\n")
        host = line.removeprefix("CONNECT ").partition(":")[0]
        if self._expected and self._expected not in [one.lower() for one in headers]:
            self.refused.append(host)
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif not line.startswith("CONNECT ") or host not in self._ports:
            connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        else:
            self.connected.append(host)
            with socket.create_connection(("127.0.0.1", self._ports[host]), _SECONDS) as server:
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                _hand_on(connection, server)


def _hand_on(client: socket.socket, server: socket.socket) -> None:
    """Bytes in both directions, until one side ends."""
    back = Thread(target=_copy, args=(server, client), daemon=True)
    back.start()
    _copy(client, server)
    back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
