"""What a store may say or do that is not so, for the rules of `faulty_proxy`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from xml.etree import ElementTree

from tests.rigs.faulty_proxy import Lie, Reply, Request, Server

Change = Callable[[bytes], bytes]

_S3 = "http://s3.amazonaws.com/doc/2006-03-01/"
_COPIED = b'<CopyObjectResult><ETag>"%032x"</ETag></CopyObjectResult>'


def zeros(data: bytes) -> bytes:
    """As many bytes, all of them 0."""
    return bytes(len(data))


def one_bit_flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :] if data else data


def half(data: bytes) -> bytes:
    """The first half of the bytes."""
    return data[: len(data) // 2]


def dropped(request: Request, _server: Server) -> Reply:
    """A deletion or a copy is said to be done, and is not."""
    if request.method == "DELETE":
        return Reply(204, [], b"")
    return Reply(200, [("Content-Type", "application/xml")], _COPIED % 0)


def repeated(request: Request, server: Server) -> Reply:
    """What is asked is done twice."""
    server(request)
    return server(request)


def altered(change: Change) -> Lie:
    """An answer has other bytes than the server gave, and headers that fit them."""

    def lie(request: Request, server: Server) -> Reply:
        status, headers, body = server(request)
        body = change(body)
        kept = [(name, value) for name, value in headers if name.lower() not in ("content-length", "content-range")]
        return Reply(status, [*kept, ("Content-Length", str(len(body)))], body)

    return lie


def stored_altered(change: Change) -> Lie:
    """What is written or copied is stored with other bytes than it was asked to. Only where no signature is checked."""

    def lie(request: Request, server: Server) -> Reply:
        reply = server(request)
        path = request.path.partition("?")[0]
        headers = {name: value for name, value in request.headers.items() if name in ("authorization", "host")}
        data = change(server(Request("GET", path, b"", headers)).body)
        server(Request("PUT", path, data, headers | {"content-length": str(len(data))}))
        return reply

    return lie


def left_out(text: str) -> Lie:
    """A listing of S3 or Azure lacks the keys that have a text in them."""

    def lie(request: Request, server: Server) -> Reply:
        status, headers, body = server(request)
        ElementTree.register_namespace("", _S3)
        page = ElementTree.fromstring(body)
        blobs = page.find("Blobs")
        for entry in page.findall(f"{{{_S3}}}Contents") if blobs is None else blobs.findall("Blob"):
            if text in (entry.findtext(f"{{{_S3}}}Key") or entry.findtext("Name") or ""):
                (page if blobs is None else blobs).remove(entry)
        body = ElementTree.tostring(page)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        return Reply(status, [*kept, ("Content-Length", str(len(body)))], body)

    return lie


@dataclass
class Delayed:
    """A lie: requests are said to be done, and are done when `happen` is called."""

    dropped: Lie = dropped
    """How they are said to be done."""
    waiting: list[tuple[Request, Server]] = field(default_factory=list)

    def __call__(self, request: Request, server: Server) -> Reply:
        self.waiting.append((request, server))
        return self.dropped(request, server)

    def happen(self) -> None:
        while self.waiting:
            request, server = self.waiting.pop(0)
            server(request)
