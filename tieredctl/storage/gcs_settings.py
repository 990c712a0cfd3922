"""What a bucket of Google Cloud Storage is set to."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.bucket_settings import BucketFacts, ClassTerms, DefaultRetention, KeptAmongFirst, SampledObject
from tieredctl.ports.object_store import StoredObject, Versioning
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.bucket_store import concurrently
from tieredctl.storage.gcs import GcsStore
from tieredctl.storage.gcs_connection import ONCE, GcsConnection, GcsFailure, failing_as_tieredctl
from tieredctl.storage.gcs_lifecycle import lifecycle_rules
from tieredctl.storage.gcs_remedies import GCS_CLASSES, GCS_RIGHTS, gcs_remedies
from tieredctl.storage.settings_asked import SettingsAsked
from tieredctl.storage.versions_bound import kept_among_first

_EVERYBODY = {"allUsers", "allAuthenticatedUsers"}
_ALWAYS_REPORTED = "iamConfiguration"
"""What Google reports of every bucket. A server that does not, leaves out whatever else it does not have."""
_FIELDS = {
    "versioning": "versioning",
    "soft delete": "softDeletePolicy",
    "retention policy": "retentionPolicy",
    "lifecycle": "lifecycle",
    "autoclass": "autoclass",
    "requester pays": "billing",
    "encryption": "encryption",
    "public access": _ALWAYS_REPORTED,
}
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class GcsSettings:
    """A `BucketSettings` of Google Cloud Storage, whose bucket has all settings in one description."""

    address: BucketAddress
    connection: GcsConnection

    @property
    def classes(self) -> Mapping[str, ClassTerms]:
        return GCS_CLASSES

    @property
    def rights(self) -> Mapping[str, str]:
        return GCS_RIGHTS

    @property
    def remedies(self) -> Mapping[FindingCode, str]:
        return gcs_remedies(self.address)

    @property
    def reads_per_second(self) -> int | None:
        """Google's grows with use."""
        return None

    def kept_versions(self, most: int) -> KeptAmongFirst:
        return kept_among_first(GcsStore(self.address, self.connection).version_entries, most)

    def ask(self, sample: Sequence[StoredObject]) -> BucketFacts:
        asked = SettingsAsked(self.address.url)
        bucket = asked.at("bucket settings", GCS_RIGHTS["bucket"], self._bucket)
        sampled = concurrently(
            lambda one: asked.at("objects", GCS_RIGHTS["sample"], partial(self._sampled, one.key)), sample
        )
        objects = [one for one, _ in filter(None, sampled)]
        if bucket is None:
            return BucketFacts(sample=objects, uploads_end_themselves=True, unanswered=asked.unanswered)
        self._note_unreported(asked, bucket)
        self._note_untried_key(asked, bucket, {key for _, key in filter(None, sampled)})
        access = bucket.get(_ALWAYS_REPORTED, {})
        is_prevented = access.get("publicAccessPrevention") == "enforced"
        return BucketFacts(
            versioning=_versioning(bucket),
            soft_delete_days=int(bucket.get("softDeletePolicy", {}).get("retentionDurationSeconds", 0))
            / _SECONDS_A_DAY,
            retention=_retention(bucket.get("retentionPolicy", {})),
            holds_new_objects="event-based hold" if bucket.get("defaultEventBasedHold") else None,
            lifecycle=lifecycle_rules(bucket),
            uploads_end_themselves=True,
            moves_by_use=_coldest(bucket.get("autoclass", {})),
            default_class=bucket.get("storageClass"),
            public_by=None if is_prevented else asked.at("policy", GCS_RIGHTS["policy"], self._public_by),
            is_public_prevented=is_prevented if _ALWAYS_REPORTED in bucket else None,
            has_object_acls=_ALWAYS_REPORTED in bucket
            and not access.get("uniformBucketLevelAccess", {}).get("enabled"),
            requester_pays=bool(bucket.get("billing", {}).get("requesterPays")),
            sample=objects,
            unanswered=asked.unanswered,
        )

    def _bucket(self) -> Mapping[str, Any]:
        with failing_as_tieredctl(self.address.url):
            bucket = self.connection.client(self.address.url).get_bucket(self.address.bucket, **ONCE)
        properties: Mapping[str, Any] = bucket._properties
        return properties

    def _note_unreported(self, asked: SettingsAsked, bucket: Mapping[str, Any]) -> None:
        if _ALWAYS_REPORTED in bucket:
            return
        for question, name in _FIELDS.items():
            if name not in bucket:
                error = TieredctlError(ErrorCode.UNREADABLE, f"{self.address.url} does not report {name}.")
                asked.note(question, GCS_RIGHTS["bucket"], error)

    def _note_untried_key(self, asked: SettingsAsked, bucket: Mapping[str, Any], tried: Collection[str | None]) -> None:
        """The key of new objects is tried by reading one that has it."""
        key = bucket.get("encryption", {}).get("defaultKmsKeyName")
        if key is not None and key not in tried:
            message = f"No object that was asked about is encrypted with the bucket's key {key}."
            asked.note("encryption key", GCS_RIGHTS["sample"], TieredctlError(ErrorCode.UNREADABLE, message))

    def _public_by(self) -> str | None:
        with failing_as_tieredctl(self.address.url):
            bucket = self.connection.client(self.address.url).bucket(self.address.bucket)
            policy = bucket.get_iam_policy(requested_policy_version=3, **ONCE)
        return "policy" if any(_EVERYBODY & set(one.get("members", ())) for one in policy.bindings) else None

    def _sampled(self, key: str) -> tuple[SampledObject, str | None]:
        """What holds of an object, and the key that it is encrypted with."""
        with failing_as_tieredctl(self.address.url):
            bucket = self.connection.client(self.address.url).bucket(self.address.bucket)
            blob = bucket.get_blob(self.address.root + key, **ONCE)
        if blob is None:  # deleted since it was listed
            return SampledObject(key), None
        if not blob.kms_key_name:
            return SampledObject(key, _hold(blob._properties)), None
        encrypted_with = blob.kms_key_name.partition("/cryptoKeyVersions/")[0]
        return SampledObject(key, _hold(blob._properties), unreadable=self._unreadable(blob)), encrypted_with

    def _unreadable(self, blob: Any) -> str | None:
        """Why the first byte cannot be read of an object that can be described, for which the user's rights are the
        same: its key cannot be used."""
        try:
            with failing_as_tieredctl(self.address.url):
                blob.download_as_bytes(start=0, end=0, raw_download=True, **ONCE)
        except GcsFailure as failure:
            if failure.is_beyond_its_end or failure.is_missing:
                return None
            if failure.code in (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE):
                return f"its key {blob.kms_key_name} cannot be used (HTTP status {failure.status})"
            raise
        return None


def _versioning(bucket: Mapping[str, Any]) -> Versioning:
    if "versioning" not in bucket and _ALWAYS_REPORTED not in bucket:
        return Versioning.UNKNOWN
    return Versioning.ENABLED if bucket.get("versioning", {}).get("enabled") else Versioning.OFF


def _retention(policy: Mapping[str, Any]) -> DefaultRetention | None:
    seconds = int(policy.get("retentionPeriod", 0))
    mode = "locked" if policy.get("isLocked") else "not locked"
    return DefaultRetention(seconds / _SECONDS_A_DAY, mode, keeps_the_key=True) if seconds else None


def _coldest(autoclass: Mapping[str, Any]) -> str | None:
    return autoclass.get("terminalStorageClass", "NEARLINE") if autoclass.get("enabled") else None


def _hold(described: Mapping[str, Any]) -> str | None:
    for name, held_by in (("temporaryHold", "temporary hold"), ("eventBasedHold", "event-based hold")):
        if described.get(name):
            return held_by
    kept = described.get("retention", {})
    if kept.get("retainUntilTime"):
        return f"{kept.get('mode')} retention, ends {kept['retainUntilTime'][:10]}"
    return None
