"""What a bucket of S3 keeps of deleted objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from tieredctl.errors import ErrorCode
from tieredctl.ports.object_store import KeptVersion, Retention, Versioning
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.s3_connection import Answer, Onward, Operation, S3Failure, following
from tieredctl.storage.s3_listing_page import whole_seconds_ms

Request = Callable[..., Answer]
_TRANSIENT = (ErrorCode.STORE_UNREACHABLE, ErrorCode.STORE_THROTTLED)
_VERSIONING = {"Enabled": Versioning.ENABLED, "Suspended": Versioning.SUSPENDED}


def bucket_retention(request: Request) -> Retention:
    """The bucket's versioning and the default rule of its Object Lock."""
    versioning = _configuration(request, "get_bucket_versioning")
    kept = Versioning.UNKNOWN if versioning is None else _VERSIONING.get(versioning.get("Status", ""), Versioning.OFF)
    return Retention(kept, None if kept is Versioning.OFF else _lock(request))


def version_entries(request: Request, address: BucketAddress, prefix: str) -> Iterator[KeptVersion | None]:
    """All versions and delete markers of names with this prefix; None for a version that a listing shows. Raises
    S3Failure `unreadable` where the listing does not end."""
    for page in address.pages_that_end(_version_pages(request, address.url, prefix), _has_no_version):
        versions = page.get("Versions", ())
        older = [_kept(entry, entry["Size"]) for entry in versions if not entry["IsLatest"]]
        marks = (_kept(entry, None) for entry in page.get("DeleteMarkers", ()))
        yield from sorted([*older, *marks])
        yield from repeat(None, len(versions) - len(older))


def _version_pages(request: Request, url: str, prefix: str) -> Iterator[Answer]:
    parameters = {"Prefix": prefix}
    onward = Onward(url)
    while True:
        page = request("list_object_versions", **parameters)
        yield page
        marker = following(page, "NextKeyMarker", "NextVersionIdMarker")
        if marker is None:
            return
        onward.demand(marker[0], marker[1])
        parameters |= {"KeyMarker": marker[0], "VersionIdMarker": marker[1]}


def _has_no_version(page: Answer) -> bool:
    return not page.get("Versions") and not page.get("DeleteMarkers")


def _kept(entry: dict[str, Any], size: int | None) -> KeptVersion:
    modified_ms = whole_seconds_ms(entry["LastModified"])
    return KeptVersion(
        entry["Key"], entry["VersionId"], size or 0, modified_ms, size is None, entry.get("StorageClass")
    )


def _lock(request: Request) -> str | None:
    answer = _configuration(request, "get_object_lock_configuration") or {}
    configuration = answer.get("ObjectLockConfiguration", {})
    if configuration.get("ObjectLockEnabled") != "Enabled":
        return None
    rule = configuration.get("Rule", {}).get("DefaultRetention")
    if not rule:
        return "Object Lock is enabled, without a default retention"
    unit = "Years" if rule.get("Years") else "Days"
    count = rule.get(unit)
    span = unit.lower().removesuffix("s") if count == 1 else unit.lower()
    return f"Object Lock keeps new versions for {count} {span} ({rule.get('Mode')})"


def _configuration(request: Request, operation: Operation) -> Answer | None:
    """A bucket's configuration; None where the server does not tell, or has no such configuration."""
    try:
        return request(operation)
    except S3Failure as failure:
        if failure.code in (*_TRANSIENT, ErrorCode.BUCKET_MISSING):
            raise
        return None
