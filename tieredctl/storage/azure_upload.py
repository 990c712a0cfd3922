"""Uploads to Azure in blocks, committed only where the name has no blob (Put Block, Put Block List)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import md5
from typing import Protocol
from uuid import uuid4

from tieredctl.storage.azure_connection import Answer


class _RequestBlob(Protocol):
    """A request about one blob. Raises AzureFailure."""

    def __call__(
        self,
        method: str,
        name: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer: ...


def upload_blocks(request: _RequestBlob, name: str, parts: Iterator[bytes]) -> Answer:
    """What Azure answered to the list of blocks. Blocks that are not committed are in no listing, and Azure drops them
    after a week. Raises AzureFailure, `BlobAlreadyExists` where there is a blob by then."""
    upload = uuid4().hex
    ids: list[str] = []
    for number, data in enumerate(parts):
        ids.append(b64encode(f"{upload}{number:06}".encode()).decode())
        headers = {"Content-MD5": b64encode(md5(data, usedforsecurity=False).digest()).decode()}
        request("PUT", name, {"comp": "block", "blockid": ids[-1]}, headers, data)
    blocks = "".join(f"<Uncommitted>{one}</Uncommitted>" for one in ids)
    body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{blocks}</BlockList>'.encode()
    headers = {
        "If-None-Match": "*",
        "x-ms-blob-content-type": "application/octet-stream",
        "Content-Type": "application/xml",
    }
    return request("PUT", name, {"comp": "blocklist"}, headers, body)
