"""Uploads to an S3 server in parts, completed only where the key has no object."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from hashlib import md5
from typing import Any

from tieredctl.storage.s3_connection import Answer, S3Failure
from tieredctl.storage.s3_copy import MOST_PARTS, Request
from tieredctl.storage.upload_parts import Upload


def upload_in_parts(request: Request, name: str, wanted: Upload, part_bytes: int) -> Answer:
    """The answer about the object that a multipart upload made, with its ETag. It is aborted when it cannot be
    completed. Raises S3Failure `PreconditionFailed` where the key has an object, and what `Upload.parts` raises."""
    upload = request("create_multipart_upload", Key=name)["UploadId"]
    parts: list[dict[str, Any]] = []
    part_bytes = max(part_bytes, -(-wanted.size // MOST_PARTS))
    try:
        for number, data in enumerate(wanted.parts(part_bytes), 1):
            place = {"Key": name, "UploadId": upload, "PartNumber": number}
            answer = request("upload_part", **place, Body=data, ContentMD5=content_md5(data))
            parts.append({"PartNumber": number, "ETag": answer["ETag"]})
        completed = {"Key": name, "UploadId": upload, "MultipartUpload": {"Parts": parts}}
        return request("complete_multipart_upload", **completed, IfNoneMatch="*")
    except BaseException:
        with suppress(S3Failure):
            request("abort_multipart_upload", Key=name, UploadId=upload)
        raise


def content_md5(data: bytes) -> str:
    """The MD5 for the server to compare: buckets with Object Lock require it."""
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()
