"""Which segment owns an object of a remote store?"""

from __future__ import annotations

from enum import StrEnum


class ObjectStatus(StrEnum):
    """What is known of an object's owner. Only an `orphan` may ever be removed."""

    OWNED = "owned"
    """A segment that a broker may read has it."""
    IN_PROGRESS = "in-progress"
    """Too young, or of a copy that may still end."""
    ORPHAN = "orphan"
    """Proven to have no owner."""
    UNKNOWN = "unknown"
    """No layout explains its key, or what is known of its segment contradicts the key or is incomplete; or it may be
    the only copy of its records."""
    FOREIGN = "foreign"
    """An object of a topic that neither the metadata nor the cluster ever knew."""


class OrphanCause(StrEnum):
    """How an object lost its owner."""

    COPY_NEVER_FINISHED = "copy-never-finished"
    DELETE_NEVER_FINISHED = "delete-never-finished"
    DELETED_BUT_PRESENT = "deleted-but-present"
    NO_METADATA = "no-metadata"
    TOPIC_GONE = "topic-gone"
    PARTITION_GONE = "partition-gone"


class UnknownReason(StrEnum):
    """Why an object that metadata never named is unknown, and may be the only copy of its records."""

    OLDER_THAN_METADATA = "older-than-metadata"
    """The store had it before the metadata of its partition begins."""
    NOT_COVERED = "not-covered"
    """Metadata does not prove that its records are elsewhere."""


class InProgressReason(StrEnum):
    """Why an object is in progress, where its segment's events are not all that says so."""

    YOUNGER_THAN_MIN_AGE = "younger-than-min-age"
    """It may still get an owner: it is younger than the age floor of who asks."""


class DisklessCause(StrEnum):
    """How an object of diskless topics lost its owner."""

    NO_METADATA = "no-metadata"
    """No file of the control plane is this object: a broker died between upload and commit, or the commit failed."""
    DELETE_NEVER_FINISHED = "delete-never-finished"
    """Its file is marked for deletion, and brokers have not deleted it."""
    BATCHES_GONE = "batches-gone"
    """Its file is not marked for deletion, but none of its batches is left: no broker will ever delete it."""
