"""Copies inside an S3 server, with all that belongs to the object: at once, or in parts where it is too large."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from tieredctl.storage.concurrently import concurrently
from tieredctl.storage.s3_connection import Answer, Operation, S3Failure

_MOST_PARTS = 10_000
# What a copy at once takes along by itself.
_TAKEN_ALONG = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Metadata",
    "WebsiteRedirectLocation",
)


class Request(Protocol):
    """A request to the bucket. Raises S3Failure."""

    def __call__(self, operation: Operation, **parameters: Any) -> Answer: ...


def copy_at_once(request: Request, name: str, source: Mapping[str, Any], description: Mapping[str, Any]) -> None:
    """One request. `source` says what to copy, on which condition; `description` is what HeadObject said of it."""
    request("copy_object", Key=name, **source, **_storage_class(description))


def copy_in_parts(
    request: Request, name: str, source: Mapping[str, Any], description: Mapping[str, Any], part_bytes: int
) -> None:
    """A multipart upload out of ranges of the source, larger ones where there would be too many of them.

    Given up when one of them cannot be copied.
    """
    size: int = description["ContentLength"]
    part_bytes = max(part_bytes, -(-size // _MOST_PARTS))
    kept = {field: description[field] for field in _TAKEN_ALONG if field in description}
    upload = request("create_multipart_upload", Key=name, **kept, **_storage_class(description))["UploadId"]

    def copy_part(start: int) -> dict[str, Any]:
        number = start // part_bytes + 1
        span = f"bytes={start}-{min(start + part_bytes, size) - 1}"
        place = {"Key": name, "UploadId": upload, "PartNumber": number}
        part = request("upload_part_copy", **place, **source, CopySourceRange=span)
        return {"PartNumber": number, "ETag": part["CopyPartResult"]["ETag"]}

    try:
        parts = concurrently(copy_part, range(0, size, part_bytes))
        request("complete_multipart_upload", Key=name, UploadId=upload, MultipartUpload={"Parts": parts})
    except BaseException:
        with suppress(S3Failure):
            request("abort_multipart_upload", Key=name, UploadId=upload)
        raise


def _storage_class(description: Mapping[str, Any]) -> dict[str, str]:
    return {"StorageClass": description["StorageClass"]} if "StorageClass" in description else {}
