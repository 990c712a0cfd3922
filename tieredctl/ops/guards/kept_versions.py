"""What a deletion leaves in a store that keeps versions: reported as it is, and deleted on request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.second_reading import head_again
from tieredctl.ports.object_store import ObjectStore, Retention, Versioning, WritableObjectStore


@dataclass(slots=True)
class DeletedVersions:
    """Versions and delete markers that were deleted permanently."""

    versions: int = 0
    markers: int = 0
    bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Why a key still has versions, by key."""

    def add(self, other: DeletedVersions) -> None:
        self.versions += other.versions
        self.markers += other.markers
        self.bytes += other.bytes
        self.failed |= other.failed


def delete_versions(store: WritableObjectStore, keys: Iterable[str]) -> DeletedVersions:
    """Deletes the kept versions of objects that were deleted. A key that has an object now is left alone."""
    done = DeletedVersions()
    for key in keys:
        try:
            if head_again(store, key) is None:
                _delete_all(store, key, done)
        except TieredctlError as error:
            done.failed[key] = f"{error.code}: {error.message}"
    return done


def _delete_all(store: WritableObjectStore, key: str, done: DeletedVersions) -> None:
    versions = [kept for kept in store.kept_versions(key) if kept.key == key]
    # The marker is deleted last: without it, the newest other version would become the object again.
    for kept in sorted(versions, key=lambda one: one.is_delete_marker):
        store.delete_version(kept)
        done.versions += not kept.is_delete_marker
        done.markers += kept.is_delete_marker
        done.bytes += kept.size


def keys_left(deleted: DeletedVersions | None) -> int:
    """How many keys still have versions that should be gone; 0 if no versions were to be deleted."""
    return len(deleted.failed) if deleted else 0


@dataclass(frozen=True, slots=True)
class WhatStays:
    """What is left of the objects that were deleted, according to their store's settings."""

    retention: Retention
    objects: int
    bytes: int
    deleted: DeletedVersions | None = None

    @property
    def may_stay(self) -> bool:
        """Whether deleted bytes are, or may be, kept as versions."""
        return self.deleted is None and self.objects > 0 and self.retention.versioning is not Versioning.OFF

    def document(self) -> Document:
        """The document for a summary."""
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
        """What people should know; empty if everything was freed."""
        sentences = []
        if self.may_stay:
            sentences.append(self._kept())
        if self.deleted:
            versions = counted(self.deleted.versions, "version")
            markers = counted(self.deleted.markers, "delete marker")
            what = f"{versions} ({size_text(self.deleted.bytes)}) and {markers}"
            sentences.append(f"Permanently deleted {what}.")
            sentences += [f"Versions of {key} still exist: {why}" for key, why in self.deleted.failed.items()]
        if self.objects and self.retention.lock:
            sentences.append(f"{self.retention.lock}: retained objects cannot be deleted before it expires.")
        if self.objects and self.retention.soft_delete_days:
            days = f"{self.retention.soft_delete_days:g} day{'' if self.retention.soft_delete_days == 1 else 's'}"
            sentences.append(f"The bucket keeps deleted objects for {days} (soft delete), and bills for them.")
        return sentences

    def _kept(self) -> str:
        which, size = counted(self.objects, "object"), size_text(self.bytes)
        if self.retention.versioning is Versioning.ENABLED:
            frees = "`--delete-versions` or a lifecycle rule frees them"
            return f"The bucket keeps versions: {size} of {which} stays as noncurrent versions; {frees}."
        if self.retention.versioning is Versioning.SUSPENDED:
            return f"Versioning is suspended: of {which}, those written before that remain as noncurrent versions."
        return f"The bucket does not report whether it keeps versions: {size} may remain, and be billed."


def for_good(retention: Retention, *, with_versions: bool) -> str:
    """` for good` if a deletion leaves no version; for the sentence that asks for confirmation."""
    return " for good" if with_versions or retention.versioning is Versioning.OFF else ""


def retention_of(store: ObjectStore) -> Retention:
    """What the store keeps of deleted objects; unknown if it does not answer: the outcome is reported all the same."""
    try:
        return store.retention()
    except TieredctlError:
        return Retention(Versioning.UNKNOWN)
