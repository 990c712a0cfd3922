"""What is to be removed from a remote store, and what was done: plans and receipts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

PLAN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""A plan's id, whole: a part of the keys of what a store keeps for the plan."""


class RemovalMode(StrEnum):
    """What becomes of an object that is removed."""

    QUARANTINE = "quarantine"
    """Copied within the store first, so that it can be put back."""
    DELETE = "delete"
    """Gone for good."""


@dataclass(frozen=True, slots=True)
class PlanHeader:
    """What a whole plan is about. Times in ms since the epoch, UTC."""

    plan_id: str
    created_ms: int
    valid_until_ms: int
    """Exclusive."""
    cluster_id: str
    store: str
    """The store's URL."""
    layout: str
    mode: RemovalMode
    min_age_ms: int
    max_percent: float
    """How much of the store's objects may be planned."""
    metadata_end_offsets: Mapping[int, int]
    """How far the metadata was read: the offset after the last (exclusive) of each metadata partition."""
    foreign_topic_ids: frozenset[str] = frozenset()
    """Topics that the user named although neither metadata nor cluster ever knew them."""
    unknown_keys: frozenset[str] = frozenset()
    """Keys that the user named although no layout explains them."""
    control_plane: str | None = None
    """The database that knows the objects of diskless topics, as it names itself; None for those of tiered
    ones."""
    max_missing: int | None = None
    """How many promised objects may be missing; None in plans of releases that did not look for them."""


class PlannedObject(NamedTuple):
    """An object that is to be removed. Size in bytes, as stored; time in ms since the epoch, UTC.

    `version` is the store's name of its bytes, None where the listing did not have it. `evidence` is why it is
    orphaned, as `orphans scan` shows it.
    """

    key: str
    size: int
    last_modified_ms: int
    version: str | None
    status: str
    cause: str | None
    evidence: Mapping[str, Any] | None


class PlannedUpload(NamedTuple):
    """A multipart upload that is to be aborted; its parts are in no listing. Time in ms since the epoch, UTC; size in
    bytes, of the parts that it had."""

    key: str
    upload_id: str
    initiated_ms: int
    size: int


Planned = PlannedObject | PlannedUpload


class PlanUse(StrEnum):
    """How far a plan was used."""

    APPLYING = "applying"
    """Begun; what is left may be removed by another run."""
    APPLIED = "applied"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """What a store remembers of a plan that was used. None is what the release that wrote it did not record."""

    use: PlanUse
    cluster_id: str
    """Empty, like the layout, where the plan was undone from its quarantine alone, which does not record it."""
    layout: str
    plan_digest: str | None
    foreign_topic_ids: frozenset[str] | None = None
    unknown_keys: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """How much a plan has, and how much its store has."""

    objects: int
    bytes: int
    """The bytes of objects and uploads."""
    uploads: int
    listed_objects: int
    """All of the store's, except tieredctl's own."""


class Seal(NamedTuple):
    """What the lines of a plan end with, both in hexadecimal digits: a digest, which shows damage, and a signature,
    which shows who wrote them; None where they had no key."""

    digest: str
    signature: str | None


class ReceiptStep(StrEnum):
    """What was done with an object. Each is written once the store confirmed it, except DELETING."""

    COPIED = "copied"
    """It has a copy in quarantine, and is about to be deleted."""
    DELETING = "deleting"
    """It has no copy, and is about to be deleted."""
    REMOVED = "removed"
    GONE = "gone"
    """It was no longer there: somebody else removed it."""
    FAILED = "failed"
    RESTORED = "restored"
    ABORTED = "aborted"
    """The upload was aborted."""


FINISHED_STEPS = frozenset({ReceiptStep.REMOVED, ReceiptStep.GONE, ReceiptStep.RESTORED, ReceiptStep.ABORTED})
"""Steps after which a removal has nothing more to do."""


class QuarantinedCopy(NamedTuple):
    """Where an object's copy is. Size in bytes; time in ms since the epoch, UTC."""

    key: str
    size: int
    last_modified_ms: int
    version: str


class OriginalTime(NamedTuple):
    """A copy as its store reported it, and since when that store has had the bytes. Size in bytes; times in ms since
    the epoch, UTC."""

    key: str
    size: int
    last_modified_ms: int
    version: str
    original_ms: int


class TimeNote(NamedTuple):
    """How old copies in a store are, by its URL."""

    store: str
    copied: tuple[OriginalTime, ...]


class CopiedBytes(NamedTuple):
    """A copy as its store reported it once it was found to hold the bytes of its original, and the checksums of these
    bytes as in `ObjectStore.checksums`. Size in bytes, time in ms since the epoch, UTC."""

    key: str
    size: int
    last_modified_ms: int
    version: str
    checksums: Mapping[str, str]


class BytesNote(NamedTuple):
    """The bytes that copies in a store hold, by its URL."""

    store: str
    copied: tuple[CopiedBytes, ...]


class Receipt(NamedTuple):
    """One thing that was done. Size in bytes, time in ms since the epoch, UTC.

    For an upload `upload_id` says which; where a step failed, `error` says why.
    """

    step: ReceiptStep
    key: str
    at_ms: int
    size: int = 0
    copy: QuarantinedCopy | None = None
    upload_id: str | None = None
    error: str | None = None
    """The error's code and sentence."""
    compared_by: str | None = None
    """How a copy was found to hold the same bytes: a checksum's name, or `bytes` where both were read."""
    modified_ms: int | None = None
    """When the object was modified before it was removed."""
    version: str | None = None
    """The store's name of the bytes that were removed. None in receipts of older releases, like the checksums."""
    checksums: Mapping[str, str] | None = None
    """The checksums of these bytes, as in `ObjectStore.checksums`; also those that were computed while they were
    compared."""


@dataclass(frozen=True, slots=True)
class ReceiptsHeader:
    """The plan that removal receipts belong to."""

    plan_id: str
    plan_digest: str
    cluster_id: str
    store: str
    layout: str
    mode: RemovalMode
