"""Resumable uploads to Google Cloud Storage, which make an object only where the key has none.

The requests are written here: Google's library sends a small upload in another way than a large one, and deletes
whatever is under the name where a checksum of its own is not the server's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.storage.gcs_connection import ONCE, GcsFailure, failing_as_tieredctl, refusal
from tieredctl.storage.upload_parts import Upload

_CHUNK_UNIT = 256 << 10
"""Each chunk but the last has to be a multiple of this."""
_GOES_ON = 308


def upload_in_chunks(client: Any, url: str, blob: Any, wanted: Upload, part_bytes: int) -> Any:
    """The resource of the object that a resumable upload made, of at least a byte. It is cancelled when it cannot be
    finished. Raises GcsFailure, whose `is_changed` is true where the key has an object, and as `Upload.parts` does."""
    size, chunk_bytes = wanted.size, -(-part_bytes // _CHUNK_UNIT) * _CHUNK_UNIT
    with failing_as_tieredctl(url):
        session = blob.create_resumable_upload_session(
            content_type="application/octet-stream", size=size, if_generation_match=0, checksum=None, **ONCE
        )
    position, answer = 0, None
    try:
        for data in wanted.parts(chunk_bytes):
            end = position + len(data)
            headers = {"Content-Range": f"bytes {position}-{end - 1}/{size}"}
            with failing_as_tieredctl(url):
                answer = client._http.put(session, data=data, headers=headers, timeout=ONCE["timeout"])
            _demand_taken(answer, end, size, url)
            position = end
    except BaseException:
        with suppress(TieredctlError), failing_as_tieredctl(url):
            client._http.delete(session, timeout=ONCE["timeout"])
        raise
    with failing_as_tieredctl(url):
        return None if answer is None else answer.json()


def _demand_taken(answer: Any, end: int, size: int, url: str) -> None:
    """Raises GcsFailure unless the server has all bytes up to `end`."""
    if end < size and answer.status_code == _GOES_ON and answer.headers.get("Range") == f"bytes=0-{end - 1}":
        return
    if end == size and answer.status_code in {200, 201}:
        return
    if answer.status_code < 400:
        raise GcsFailure(ErrorCode.STORE_UNREACHABLE, f"{url} took only a part of what it was sent.")
    raise refusal(answer.status_code, url)
