"""Lies about copies and deletions, in the language of each kind of server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import unquote, urlsplit

from tests.rigs.buckets import BUCKET, AzureContainer
from tests.rigs.faulty_proxy import Lie, Reply, Request, Rule, Server
from tests.rigs.lies import Change, dropped, stored_altered
from tests.rigs.object_servers import AZURE_ACCOUNT


class Language(Protocol):
    """How a kind of server is asked to copy and to delete, and how it says that it did."""

    def copies(self, lie: Lie, to: str, first: int = 1, most: int | None = None) -> Rule:
        """Lies about copies to names that have a text in them."""

    def deletions(self, lie: Lie, of: str, first: int = 1, most: int | None = None) -> Rule:
        """Lies about deletions of names that have a text in them."""

    def dropped(self, request: Request, server: Server) -> Reply:
        """A deletion or a copy is said to be done, and is not."""

    def stored_altered(self, change: Change) -> Lie:
        """What is copied is stored with other bytes than it was asked to."""


@dataclass(frozen=True)
class S3Language:
    """S3's, of a server that checks no signature."""

    def copies(self, lie: Lie, to: str, first: int = 1, most: int | None = None) -> Rule:
        return Rule(lie, "PUT", to, "x-amz-copy-source", first, most)

    def deletions(self, lie: Lie, of: str, first: int = 1, most: int | None = None) -> Rule:
        return Rule(lie, "DELETE", of, None, first, most)

    def dropped(self, request: Request, server: Server) -> Reply:
        return dropped(request, server)

    def stored_altered(self, change: Change) -> Lie:
        return stored_altered(change)


@dataclass(frozen=True)
class AzureLanguage:
    """Azure's, where blobs are deleted in batches, and the container's own client signs what the proxy cannot."""

    container: AzureContainer

    def copies(self, lie: Lie, to: str, first: int = 1, most: int | None = None) -> Rule:
        return Rule(lie, "PUT", to, "x-ms-copy-source", first, most)

    def deletions(self, lie: Lie, of: str, first: int = 1, most: int | None = None) -> Rule:
        return Rule(lie, "POST", "comp=batch", None, first, most, body=of)

    def dropped(self, request: Request, _server: Server) -> Reply:
        if request.method == "PUT":
            return Reply(202, [("x-ms-copy-id", "0"), ("x-ms-copy-status", "success")], b"")
        numbers = re.findall(rb"Content-ID: (\d+)", request.body)
        part = b"--told\r\nContent-Type: application/http\r\nContent-ID: %s\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"
        body = b"".join(part % number for number in numbers) + b"--told--\r\n"
        return Reply(202, [("Content-Type", "multipart/mixed; boundary=told")], body)

    def stored_altered(self, change: Change) -> Lie:
        def lie(request: Request, server: Server) -> Reply:
            reply = server(request)
            name = unquote(urlsplit(request.path).path).removeprefix(f"/{AZURE_ACCOUNT}/{BUCKET}/")
            data, content_type, metadata = self.container.whole(name)
            self.container.put(name, change(data), content_type, **metadata)
            return reply

        return lie
