"""What a container of Azure Blob Storage keeps of deleted and replaced blobs: versions and snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol
from xml.etree import ElementTree

from tieredctl.errors import ErrorCode
from tieredctl.ports.object_store import KeptVersion, Retention, Versioning
from tieredctl.storage.azure_connection import Answer, AzureFailure
from tieredctl.storage.azure_listing import RequestContainer, pages
from tieredctl.storage.bucket_address import BucketAddress

_SNAPSHOT = "snapshot="
"""What the id of a version begins with that is a snapshot: both are times."""
_UNTOLD = (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE)


class _RequestBlob(Protocol):
    def __call__(self, method: str, name: str, query: Mapping[str, str]) -> Answer: ...


def container_retention(
    request: RequestContainer, request_service: Callable[[Mapping[str, str]], Answer], address: BucketAddress
) -> Retention:
    """Soft delete is the account's, locks are the container's. Versioning is told to the management API alone: it shows
    in the blobs."""
    container, service = _told(lambda: request("HEAD", {})), _told(lambda: request_service({"comp": "properties"}))
    versioning = _versioning_if_told(request, address)
    properties = None if service is None else service_properties(service.body)
    lock = None if container is None else _lock(container.headers)
    if properties is None:
        # What soft delete keeps is not known: only that more is kept is certain.
        return Retention(versioning if versioning is Versioning.ENABLED else Versioning.UNKNOWN, lock)
    return Retention(versioning, lock, soft_delete_days(properties))


def soft_delete_days(service: ElementTree.Element) -> float | None:
    """How many days the account keeps deleted blobs; None where it does not."""
    days = service.findtext("DeleteRetentionPolicy/Days") or ""
    is_kept = service.findtext("DeleteRetentionPolicy/Enabled") == "true"
    return float(days) if is_kept and days.isdecimal() else None


def _told(request: Callable[[], Answer]) -> Answer | None:
    """The answer; None where it may not be asked for."""
    try:
        return request()
    except AzureFailure as failure:
        if failure.code not in _UNTOLD:
            raise
        return None


def service_properties(body: bytes) -> ElementTree.Element | None:
    """The answer to Get Blob Service Properties; None where it is none."""
    try:
        return ElementTree.fromstring(body.removeprefix(b"\xef\xbb\xbf"))
    except ElementTree.ParseError:
        return None


def _lock(container: Mapping[str, str]) -> str | None:
    if container.get("x-ms-has-legal-hold") == "true":
        return "A legal hold keeps the container's blobs"
    if container.get("x-ms-has-immutability-policy") == "true":
        return "An immutability policy keeps the container's blobs"
    if container.get("x-ms-immutable-storage-with-versioning-enabled") == "true":
        return "Versions may have immutability policies"
    return None


def _versioning_if_told(request: RequestContainer, address: BucketAddress) -> Versioning:
    try:
        return versioning_by_blobs(request, address)
    except AzureFailure as failure:
        if failure.code not in _UNTOLD:
            raise
        return Versioning.UNKNOWN


def versioning_by_blobs(request: RequestContainer, address: BucketAddress) -> Versioning:
    """By the blob of one page that was written last: what it has, is told of new ones. Raises AzureFailure."""
    page = next(pages(request, address, {"prefix": address.root, "include": "versions"}))
    newest = max(page.blobs, key=lambda blob: blob.stored.last_modified_ms, default=None)
    if newest is not None and newest.version_id is not None:
        return Versioning.ENABLED
    return Versioning.SUSPENDED if any(blob.version_id for blob in page.blobs) else Versioning.UNKNOWN


def version_entries(request: RequestContainer, address: BucketAddress, prefix: str) -> Iterator[KeptVersion | None]:
    """Past versions and snapshots of blobs whose names begin so, and None for the blobs. Their keys are whole names."""
    name, ids = "", set[str]()
    for page in pages(request, address, {"prefix": prefix, "include": "snapshots,versions"}):
        for blob in page.blobs:
            found, kept_id = blob.stored, _kept_id(blob.snapshot, blob.version_id)
            if found.key != name:
                is_new, name, ids = page.is_hierarchical or found.key.encode() > name.encode(), found.key, set()
            else:
                is_new = kept_id not in ids
            if not is_new:
                raise AzureFailure(ErrorCode.UNREADABLE, f"{address.url} lists {name!r} out of order, or twice.")
            ids.add(kept_id)
            if blob.snapshot is not None or (blob.version_id is not None and not blob.is_current_version):
                yield KeptVersion(name, kept_id, found.size, found.last_modified_ms, False, found.storage_class)
            else:
                yield None


def soft_deleted_blobs(request: RequestContainer, address: BucketAddress, key: str) -> list[KeptVersion]:
    """What soft delete keeps of a blob, its versions and snapshots. Raises AzureFailure."""
    name = address.root + key
    found = pages(request, address, {"prefix": name, "include": "deleted,snapshots,versions"})
    blobs = [blob for page in found for blob in page.blobs if blob.is_deleted and blob.stored.key == name]
    return [
        KeptVersion(
            *(key, _kept_id(blob.snapshot, blob.version_id), blob.stored.size, blob.stored.last_modified_ms, False),
            storage_class=blob.stored.storage_class,
        )
        for blob in blobs
    ]


def _kept_id(snapshot: str | None, version_id: str | None) -> str:
    return f"{_SNAPSHOT}{snapshot}" if snapshot is not None else version_id or ""


def delete_kept(request: _RequestBlob, kept: KeptVersion, name: str) -> None:
    """Deletes a past version or a snapshot; soft delete may keep it still. Raises AzureFailure."""
    request("DELETE", name, _which(kept))


def read_kept(request: _RequestBlob, kept: KeptVersion, name: str) -> Answer:
    """The bytes of a past version or a snapshot. Raises AzureFailure."""
    return request("GET", name, _which(kept))


def _which(kept: KeptVersion) -> dict[str, str]:
    is_snapshot = kept.version_id.startswith(_SNAPSHOT)
    return {"snapshot" if is_snapshot else "versionid": kept.version_id.removeprefix(_SNAPSHOT)}
