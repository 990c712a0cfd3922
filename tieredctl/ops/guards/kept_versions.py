"""What a deletion leaves in a store that keeps versions: said as it is, and deleted where that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tieredctl.errors import TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.storage.protocol import ObjectStore, Retention, Versioning, WritableObjectStore


@dataclass(slots=True)
class DeletedVersions:
    """Versions that were deleted for good, and delete markers with them."""

    versions: int = 0
    markers: int = 0
    bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Why a key has versions still, by key."""

    def add(self, other: DeletedVersions) -> None:
        self.versions += other.versions
        self.markers += other.markers
        self.bytes += other.bytes
        self.failed |= other.failed


def delete_versions(store: WritableObjectStore, keys: Iterable[str]) -> DeletedVersions:
    """Deletes what is kept of objects that were deleted. Of a key that has an object now, all is left alone."""
    done = DeletedVersions()
    for key in keys:
        try:
            if store.head(key) is None:
                _delete_all(store, key, done)
        except TieredctlError as error:
            done.failed[key] = f"{error.code}: {error.message}"
    return done


def _delete_all(store: WritableObjectStore, key: str, done: DeletedVersions) -> None:
    found = [kept for kept in store.kept_versions(key) if kept.key == key]
    # The mark goes last: without it the newest of the others would be the object again.
    for kept in sorted(found, key=lambda one: one.is_delete_marker):
        store.delete_version(kept)
        done.versions += not kept.is_delete_marker
        done.markers += kept.is_delete_marker
        done.bytes += kept.size


@dataclass(frozen=True, slots=True)
class WhatStays:
    """What is left of so many objects that were deleted, by what their store tells of itself."""

    retention: Retention
    objects: int
    bytes: int
    deleted: DeletedVersions | None = None

    @property
    def may_stay(self) -> bool:
        """Whether bytes of what was deleted are, or may be, kept as versions."""
        return self.deleted is None and self.objects > 0 and self.retention.versioning is not Versioning.OFF

    def document(self) -> Document:
        """For a summary."""
        versioning = self.retention.versioning
        stays = self.bytes if versioning is Versioning.ENABLED and self.may_stay else None if self.may_stay else 0
        return {
            "versioning": versioning.value,
            "objectLock": self.retention.lock,
            "softDeleteDays": self.retention.soft_delete_days,
            "bytesKept": stays,
            "versionsDeleted": self.deleted.versions if self.deleted else 0,
            "versionBytesDeleted": self.deleted.bytes if self.deleted else 0,
        }

    def sentences(self) -> list[str]:
        """What people should know, nothing where all was freed."""
        said = []
        if self.may_stay:
            said.append(self._kept())
        if self.deleted:
            what = f"{self.deleted.versions} versions, {self.deleted.bytes} bytes, and {self.deleted.markers} markers"
            said.append(f"Deleted {what} for good.")
            said += [f"Versions of {key} are still there: {why}" for key, why in self.deleted.failed.items()]
        if self.objects and self.retention.lock:
            said.append(f"{self.retention.lock}: what it keeps cannot be deleted before.")
        if self.objects and self.retention.soft_delete_days:
            days = self.retention.soft_delete_days
            said.append(f"The bucket keeps what is deleted for {days:g} days more, which is paid for (soft delete).")
        return said

    def _kept(self) -> str:
        which = "1 object" if self.objects == 1 else f"{self.objects} objects"
        if self.retention.versioning is Versioning.ENABLED:
            frees = "`--delete-versions` or a lifecycle rule frees them"
            return f"A delete marker was written for {which}: {self.bytes} bytes stay as noncurrent versions; {frees}."
        if self.retention.versioning is Versioning.SUSPENDED:
            return f"Versioning is suspended: of {which}, those written before stay as noncurrent versions."
        return f"The bucket does not tell whether it keeps versions: {self.bytes} bytes may stay, and be paid for."


def for_good(retention: Retention, *, with_versions: bool) -> str:
    """` for good` where a deletion leaves no version; for the sentence that asks for a confirmation."""
    return " for good" if with_versions or retention.versioning is Versioning.OFF else ""


def retention_of(store: ObjectStore) -> Retention:
    """What the store keeps of what is deleted; unknown where it does not answer: what was done is told all the same."""
    try:
        return store.retention()
    except TieredctlError:
        return Retention(Versioning.UNKNOWN)
