"""What a bucket is set to, in the words that all clouds have in common: the settings that decide what becomes of the
objects of tiered storage, whatever their keys are.

A store kind whose buckets have settings names what asks for them (`StoreKind.settings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.object_store import KeptVersion, StoredObject, Versioning


class Unanswered(NamedTuple):
    """A question that the store did not answer. What it asks about is unknown, which is never fine."""

    question: str
    """What was asked, such as `lifecycle`."""
    right: str
    """The right that the question needs, by the provider's name; several are separated by commas."""
    error: str
    """Why there is no answer, without anything that the server quoted."""
    is_unsupported: bool = False
    """The server lacks the API, or what was asked about is not there; otherwise the user lacks the right."""


class Transition(NamedTuple):
    """A move to another storage class, so many days after the object was made; 0 where a date decides."""

    storage_class: str
    days: float


@dataclass(frozen=True, slots=True)
class LifecycleRule:
    """An enabled rule of a bucket's lifecycle. Days count from when an object was made; None where the rule does not do
    this."""

    name: str
    prefixes: Sequence[str] = ("",)
    """Names in full; the rule is for objects whose names start with one of them."""
    narrowed_by: Sequence[str] = ()
    """Conditions besides the prefix: what they leave of tiered storage's objects is not known."""
    expires_days: float | None = None
    """When current objects are deleted; 0 where a date or a count decides."""
    noncurrent_days: float | None = None
    """When versions are deleted, so long after they became noncurrent."""
    abort_days: float | None = None
    """When multipart uploads are aborted, so long after they began."""
    transitions: Sequence[Transition] = ()


class DefaultRetention(NamedTuple):
    """What protects every new object from deletion for a time."""

    days: float
    mode: str
    """The provider's word for who may lift it."""
    keeps_the_key: bool
    """A deletion is refused. Otherwise it hides the object, whose bytes stay as a version."""


class ReplicationRule(NamedTuple):
    """A rule that copies objects to another bucket."""

    name: str
    prefix: str
    is_enabled: bool
    copies_deletions: bool
    """A deletion here removes the object there too."""
    is_narrowed: bool = False


class KeyState(NamedTuple):
    """The state of a key that objects are encrypted with, in the provider's word."""

    key: str
    state: str
    is_usable: bool
    deletion_date: str | None = None


class SampledObject(NamedTuple):
    """What protects one object, and what became of it elsewhere; None where that is not known, or not so."""

    key: str
    held_by: str | None = None
    """The hold or retention of its own that keeps it from being deleted, in words."""
    replication: str | None = None
    """The provider's word for how far its copying is; empty where it was never copied."""
    unreadable: str | None = None
    """Why its bytes cannot be read though it is there."""
    retained_until_ms: int | None = None
    """When what holds it ends by itself, where the bucket's default retention gives objects such an end."""


class ClassTerms(NamedTuple):
    """What a storage class costs that the usual one does not. A class without terms has none."""

    minimum_days: int = 0
    """Days that are paid, however soon an object is deleted."""
    minimum_bytes: int = 0
    """Bytes that are paid, however small an object is."""
    needs_restoring: bool = False
    """Its objects cannot be read before they were restored, which takes minutes to days."""


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """A bucket's settings. None stands for unknown, if one of `unanswered` says so, else for what this kind of bucket
    does not have."""

    versioning: Versioning = Versioning.UNKNOWN
    soft_delete_days: float | None = None
    """How long deleted objects are kept and paid for, apart from versions."""
    retention: DefaultRetention | None = None
    holds_new_objects: str | None = None
    """What holds every new object until somebody releases it, in words."""
    lifecycle: Sequence[LifecycleRule] | None = None
    uploads_end_themselves: bool = False
    """Unfinished uploads are dropped without a rule."""
    archive_tiers: Sequence[LifecycleRule] = ()
    """Rules that move objects to tiers that cannot be read without restoring. Their days count from when an object was
    last read."""
    archived_class: str = ""
    """The only class whose objects these rules move."""
    moves_by_use: str | None = None
    """The coldest class into which the store itself moves what nobody reads, at a fee for each object."""
    default_class: str | None = None
    replication: Sequence[ReplicationRule] | None = None
    keys: Sequence[KeyState] = ()
    public_by: str | None = None
    """What lets everybody read: a policy, an access control list."""
    is_public_prevented: bool | None = None
    has_object_acls: bool = False
    """Single objects may have permissions of their own, which no setting of the bucket shows."""
    requester_pays: bool = False
    sample: Sequence[SampledObject] = ()
    unanswered: Sequence[Unanswered] = ()


class KeptAmongFirst(NamedTuple):
    """What a bucket keeps of replaced and deleted objects, among the first entries of its listing of versions."""

    kept: Sequence[KeptVersion]
    is_cut: bool
    """Whether the listing has more entries."""


class BucketSettings(Protocol):
    """Asks for the settings of one bucket. Changes nothing."""

    @property
    def classes(self) -> Mapping[str, ClassTerms]:
        """The terms of storage classes, by the store's word for each."""
        ...

    @property
    def remedies(self) -> Mapping[FindingCode, str]:
        """The provider's own command that mends what a finding says, filled from its evidence by `str.format_map`."""
        ...

    @property
    def rights(self) -> Mapping[str, str]:
        """The right that each listing needs: `objects`, `versions`, `uploads`."""
        ...

    @property
    def reads_per_second(self) -> int | None:
        """How many reads of one prefix the store answers in a second before it throttles; None where it has no such
        limit or it is not known."""
        ...

    def kept_versions(self, most: int) -> KeptAmongFirst:
        """The versions below the store's prefix that a listing of objects does not show. Looks at `most` entries, those
        of current objects too, so that a large bucket is not listed to its end. Raises TieredctlError as stores do."""
        ...

    def ask(self, sample: Sequence[StoredObject]) -> BucketFacts:
        """The settings, and what holds of some objects. Raises TieredctlError where the store does not answer at all
        (`store-unreachable`, `store-throttled`, `bucket-missing`, `no-credentials`); a single question that it refuses
        or does not know is among `unanswered`."""
        ...
