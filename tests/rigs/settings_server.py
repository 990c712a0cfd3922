"""A server on the loopback that answers questions about a bucket's settings as the API references of Amazon, Google and
Azure document it. It decides nothing: what servers of object_servers lack is tried on it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

BUCKET = "kafka-tiered"
Answer = str | int | Mapping[str, Any]
"""A body; an error's HTTP status; or a document of JSON."""

_GOOGLES = ("/storage/v1/", "/download/storage/v1/")
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_NS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_ERRORS = {400: "NotFoundException", 403: "AccessDenied", 501: "NotImplemented", 404: "NoSuchKey"}
_ERRORS_OF_AZURE = {403: "AuthorizationPermissionMismatch", 409: "BlobArchived"}
_EMPTY: Mapping[str, Answer] = {
    "list-type": f"<ListBucketResult {_NS}><IsTruncated>false</IsTruncated></ListBucketResult>",
    "versions": f"<ListVersionsResult {_NS}><IsTruncated>false</IsTruncated></ListVersionsResult>",
    "uploads": f"<ListMultipartUploadsResult {_NS}><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>",
}


def missing(code: str) -> str:
    """How S3 answers where a bucket has no such configuration."""
    return f"<Error><Code>{code}</Code></Error>"


class _Handler(BaseHTTPRequestHandler):
    answers: ClassVar[Mapping[str, Answer]]
    requests: ClassVar[list[str]]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.requests.append(self.command)
        if self.path.startswith(_GOOGLES):
            self._answer(self._question_of_google(parts.path))
        elif "x-ms-version" in self.headers:
            self._answer_as_azure(asked)
        elif parts.path.count("/") > 1 and self.command == "HEAD":
            self._answer("head")
        else:
            # The last name that has an answer: `continuation-token`, where it has one, is the next page.
            self._answer(next((one for one in reversed(asked) if one in self.answers), "unknown"))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        """What KMS is asked."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append(self.headers.get("X-Amz-Target", self.command))
        self._answer("key")

    def do_PUT(self) -> None:
        self.requests.append(self.command)
        self._answer("unknown")

    def do_DELETE(self) -> None:
        self.do_PUT()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Says nothing."""

    def _question_of_google(self, path: str) -> str:
        if path.endswith("/o"):
            return "list"
        return "iam" if path.endswith("/iam") else "object" if "/o/" in path else "bucket"

    def _answer_as_azure(self, asked: Mapping[str, str]) -> None:
        of = "blob-" + self.command.lower() if "restype" not in asked else asked["restype"]
        answer = self.answers.get("listing" if asked.get("comp") == "list" else of, 501)
        told = {"ETag": '"e"', "Last-Modified": "Sat, 01 Nov 2025 00:00:00 GMT"}
        if isinstance(answer, int):
            self._send(answer, "", {"x-ms-error-code": _ERRORS_OF_AZURE.get(answer, str(answer))})
        elif isinstance(answer, Mapping) and "x-ms-error-code" in answer:
            self._send(403, "", answer)
        elif isinstance(answer, str):
            self._send(200, _XML + answer, told)
        else:
            self._send(200, "", {**told, **answer})

    def _answer(self, question: str) -> None:
        answer = self.answers.get(question, 501)
        if question == "head" and isinstance(answer, Mapping):
            self._send(200, "", {"ETag": '"e"', "Last-Modified": "Sat, 01 Nov 2025 00:00:00 GMT", **answer})
        elif question == "object" and "alt=media" in self.path:
            self._send(*self._media())
        elif isinstance(answer, int):
            code = _ERRORS.get(answer, str(answer))
            is_json = self.path.startswith(_GOOGLES) or question == "key"
            body = json.dumps({"error": {"code": answer}, "__type": code}) if is_json else missing(code)
            self._send(answer, body)
        elif isinstance(answer, str):
            self._send(404 if answer.startswith("<Error>") else 200, _XML + answer)
        else:
            self._send(200, json.dumps(answer))

    def _media(self) -> tuple[int, str]:
        status = self.answers.get("media", 200)
        return (status, "{}") if isinstance(status, int) and status != 200 else (206, "x")

    def _send(self, status: int, body: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())


class SettingsServer:
    """A running server; `answers` are by the name of the question, and may be replaced at any time."""

    def __init__(self, handler: type[_Handler], port: int) -> None:
        self._handler = handler
        self.endpoint = f"http://127.0.0.1:{port}"

    def answer(self, answers: Mapping[str, Answer]) -> None:
        """From now on. What has no answer here, the server does not support."""
        self._handler.answers = {**_EMPTY, **answers}

    @property
    def requests(self) -> Sequence[str]:
        """The methods that were asked, and KMS' actions."""
        return self._handler.requests


@contextmanager
def settings_server() -> Iterator[SettingsServer]:
    """A server on a port of its own."""
    handler = type("Handler", (_Handler,), {"answers": {}, "requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield SettingsServer(handler, server.server_port)
        finally:
            server.shutdown()
            thread.join()


def listing(*objects: tuple[str, int, str]) -> str:
    """ListObjectsV2's answer: key, bytes and storage class of each."""
    entries = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2025-11-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag>"
        f"<Size>{size}</Size><StorageClass>{name}</StorageClass></Contents>"
        for key, size, name in objects
    )
    return f"<ListBucketResult {_NS}><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"


def versions(*kept: tuple[str, int]) -> str:
    """ListObjectVersions' answer with noncurrent versions: key and bytes of each."""
    entries = "".join(
        f"<Version><Key>{key}</Key><VersionId>{number}</VersionId><IsLatest>false</IsLatest>"
        f"<LastModified>2025-10-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag><Size>{size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Version>"
        for number, (key, size) in enumerate(kept)
    )
    return f"<ListVersionsResult {_NS}><IsTruncated>false</IsTruncated>{entries}</ListVersionsResult>"


def uploads(key: str, initiated: str) -> str:
    """ListMultipartUploads' answer with one upload."""
    return (
        f"<ListMultipartUploadsResult {_NS}><IsTruncated>false</IsTruncated><Upload><Key>{key}</Key>"
        f"<UploadId>u</UploadId><Initiated>{initiated}</Initiated></Upload></ListMultipartUploadsResult>"
    )


def parts(size: int) -> str:
    """ListParts' answer with one part."""
    return (
        f"<ListPartsResult {_NS}><IsTruncated>false</IsTruncated><Part><PartNumber>1</PartNumber>"
        f"<Size>{size}</Size></Part></ListPartsResult>"
    )
