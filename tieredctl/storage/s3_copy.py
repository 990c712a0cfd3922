"""Copies within an S3 server, with all properties of the object: at once, or in parts where it is too large."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlencode

from tieredctl.errors import ErrorCode
from tieredctl.storage.bucket_store import concurrently
from tieredctl.storage.s3_connection import Answer, Operation, S3Failure

MOST_PARTS = 10_000
COPIED_PART_BYTES = 256 << 20
# What a copy at once keeps by itself, like tags.
_TAKEN_ALONG = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Expires",
    "Metadata",
)
_NEVER_TAKEN_ALONG = (
    "BucketKeyEnabled",
    "SSEKMSKeyId",
    "ServerSideEncryption",
    "StorageClass",
    "WebsiteRedirectLocation",
)
_GRANTED_BY = {
    "FULL_CONTROL": "GrantFullControl",
    "READ": "GrantRead",
    "READ_ACP": "GrantReadACP",
    "WRITE_ACP": "GrantWriteACP",
}
_GRANTEES = {"CanonicalUser": ("id", "ID"), "Group": ("uri", "URI"), "AmazonCustomerByEmail": ("email", "EmailAddress")}
_PASSING = (ErrorCode.STORE_UNREACHABLE, ErrorCode.STORE_THROTTLED)
_REFUSED = (ErrorCode.STORE_FORBIDDEN, *_PASSING)


class Request(Protocol):
    """A request to the bucket. Raises S3Failure."""

    def __call__(self, operation: Operation, **parameters: Any) -> Answer: ...


def copy_at_once(request: Request, name: str, source: Mapping[str, Any], description: Mapping[str, Any]) -> None:
    """One request. `source` says what to copy, on which condition; `description` is HeadObject's answer about it."""
    request("copy_object", Key=name, **source, **_not_taken_along(request, source, description))


def copy_in_parts(
    request: Request, name: str, source: Mapping[str, Any], description: Mapping[str, Any], part_bytes: int
) -> None:
    """A multipart upload made of ranges of the source, larger ones where there would be too many.

    It is aborted when one of them cannot be copied.
    """
    size: int = description["ContentLength"]
    part_bytes = max(part_bytes, -(-size // MOST_PARTS))
    kept = {field: description[field] for field in _TAKEN_ALONG if field in description}
    if "ExpiresString" in description and "Expires" not in description:
        kept["Expires"] = 0  # an invalid date, such as "0", means that it has expired
    kept |= _tags(request, source) | _not_taken_along(request, source, description)
    _assemble(request, name, source, (size, part_bytes), kept, {})


def copy_if_absent(request: Request, name: str, source: Mapping[str, Any], size: int, at_once: int) -> Answer:
    """Makes an object of another one's bytes alone, in parts if it is larger than `at_once`. The answer has its ETag.

    Raises S3Failure `PreconditionFailed` where the name has an object, or the source is another by now."""
    if size > at_once:
        part_bytes = max(min(at_once or COPIED_PART_BYTES, COPIED_PART_BYTES), -(-size // MOST_PARTS))
        return _assemble(request, name, source, (size, part_bytes), {}, {"IfNoneMatch": "*"})
    defaults = {"MetadataDirective": "REPLACE", "TaggingDirective": "REPLACE"}
    answer = request("copy_object", Key=name, IfNoneMatch="*", **source, **defaults)
    return answer | {"ETag": answer["CopyObjectResult"]["ETag"]}


def _assemble(
    request: Request,
    name: str,
    source: Mapping[str, Any],
    sizes: tuple[int, int],
    described: Mapping[str, Any],
    condition: Mapping[str, str],
) -> Answer:
    """Has the parts copied, and completes the object. `sizes` are those of the whole and of a part, in bytes."""
    size, part_bytes = sizes
    upload = request("create_multipart_upload", Key=name, **described)["UploadId"]

    def copy_part(start: int) -> dict[str, Any]:
        number = start // part_bytes + 1
        span = f"bytes={start}-{min(start + part_bytes, size) - 1}"
        place = {"Key": name, "UploadId": upload, "PartNumber": number}
        part = request("upload_part_copy", **place, **source, CopySourceRange=span)
        return {"PartNumber": number, "ETag": part["CopyPartResult"]["ETag"]}

    try:
        parts = concurrently(copy_part, range(0, size, part_bytes))
        return request(
            "complete_multipart_upload", Key=name, UploadId=upload, MultipartUpload={"Parts": parts}, **condition
        )
    except BaseException:
        with suppress(S3Failure):
            request("abort_multipart_upload", Key=name, UploadId=upload)
        raise


def _not_taken_along(request: Request, source: Mapping[str, Any], description: Mapping[str, Any]) -> dict[str, Any]:
    return {field: description[field] for field in _NEVER_TAKEN_ALONG if field in description} | _grants(
        request, source
    )


def _tags(request: Request, source: Mapping[str, Any]) -> dict[str, str]:
    """The source's tags. Raises S3Failure where they may not be read: they would be lost."""
    try:
        answer = request("get_object_tagging", Key=source["CopySource"]["Key"])
    except S3Failure as failure:
        if failure.code in _REFUSED:
            raise
        return {}  # a server without tags
    tags = urlencode([(tag["Key"], tag["Value"]) for tag in answer.get("TagSet", ())])
    return {"Tagging": tags} if tags else {}


def _grants(request: Request, source: Mapping[str, Any]) -> dict[str, str]:
    """Who else may use the source, where the server reports it; empty where only its owner may."""
    try:
        answer = request("get_object_acl", Key=source["CopySource"]["Key"])
    except S3Failure as failure:
        if failure.code in _PASSING:
            raise
        return {}
    owner = answer.get("Owner", {}).get("ID")
    granted: dict[str, list[str]] = {}
    others = False
    for grant in answer.get("Grants", ()):
        grantee, permission = grant.get("Grantee", {}), _GRANTED_BY.get(grant.get("Permission"))
        kind, field = _GRANTEES.get(grantee.get("Type"), ("", ""))
        if permission and grantee.get(field):
            granted.setdefault(permission, []).append(f'{kind}="{grantee[field]}"')
            others |= grantee[field] != owner
    return {permission: ",".join(grantees) for permission, grantees in granted.items()} if others else {}
