"""Deletions of many blobs in one request: Blob Batch of Azure's REST API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from email import message_from_bytes
from http.client import HTTPException, parse_headers
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.azure_connection import (
    Answer,
    AzureConnection,
    AzureFailure,
    dated,
    located,
    refusal,
    unanswered,
)

MOST_IN_A_BATCH = 256


def delete_together(
    connection: AzureConnection, url: str, container: str, blobs: Sequence[tuple[str, str | None]]
) -> Sequence[AzureFailure | None]:
    """What became of each blob, in the order given: why it was not deleted, or None. Each has its name, and the ETag
    that it must have where one is given. `url` is the store's, for messages."""
    from azure.core.exceptions import AzureError

    if not blobs:
        return []
    boundary = f"batch_{uuid4()}"
    try:
        body = b"".join(_parts(connection, url, container, blobs, boundary))
        headers = {"Content-Type": f"multipart/mixed; boundary={boundary}"}
        answer = connection.request("POST", url, container, {"restype": "container", "comp": "batch"}, headers, body)
    except AzureFailure as failure:
        return [failure] * len(blobs)
    except AzureError as error:  # by the signer, whose token may have to be renewed
        return [unanswered(error, url)] * len(blobs)
    except TieredctlError as error:
        return [AzureFailure(error.code, error.message, hint=error.hint)] * len(blobs)
    answers = dict(_answers(answer))
    return [_outcome(answers.get(str(number)), url, name) for number, (name, _) in enumerate(blobs)]


def _outcome(answer: Answer | None, url: str, name: str) -> AzureFailure | None:
    if answer is None:
        return AzureFailure(ErrorCode.STORE_UNREACHABLE, f"{url} does not report on {name!r}.")
    return None if 200 <= answer.status < 300 else refusal(answer.status, answer.headers, url)


def _parts(
    connection: AzureConnection, url: str, container: str, blobs: Sequence[tuple[str, str | None]], boundary: str
) -> Iterator[bytes]:
    from azure.core.pipeline import PipelineContext, PipelineRequest
    from azure.core.pipeline.transport import HttpRequest

    account = connection.signed_in(url)
    for number, (name, version) in enumerate(blobs):
        condition = {} if version is None else {"If-Match": version}
        # The version of the API is the batch's.
        headers = {"x-ms-date": dated()["x-ms-date"], "Content-Length": "0", **condition}
        request = HttpRequest("DELETE", located(account.endpoint, f"{container}/{name}"), headers=headers)
        account.signer.on_request(PipelineRequest(request, PipelineContext(None)))
        parts = urlsplit(request.url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        lines = [
            *(f"--{boundary}", "Content-Type: application/http", "Content-Transfer-Encoding: binary"),
            *(f"Content-ID: {number}", "", f"DELETE {target} HTTP/1.1"),
            *(f"{field}: {value}" for field, value in request.headers.items()),
        ]
        yield "\r\n".join([*lines, "", ""]).encode() + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _answers(answer: Answer) -> Iterator[tuple[str, Answer]]:
    """Each with the number of its request: they may come in any order."""
    kind = answer.headers.get("content-type", "")
    message: Any = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + answer.body)
    for part in message.get_payload() if message.is_multipart() else ():
        text = BytesIO(part.get_payload(decode=True) or b"")
        status = text.readline().split()
        try:
            headers = {name.lower(): value for name, value in parse_headers(text).items()}
            yield str(part.get("Content-ID", "")), Answer(int(status[1]), headers, b"")
        except (HTTPException, IndexError, ValueError):
            continue
