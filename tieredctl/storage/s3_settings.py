"""What a bucket of S3 is set to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tieredctl.errors import ErrorCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.bucket_settings import (
    BucketFacts,
    ClassTerms,
    DefaultRetention,
    KeptAmongFirst,
    KeyState,
    ReplicationRule,
    SampledObject,
)
from tieredctl.ports.object_store import StoredObject, Versioning
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.bucket_store import concurrently
from tieredctl.storage.s3 import S3Store
from tieredctl.storage.s3_connection import Answer, Operation, S3Connection, S3Failure, following
from tieredctl.storage.s3_lifecycle import archive_rules, lifecycle_rules
from tieredctl.storage.s3_listing_page import ANSWERED_WITH
from tieredctl.storage.s3_remedies import S3_CLASSES, S3_RIGHTS, s3_remedies
from tieredctl.storage.settings_asked import SettingsAsked
from tieredctl.storage.versions_bound import kept_among_first

_NOT_SET = {
    "NoSuchConfiguration",
    "NoSuchLifecycleConfiguration",
    "NoSuchObjectLockConfiguration",
    "NoSuchBucketPolicy",
    "NoSuchPublicAccessBlockConfiguration",
    "ObjectLockConfigurationNotFoundError",
    "ReplicationConfigurationNotFoundError",
    "ServerSideEncryptionConfigurationNotFoundError",
}
"""What S3 answers where a bucket or an object has no such configuration."""
_DELETED = {"NoSuchKey", "404"}
"""What S3 answers about an object that was deleted since it was listed."""
_EVERYBODY = (
    "http://acs.amazonaws.com/groups/global/AllUsers",
    "http://acs.amazonaws.com/groups/global/AuthenticatedUsers",
)
_VERSIONING = {"Enabled": Versioning.ENABLED, "Suspended": Versioning.SUSPENDED}
_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_DAYS_A_YEAR = 365
_MOST_TIERING_PAGES = 100
"""A bucket has up to 1,000 configurations of S3 Intelligent-Tiering, and a page up to 100."""
_READS_A_PREFIX = 5_500
"""GET and HEAD requests a second for a prefix, by Amazon S3's performance guidelines."""


@dataclass(frozen=True, slots=True)
class S3Settings:
    """A `BucketSettings` of S3, or of a server that speaks its language."""

    address: BucketAddress
    connection: S3Connection

    @property
    def classes(self) -> Mapping[str, ClassTerms]:
        return S3_CLASSES

    @property
    def rights(self) -> Mapping[str, str]:
        return S3_RIGHTS

    @property
    def remedies(self) -> Mapping[FindingCode, str]:
        return s3_remedies(self.address, self.connection)

    @property
    def reads_per_second(self) -> int | None:
        return _READS_A_PREFIX if self.connection.is_aws else None

    def kept_versions(self, most: int) -> KeptAmongFirst:
        return kept_among_first(S3Store(self.address, self.connection).version_entries, most)

    def ask(self, sample: Sequence[StoredObject]) -> BucketFacts:
        asked = SettingsAsked(self.address.url)
        about = partial(self._about, asked)
        versioning = about("versioning", "get_bucket_versioning", "s3:GetBucketVersioning")
        lock = about("object lock", "get_object_lock_configuration", "s3:GetBucketObjectLockConfiguration")
        rules = about("lifecycle", "get_bucket_lifecycle_configuration", "s3:GetLifecycleConfiguration")
        tiering = asked.at("archive tiers", "s3:GetIntelligentTieringConfiguration", self._tiering)
        replication = about("replication", "get_bucket_replication", "s3:GetReplicationConfiguration")
        encryption = about("encryption", "get_bucket_encryption", "s3:GetEncryptionConfiguration")
        payer = about("requester pays", "get_bucket_request_payment", "s3:GetBucketRequestPayment")
        public_by, is_prevented = self._public(about)
        heads = self._each(asked, "objects", S3_RIGHTS["sample"], sample, self._head)
        is_locked = _locked(lock)
        held = self._each(asked, "holds", S3_RIGHTS["holds"], sample, self._held) if is_locked else {}
        return BucketFacts(
            versioning=_versioning(versioning),
            retention=_retention(lock),
            lifecycle=None if rules is None else lifecycle_rules(rules),
            archive_tiers=archive_rules(tiering or ()),
            archived_class="INTELLIGENT_TIERING",
            replication=None if replication is None else _replication(replication),
            keys=list(self._keys(asked, {*_default_keys(encryption), *_keys_of(heads.values())})),
            public_by=public_by,
            is_public_prevented=is_prevented,
            requester_pays=(payer or {}).get("Payer") == "Requester",
            sample=[
                held.get(one.key, SampledObject(one.key))._replace(
                    replication=heads[one.key].get("ReplicationStatus", "")
                )
                for one in sample
                if one.key in heads
            ],
            unanswered=asked.unanswered,
        )

    def _about(self, asked: SettingsAsked, question: str, operation: Operation, right: str) -> Answer | None:
        return asked.at(question, right, partial(self._setting, operation))

    def _setting(self, operation: Operation, **parameters: str) -> Answer:
        """A configuration; an empty one where there is none. Raises S3Failure, `unreadable` also for a server that
        does not know the question, and answers another."""
        try:
            answer = self.connection.request(operation, self.address.url, Bucket=self.address.bucket, **parameters)
        except S3Failure as failure:
            if failure.reason in _NOT_SET:
                return {}
            raise
        if ANSWERED_WITH in answer:
            message = f"{self.address.url} does not know this question: it answers with a {answer[ANSWERED_WITH]}."
            raise S3Failure(ErrorCode.UNREADABLE, message)
        return answer

    def _tiering(self) -> list[Mapping[str, Any]]:
        """All configurations of S3 Intelligent-Tiering. Raises S3Failure `unreadable` where they do not end."""
        listed: list[Mapping[str, Any]] = []
        place: dict[str, str] = {}
        for _ in range(_MOST_TIERING_PAGES):
            answer = self._setting("list_bucket_intelligent_tiering_configurations", **place)
            listed += answer.get("IntelligentTieringConfigurationList", ())
            next_page = following(answer, "NextContinuationToken") if answer else None
            if next_page is None:
                return listed
            place = {"ContinuationToken": next_page[0]}
        raise S3Failure(ErrorCode.UNREADABLE, f"{self.address.url} lists archive tiers without end.")

    def _public(self, about: Callable[..., Answer | None]) -> tuple[str | None, bool | None]:
        """What lets everybody read, and whether that is prevented; None where it is not known."""
        block = about("public access block", "get_public_access_block", "s3:GetBucketPublicAccessBlock")
        status = about("policy", "get_bucket_policy_status", "s3:GetBucketPolicyStatus")
        acl = about("access control list", "get_bucket_acl", "s3:GetBucketAcl")
        blocks = (block or {}).get("PublicAccessBlockConfiguration", {})
        by_policy = (status or {}).get("PolicyStatus", {}).get("IsPublic") and not blocks.get("RestrictPublicBuckets")
        grants = (acl or {}).get("Grants", ())
        by_acl = not blocks.get("IgnorePublicAcls") and any(
            grant.get("Grantee", {}).get("URI") in _EVERYBODY for grant in grants
        )
        ways = [way for way, is_open in (("policy", by_policy), ("access control list", by_acl)) if is_open]
        is_prevented = None if block is None else all(blocks.get(name) for name in _BLOCKS)
        return " and ".join(ways) or None, is_prevented

    def _each(
        self,
        asked: SettingsAsked,
        question: str,
        right: str,
        sample: Sequence[StoredObject],
        ask: Callable[[str], Any],
    ) -> dict[str, Any]:
        """By key, what holds of sampled objects; what one of them does not answer is noted."""
        answers = concurrently(lambda one: asked.at(question, right, partial(ask, one.key)), sample)
        return {one.key: answer for one, answer in zip(sample, answers, strict=True) if answer is not None}

    def _head(self, key: str) -> Answer:
        try:
            return self._setting("head_object", Key=self.address.root + key)
        except S3Failure as failure:
            if failure.reason in _DELETED:
                return {"ReplicationStatus": "DELETED"}
            raise

    def _held(self, key: str) -> SampledObject:
        try:
            return self._hold(key)
        except S3Failure as failure:
            if failure.reason in _DELETED:
                return SampledObject(key)
            raise

    def _hold(self, key: str) -> SampledObject:
        name = {"Key": self.address.root + key}
        hold = self._setting("get_object_legal_hold", **name).get("LegalHold", {})
        if hold.get("Status") == "ON":
            return SampledObject(key, "legal hold")
        kept = self._setting("get_object_retention", **name).get("Retention", {})
        ends = kept.get("RetainUntilDate")
        if ends is None:
            return SampledObject(key)
        held_by = f"{kept.get('Mode')} until {ends:%Y-%m-%d}"
        return SampledObject(key, held_by, retained_until_ms=int(ends.timestamp() * 1_000))

    def _keys(self, asked: SettingsAsked, names: Iterable[str]) -> Iterator[KeyState]:
        for name in sorted(names):
            answer = asked.at("encryption key", "kms:DescribeKey", partial(self._describe_key, name))
            if answer is not None:
                described = answer["KeyMetadata"]
                ends = described.get("DeletionDate")
                yield KeyState(
                    *(name, described["KeyState"], described["KeyState"] in ("Enabled", "Updating")),
                    None if ends is None else f"{ends:%Y-%m-%d}",
                )

    def _describe_key(self, name: str) -> Answer:
        if not self.connection.has_kms:
            raise S3Failure(ErrorCode.UNREADABLE, f"No server of keys is known for {self.address.url}.")
        try:
            return self.connection.describe_key(name, self.address.url)
        except S3Failure as failure:
            if failure.reason != "NotFoundException":
                raise
            message = f"KMS does not know the key {name}: it is deleted, or in a region that was not asked."
            raise S3Failure(ErrorCode.UNREADABLE, message, reason=failure.reason) from None


def _locked(answer: Answer | None) -> bool:
    enabled = (answer or {}).get("ObjectLockConfiguration", {}).get("ObjectLockEnabled")
    return bool(enabled == "Enabled")


def _versioning(answer: Answer | None) -> Versioning:
    return Versioning.UNKNOWN if answer is None else _VERSIONING.get(answer.get("Status", ""), Versioning.OFF)


def _retention(answer: Answer | None) -> DefaultRetention | None:
    rule = (answer or {}).get("ObjectLockConfiguration", {}).get("Rule", {}).get("DefaultRetention")
    if not rule:
        return None
    days = rule.get("Days") or rule.get("Years", 0) * _DAYS_A_YEAR
    return DefaultRetention(days, rule.get("Mode", ""), keeps_the_key=False)


def _replication(answer: Answer) -> list[ReplicationRule]:
    return [_replication_rule(rule) for rule in answer.get("ReplicationConfiguration", {}).get("Rules", ())]


def _replication_rule(rule: Mapping[str, Any]) -> ReplicationRule:
    chosen = rule.get("Filter", {})
    both = chosen.get("And", {})
    prefix = chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or ""
    # Rules without Filter are of the older form, which copies delete markers always.
    copies = "Filter" not in rule or rule.get("DeleteMarkerReplication", {}).get("Status") == "Enabled"
    is_narrowed = "Tag" in chosen or "Tags" in both
    return ReplicationRule(rule.get("ID", ""), prefix, rule.get("Status") == "Enabled", copies, is_narrowed)


def _default_keys(answer: Answer | None) -> Iterator[str]:
    for rule in (answer or {}).get("ServerSideEncryptionConfiguration", {}).get("Rules", ()):
        key = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
        if key:
            yield key


def _keys_of(heads: Iterable[Answer]) -> Iterator[str]:
    return (head["SSEKMSKeyId"] for head in heads if head.get("SSEKMSKeyId"))
