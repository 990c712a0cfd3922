"""`doctor store`: each setting of a bucket that harms tiered storage is one finding, and a bucket without any has none.

What is said of servers is seen in tests/doctor/test_buckets_on_servers.py; here a server of the tests answers with the
bodies that Amazon and Google document, for no server at hand has all of these settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from tests.rigs.settings_server import (
    BUCKET,
    Answer,
    SettingsServer,
    listing,
    missing,
    parts,
    settings_server,
    uploads,
    versions,
)
from tieredctl.errors import ExitCode
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.doctor.bucket import diagnose_bucket
from tieredctl.ops.doctor.bucket_contents import BucketContents
from tieredctl.ops.doctor.bucket_reading_rules import reading_findings
from tieredctl.ops.doctor.bucket_view import BucketView, TieredTopics
from tieredctl.ports.bucket_settings import BucketFacts
from tieredctl.storage.registry import open_settings, open_store

NOW_MS = int(datetime(2025, 12, 1, tzinfo=UTC).timestamp() * 1_000)
TIB = 1 << 40
PRICE = StoragePrice(0.02, "USD", class_prices={"STANDARD_IA": 0.01})
TOPICS = TieredTopics(3, 30, "orders", 20.0, True)
FOREVER = TOPICS._replace(retention_days=float("inf"))
KEY = "prod/orders-0/0.log"
OBJECT = (KEY, 1 << 20, "STANDARD")
TAGGED = "<Tag><Key>k</Key><Value>v</Value></Tag>"
TIERED = listing((KEY, 1 << 20, "INTELLIGENT_TIERING"))
KMS_KEY = "arn:aws:kms:eu-north-1:1:key/k"


def lifecycle(*rules: str) -> str:
    always = (
        "<AbortIncompleteMultipartUpload><DaysAfterInitiation>3</DaysAfterInitiation></AbortIncompleteMultipartUpload>"
    )
    return f"<LifecycleConfiguration>{rule(always)}{''.join(rules)}</LifecycleConfiguration>"


def rule(what: str, prefix: str = "", status: str = "Enabled", chosen: str = "") -> str:
    where = chosen or f"<Filter><Prefix>{prefix}</Prefix></Filter>"
    return f"<Rule><ID>r</ID><Status>{status}</Status>{where}{what}</Rule>"


def expiry(days: int) -> str:
    return f"<Expiration><Days>{days}</Days></Expiration>"


def moved(storage_class: str, days: int) -> str:
    return f"<Transition><Days>{days}</Days><StorageClass>{storage_class}</StorageClass></Transition>"


NONCURRENT = "<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration>"
KEEPING_ONE = NONCURRENT.replace("<NoncurrentD", "<NewerNoncurrentVersions>1</NewerNoncurrentVersions><NoncurrentD")
VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
LOCKED = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>{}</ObjectLockConfiguration>"
DEFAULT_RETENTION = "<Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>90</Days></DefaultRetention></Rule>"
RETAINED = "<Retention><Mode>{}</Mode><RetainUntilDate>2026-01-01T00:00:00Z</RetainUntilDate></Retention>"
BLOCKS = "".join(
    f"<{name}>{{}}</{name}>"
    for name in ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
)
OPEN = f"<PublicAccessBlockConfiguration>{BLOCKS.replace('{}', 'false')}</PublicAccessBlockConfiguration>"
OWNER = "<Owner><ID>o</ID></Owner>"
CLEAN: Mapping[str, Answer] = {
    "list-type": listing(OBJECT),
    "versioning": "<VersioningConfiguration/>",
    "object-lock": missing("ObjectLockConfigurationNotFoundError"),
    "legal-hold": missing("NoSuchObjectLockConfiguration"),
    "retention": missing("NoSuchObjectLockConfiguration"),
    "lifecycle": lifecycle(),
    "intelligent-tiering": "<ListBucketIntelligentTieringConfigurationsOutput><IsTruncated>false</IsTruncated>"
    "</ListBucketIntelligentTieringConfigurationsOutput>",
    "replication": missing("ReplicationConfigurationNotFoundError"),
    "encryption": missing("ServerSideEncryptionConfigurationNotFoundError"),
    "requestPayment": "<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>",
    "publicAccessBlock": OPEN.replace("false", "true"),
    "policyStatus": missing("NoSuchBucketPolicy"),
    "acl": f"<AccessControlPolicy>{OWNER}<AccessControlList/></AccessControlPolicy>",
    "head": {"Content-Length": "1048576"},
    "uploadId": parts(TIB),
    "key": {"KeyMetadata": {"KeyId": "k", "KeyState": "Enabled"}},
}
ENCRYPTED = (
    "<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm>"
    f"<KMSMasterKeyID>{KMS_KEY}</KMSMasterKeyID></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>"
)
COPIES_DELETIONS = "<DeleteMarkerReplication><Status>{}</Status></DeleteMarkerReplication>"


def replication(deletions: str = "Enabled", status: str = "Enabled", prefix: str = "") -> str:
    copying = rule(COPIES_DELETIONS.format(deletions), prefix, status)
    return f"<ReplicationConfiguration>{copying}</ReplicationConfiguration>"


def tiering(*configurations: str, truncated: str = "false") -> str:
    return (
        f"<ListBucketIntelligentTieringConfigurationsOutput><IsTruncated>{truncated}</IsTruncated>"
        f"<NextContinuationToken>t</NextContinuationToken>{''.join(configurations)}"
        "</ListBucketIntelligentTieringConfigurationsOutput>"
    )


def archiving(tier: str = "ARCHIVE_ACCESS", days: int = 15, chosen: str = "") -> str:
    return (
        f"<IntelligentTieringConfiguration><Id>after-{days}</Id><Filter>{chosen}</Filter><Status>Enabled</Status>"
        f"<Tiering><Days>{days}</Days><AccessTier>{tier}</AccessTier></Tiering></IntelligentTieringConfiguration>"
    )


class Setting(NamedTuple):
    """A setting, the one finding that it is, and some of its evidence."""

    answers: Mapping[str, Answer]
    code: str
    evidence: Mapping[str, object] = {}
    severity: Severity | None = None
    topics: TieredTopics | None = TOPICS


S3: Mapping[str, Setting] = {
    "versioning without a rule for versions": Setting(
        {"versioning": VERSIONED, "versions": versions(("prod/a", TIB), ("prod/b", TIB))},
        "store-versions-kept",
        {"noncurrentVersions": 2, "noncurrentBytes": 2 * TIB, "monthlyCost": 40.96},
    ),
    "versions left from before versioning was suspended": Setting(
        {"versioning": VERSIONED.replace("Enabled", "Suspended"), "versions": versions(("prod/a", TIB))},
        "store-versions-kept",
        {"versioning": "suspended"},
    ),
    "versioning with a rule for another prefix's versions": Setting(
        {"versioning": VERSIONED, "lifecycle": lifecycle(rule(NONCURRENT, "test/"))}, "store-versions-kept"
    ),
    "versioning with a rule that keeps the newest noncurrent version": Setting(
        {"versioning": VERSIONED, "lifecycle": lifecycle(rule(KEEPING_ONE))},
        "store-versions-kept",
    ),
    "default retention": Setting(
        {
            "versioning": VERSIONED,
            "lifecycle": lifecycle(rule(NONCURRENT)),
            "object-lock": LOCKED.format(DEFAULT_RETENTION),
            "retention": RETAINED.format("COMPLIANCE"),
        },
        "store-retention-default",
        {"days": 90, "mode": "COMPLIANCE", "retentionDays": 20.0},
    ),
    "a legal hold": Setting(
        {
            "versioning": VERSIONED,
            "lifecycle": lifecycle(rule(NONCURRENT)),
            "object-lock": LOCKED.format(""),
            "legal-hold": "<LegalHold><Status>ON</Status></LegalHold>",
        },
        "store-objects-held",
        {"hold": "legal hold"},
    ),
    "retention of an object's own": Setting(
        {
            "versioning": VERSIONED,
            "lifecycle": lifecycle(rule(NONCURRENT)),
            "object-lock": LOCKED.format(""),
            "retention": RETAINED.format("GOVERNANCE"),
        },
        "store-objects-held",
        {"hold": "GOVERNANCE until 2026-01-01"},
    ),
    "expiry before the topics' retention": Setting(
        {"lifecycle": lifecycle(rule(expiry(7)))},
        "store-lifecycle-expires",
        {"days": 7, "topic": "orders", "retentionDays": 20.0},
        Severity.ERROR,
    ),
    "expiry by an older rule without a filter": Setting(
        {"lifecycle": lifecycle(rule(expiry(20), chosen="<Prefix>prod/orders-0/</Prefix>"))},
        "store-lifecycle-expires",
        {"prefixes": ["prod/orders-0/"]},
    ),
    "expiry of what a topic retains forever": Setting(
        {"lifecycle": lifecycle(rule(expiry(3650)))},
        "store-lifecycle-expires",
        {"retentionDays": "unlimited"},
        Severity.ERROR,
        FOREVER,
    ),
    "expiry at a date": Setting(
        {"lifecycle": lifecycle(rule("<Expiration><Date>2027-01-01T00:00:00Z</Date></Expiration>"))},
        "store-lifecycle-expires",
    ),
    "expiry of what has a tag": Setting(
        {"lifecycle": lifecycle(rule(expiry(7), chosen=f"<Filter>{TAGGED}</Filter>"))},
        "store-lifecycle-expires",
        {"narrowedBy": ["Tag"]},
        Severity.WARNING,
    ),
    "expiry where no cluster is known": Setting(
        {"lifecycle": lifecycle(rule(expiry(7)))}, "store-lifecycle-expires", {}, Severity.WARNING, None
    ),
    "transition to GLACIER": Setting(
        {"lifecycle": lifecycle(rule(moved("GLACIER", 10)))}, "store-lifecycle-archives", {"storageClass": "GLACIER"}
    ),
    "transition to DEEP_ARCHIVE where no cluster is known": Setting(
        {"lifecycle": lifecycle(rule(moved("DEEP_ARCHIVE", 10)))},
        "store-lifecycle-archives",
        {},
        Severity.WARNING,
        None,
    ),
    "archive tiers": Setting(
        {"list-type": TIERED, "intelligent-tiering": tiering(archiving("DEEP_ARCHIVE_ACCESS"))},
        "store-archive-tiers",
        {"tier": "DEEP_ARCHIVE_ACCESS", "days": 15, "objects": 1},
        Severity.ERROR,
    ),
    "archive tiers of two configurations": Setting(
        {"list-type": TIERED, "intelligent-tiering": tiering(archiving(days=15), archiving(days=700))},
        "store-archive-tiers",
        {"configuration": "after-15"},
    ),
    "archive tiers of what has a tag": Setting(
        {"list-type": TIERED, "intelligent-tiering": tiering(archiving(chosen=TAGGED))},
        "store-archive-tiers",
        {"narrowedBy": ["Tag"]},
        Severity.WARNING,
    ),
    "archive tiers where no object is in the class": Setting(
        {"intelligent-tiering": tiering(archiving())}, "store-archive-tiers", {"objects": 0}, Severity.WARNING
    ),
    "archived objects": Setting(
        {"list-type": listing(OBJECT, ("prod/x", 5, "GLACIER"))}, "store-objects-archived", {"objects": 1, "bytes": 5}
    ),
    "minimum days that outlast retention": Setting(
        {"list-type": listing((KEY, TIB, "STANDARD")), "lifecycle": lifecycle(rule(moved("STANDARD_IA", 5)))},
        "store-class-minimum-days",
        {"minimumDays": 30, "costOfUnusedDays": 5.12},
    ),
    "small objects of a class with a smallest size": Setting(
        {"list-type": listing(("prod/i", 1 << 10, "STANDARD_IA"), (KEY, 1 << 20, "STANDARD_IA"))},
        "store-class-small-objects",
        {"objects": 1, "bytes": 1 << 10, "paidBytes": 128 << 10, "monthlyCost": 0.0},
    ),
    "no rule that aborts uploads": Setting(
        {
            "lifecycle": missing("NoSuchLifecycleConfiguration"),
            "uploads": uploads("prod/u", "2025-11-30T12:00:00Z"),
        },
        "store-uploads-never-aborted",
        {"uploads": 1, "bytes": TIB, "monthlyCost": 20.48},
    ),
    "a disabled rule that aborts uploads": Setting(
        {"lifecycle": lifecycle().replace("Enabled", "Disabled")}, "store-uploads-never-aborted", {"uploads": 0}
    ),
    "uploads that the rule did not abort": Setting(
        {"uploads": uploads("prod/u", "2025-11-01T00:00:00Z")},
        "store-uploads-incomplete",
        {"uploads": 1, "bytes": TIB, "oldestDays": 30.0},
    ),
    "replication without delete markers": Setting(
        {
            "replication": replication("Disabled"),
            "head": {"Content-Length": "9", "x-amz-replication-status": "COMPLETED"},
        },
        "store-replication-keeps-deleted",
    ),
    "replication of another prefix": Setting(
        {"replication": replication(prefix="test/")}, "store-replication-incomplete", {"rules": ["r"]}
    ),
    "disabled replication": Setting({"replication": replication(status="Disabled")}, "store-replication-incomplete"),
    "objects from before replication": Setting(
        {"replication": replication()}, "store-replication-incomplete", {"objects": 1, "key": "orders-0/0.log"}
    ),
    "a disabled key": Setting(
        {"encryption": ENCRYPTED, "key": {"KeyMetadata": {"KeyId": "k", "KeyState": "Disabled"}}},
        "store-key-unusable",
        {"key": KMS_KEY, "state": "Disabled"},
    ),
    "an object's key that is being deleted": Setting(
        {
            "head": {
                "Content-Length": "9",
                "x-amz-server-side-encryption": "aws:kms",
                "x-amz-server-side-encryption-aws-kms-key-id": KMS_KEY,
            },
            "key": {"KeyMetadata": {"KeyId": "k", "KeyState": "PendingDeletion", "DeletionDate": 1_767_225_600}},
        },
        "store-key-unusable",
        {"state": "PendingDeletion", "deletionDate": "2026-01-01"},
    ),
    "a public policy": Setting(
        {"publicAccessBlock": OPEN, "policyStatus": "<PolicyStatus><IsPublic>true</IsPublic></PolicyStatus>"},
        "store-public",
        {"by": "policy"},
    ),
    "a public access control list": Setting(
        {
            "publicAccessBlock": OPEN,
            "acl": f"<AccessControlPolicy>{OWNER}<AccessControlList><Grant><Grantee "
            'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="Group">'
            "<URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>READ</Permission></Grant>"
            "</AccessControlList></AccessControlPolicy>",
        },
        "store-public",
        {"by": "access control list"},
    ),
    "no block of public access": Setting(
        {"publicAccessBlock": missing("NoSuchPublicAccessBlockConfiguration")}, "store-public-not-prevented"
    ),
    "requester pays": Setting(
        {"requestPayment": "<RequestPaymentConfiguration><Payer>Requester</Payer></RequestPaymentConfiguration>"},
        "store-requester-pays",
    ),
}

HARMLESS: Mapping[str, Mapping[str, Answer]] = {
    "a bucket without trouble": {},
    "versions that a rule deletes": {"versioning": VERSIONED, "lifecycle": lifecycle(rule(NONCURRENT, "prod/"))},
    "expiry after the topics' retention": {"lifecycle": lifecycle(rule(expiry(21)))},
    "expiry of another prefix": {"lifecycle": lifecycle(rule(expiry(1), "test/"))},
    "expiry of the quarantine": {"lifecycle": lifecycle(rule(expiry(14), "prod/.tieredctl/quarantine/"))},
    "a disabled rule": {"lifecycle": lifecycle(rule(expiry(1), status="Disabled"))},
    "expiry of delete markers": {
        "lifecycle": lifecycle(
            rule("<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>")
        )
    },
    "transition after the topics' retention": {"lifecycle": lifecycle(rule(moved("GLACIER", 30)))},
    "archive tiers after the topics' retention": {
        "list-type": TIERED,
        "intelligent-tiering": tiering(archiving(days=90)),
    },
    "archive tiers of another prefix": {
        "list-type": TIERED,
        "intelligent-tiering": tiering(archiving(chosen="<Prefix>test/</Prefix>")),
    },
    "an upload under way": {"uploads": uploads("prod/u", "2025-11-30T12:00:00Z")},
    "a usable key": {"encryption": ENCRYPTED},
    "replication of all": {
        "replication": replication(),
        "head": {"Content-Length": "9", "x-amz-replication-status": "COMPLETED"},
    },
    "a public policy that is blocked": {"policyStatus": "<PolicyStatus><IsPublic>true</IsPublic></PolicyStatus>"},
}
QUESTIONS = {"versioning", "object-lock", "lifecycle", "intelligent-tiering", "replication", "encryption"} | {
    *("requestPayment", "publicAccessBlock", "policyStatus", "acl", "head", "list-type")
}
"""What is asked of every bucket of S3."""


@pytest.fixture(scope="module")
def server(cloud_environment: None) -> Iterator[SettingsServer]:
    with settings_server() as running:
        yield running


@pytest.fixture(autouse=True)
def kms(server: SettingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where keys are asked for, as AWS' own tools take it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.endpoint)


def diagnosed(server: SettingsServer, scheme: str = "s3", topics: TieredTopics | None = TOPICS) -> list[Finding]:
    url, options = f"{scheme}://{BUCKET}/prod", {"endpoint": server.endpoint}
    options |= {"addressing-style": "path"} if scheme == "s3" else {}
    found = diagnose_bucket(open_store(url, options), open_settings(url, options), NOW_MS, price=PRICE, topics=topics)
    return found.findings


def demand_one(name: str, setting: Setting, findings: Sequence[Finding]) -> None:
    assert [one.code.value for one in findings] == [setting.code], name
    (finding,) = findings
    assert setting.evidence.items() <= dict(finding.evidence).items(), name
    assert setting.severity in (None, finding.severity), name
    assert "{" not in finding.remedy.replace("{Tier", ""), name
    assert BUCKET in finding.remedy or "kms" in finding.remedy or "tieredctl remote" in finding.remedy, name


def test_each_setting_is_one_finding_and_no_other(server: SettingsServer) -> None:
    assert len(S3) >= 30
    for name, setting in S3.items():
        server.answer({**CLEAN, **setting.answers})

        demand_one(name, setting, diagnosed(server, topics=setting.topics))


def test_what_does_no_harm_is_no_finding(server: SettingsServer) -> None:
    for name, answers in HARMLESS.items():
        server.answer({**CLEAN, **answers})

        assert diagnosed(server) == [], name


def test_what_may_not_be_asked_or_is_not_supported_is_unknown(server: SettingsServer) -> None:
    for status, is_right_named in ((403, True), (501, False)):
        for question in QUESTIONS:
            server.answer({**CLEAN, question: status})

            findings = diagnosed(server)

            assert {one.code.value for one in findings} == {"store-setting-unknown"}, (question, status)
            assert exit_code_of(findings) is ExitCode.INCOMPLETE
            assert all((str(one.evidence["right"]) in one.remedy) is is_right_named for one in findings), question


def test_a_key_that_is_not_known_where_it_was_asked_for_is_unknown(server: SettingsServer) -> None:
    server.answer({**CLEAN, "encryption": ENCRYPTED, "key": 400})

    (finding,) = diagnosed(server)

    assert finding.evidence["question"] == "encryption key"
    assert KMS_KEY in str(finding.evidence["error"])
    assert "support" not in finding.message
    assert exit_code_of([finding]) is ExitCode.INCOMPLETE


def test_an_object_that_is_deleted_meanwhile_is_not_held(server: SettingsServer) -> None:
    rules = lifecycle(rule(NONCURRENT))
    server.answer(
        {**CLEAN, "versioning": VERSIONED, "lifecycle": rules, "object-lock": LOCKED.format(""), "legal-hold": 404}
    )

    assert diagnosed(server) == []


def test_retention_beyond_the_default_is_of_an_objects_own(server: SettingsServer) -> None:
    retained = RETAINED.format("COMPLIANCE").replace("2026", "2040")
    rules = lifecycle(rule(NONCURRENT))
    locked = {"object-lock": LOCKED.format(DEFAULT_RETENTION), "retention": retained}
    server.answer({**CLEAN, "versioning": VERSIONED, "lifecycle": rules, **locked})

    found = {one.code.value: one.evidence for one in diagnosed(server)}

    assert set(found) == {"store-retention-default", "store-objects-held"}
    assert found["store-objects-held"]["hold"] == "COMPLIANCE until 2040-01-01"


def test_a_public_policy_is_a_warning_where_the_block_of_public_access_is_unknown(server: SettingsServer) -> None:
    is_public = "<PolicyStatus><IsPublic>true</IsPublic></PolicyStatus>"
    server.answer({**CLEAN, "publicAccessBlock": 403, "policyStatus": is_public})

    found = {one.code.value: one.severity for one in diagnosed(server)}

    assert found == {"store-setting-unknown": Severity.WARNING, "store-public": Severity.WARNING}


def test_versions_and_keys_that_may_not_be_asked_for_are_unknown(server: SettingsServer) -> None:
    locked = {"versioning": VERSIONED, "object-lock": LOCKED.format(""), "lifecycle": lifecycle(rule(NONCURRENT))}
    cases: dict[str, Mapping[str, Answer]] = {
        "versions": {"versioning": VERSIONED, "lifecycle": lifecycle(rule(NONCURRENT)), "versions": 403},
        "holds": {**locked, "legal-hold": 403},
        "encryption key": {"encryption": ENCRYPTED, "key": 403},
        "uploads": {"uploads": 403},
    }
    for question, answers in cases.items():
        server.answer({**CLEAN, **answers})

        assert [one.evidence["question"] for one in diagnosed(server)] == [question]


def test_uploads_whose_parts_are_not_listed_are_of_unknown_size(server: SettingsServer) -> None:
    server.answer({**CLEAN, "uploads": uploads("prod/u", "2025-11-01T00:00:00Z"), "uploadId": 403})

    unknown, incomplete = diagnosed(server)

    assert (unknown.code, unknown.evidence["question"]) == ("store-setting-unknown", "uploads")
    assert incomplete.code == "store-uploads-incomplete"
    assert incomplete.evidence["bytes"] is None
    assert "monthlyCost" not in incomplete.evidence


def test_where_more_is_stored_than_is_looked_at_the_answer_is_incomplete(
    server: SettingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl.ops.doctor.bucket_contents.MOST_LISTED", 1)
    for listed, answers in (
        ("objects", {"list-type": listing(OBJECT, ("prod/x", 5, "GLACIER"))}),
        (
            "versions",
            {
                "versioning": VERSIONED,
                "lifecycle": lifecycle(rule(NONCURRENT)),
                "versions": versions(("prod/a", TIB), ("prod/b", TIB)),
            },
        ),
    ):
        server.answer({**CLEAN, **answers})

        findings = diagnosed(server)

        assert [one.code for one in findings] == ["store-not-all-listed"]
        assert findings[0].evidence["listings"] == [listed]
        assert exit_code_of(findings) is ExitCode.INCOMPLETE


def test_without_any_right_everything_is_unknown(server: SettingsServer) -> None:
    server.answer(dict.fromkeys([*CLEAN, "versions", "uploads"], 403))

    findings = diagnosed(server)

    assert {one.code.value for one in findings} == {"store-setting-unknown"}
    assert exit_code_of(findings) is ExitCode.INCOMPLETE


def test_a_server_that_answers_another_question_is_not_taken_at_its_word(server: SettingsServer) -> None:
    for question in ("versioning", "lifecycle", "requestPayment", "intelligent-tiering"):
        server.answer({**CLEAN, question: listing(OBJECT)})

        assert [one.code.value for one in diagnosed(server)] == ["store-setting-unknown"], question


def test_archive_tiers_are_listed_to_their_end(server: SettingsServer) -> None:
    first = tiering(archiving(chosen="<Prefix>test/</Prefix>"), truncated="true")
    for second, code in ((tiering(archiving()), "store-archive-tiers"), (first, "store-setting-unknown")):
        server.answer({"continuation-token": second, **CLEAN, "intelligent-tiering": first})

        assert [one.code.value for one in diagnosed(server)] == [code]


def test_a_request_rate_above_the_stores_is_a_finding(server: SettingsServer) -> None:
    settings = open_settings(f"s3://{BUCKET}", {"region": "eu-north-1"})
    rates = {}
    for partitions, has_cache in ((1_300, False), (1_300, True), (1_300, None), (1_000, False)):
        topics = TieredTopics(1, partitions, "orders", 20.0, has_cache)
        view = BucketView("s3://b", BucketFacts(), BucketContents(), settings, NOW_MS, None, topics)
        rates[partitions, has_cache] = [one.code.value for one in reading_findings(view)]

    assert rates.pop((1_300, False)) == ["store-request-rate"]
    assert not any(rates.values())


def google(**settings: object) -> Mapping[str, Answer]:
    """A bucket of Google's, and one object."""
    access = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
    bucket = {"name": BUCKET, "storageClass": "STANDARD", "iamConfiguration": access, **settings}
    described = {
        "name": KEY,
        "size": "9",
        "generation": "1",
        "timeCreated": "2025-11-01T00:00:00Z",
        "storageClass": "STANDARD",
        "bucket": BUCKET,
    }
    return {"bucket": bucket, "list": {"items": [described]}, "object": described, "iam": {"bindings": []}}


def google_object(**fields: object) -> Mapping[str, Answer]:
    answers = google()
    described = answers["object"]
    assert isinstance(described, Mapping)
    return {**answers, "object": {**described, **fields}}


def google_rule(kind: str, condition: Mapping[str, object], **action: str) -> Mapping[str, object]:
    return {"rule": [{"action": {"type": kind, **action}, "condition": condition}]}


OPEN_TO_ALL = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "inherited"}
GOOGLE: Mapping[str, Setting] = {
    "versioning": Setting(google(versioning={"enabled": True}), "store-versions-kept"),
    "versioning with a rule that keeps the newest version": Setting(
        google(versioning={"enabled": True}, lifecycle=google_rule("Delete", {"numNewerVersions": 1})),
        "store-versions-kept",
    ),
    "versioning with a rule for versions from before a date": Setting(
        google(versioning={"enabled": True}, lifecycle=google_rule("Delete", {"noncurrentTimeBefore": "2025-01-01"})),
        "store-versions-kept",
    ),
    "expiry of what was made before a date": Setting(
        google(lifecycle=google_rule("Delete", {"createdBefore": "2025-01-01"})),
        "store-lifecycle-expires",
        {"narrowedBy": ["createdBefore"]},
        Severity.WARNING,
    ),
    "soft delete": Setting(
        google(softDeletePolicy={"retentionDurationSeconds": "604800"}), "store-soft-delete", {"softDeleteDays": 7.0}
    ),
    "a retention policy": Setting(
        google(retentionPolicy={"retentionPeriod": "864000", "isLocked": True}),
        "store-retention-default",
        {"days": 10.0, "mode": "locked"},
        Severity.ERROR,
    ),
    "holds on new objects": Setting(google(defaultEventBasedHold=True), "store-retention-default", {}, Severity.ERROR),
    "a temporary hold": Setting(google_object(temporaryHold=True), "store-objects-held", {"hold": "temporary hold"}),
    "an event-based hold": Setting(google_object(eventBasedHold=True), "store-objects-held"),
    "object retention": Setting(
        google_object(retention={"mode": "Locked", "retainUntilTime": "2026-01-01T00:00:00Z"}), "store-objects-held"
    ),
    "expiry before the topics' retention": Setting(
        google(lifecycle=google_rule("Delete", {"age": 7})), "store-lifecycle-expires", {"days": 7}, Severity.ERROR
    ),
    "transition to a class with minimum days": Setting(
        google(lifecycle=google_rule("SetStorageClass", {"age": 5}, storageClass="NEARLINE")),
        "store-class-minimum-days",
        {"minimumDays": 30},
    ),
    "a default class with minimum days": Setting(
        google(storageClass="COLDLINE"), "store-class-minimum-days", {"minimumDays": 90}
    ),
    "autoclass": Setting(
        google(autoclass={"enabled": True, "terminalStorageClass": "ARCHIVE"}),
        "store-class-by-use",
        {"storageClass": "ARCHIVE"},
    ),
    "requester pays": Setting(google(billing={"requesterPays": True}), "store-requester-pays"),
    "no prevention of public access": Setting(google(iamConfiguration=OPEN_TO_ALL), "store-public-not-prevented"),
    "a public policy": Setting(
        {
            **google(iamConfiguration=OPEN_TO_ALL),
            "iam": {"bindings": [{"role": "roles/storage.objectViewer", "members": ["allUsers"]}]},
        },
        "store-public",
    ),
    "permissions of single objects": Setting(
        google(iamConfiguration={"publicAccessPrevention": "enforced"}), "store-object-acls"
    ),
    "a key that cannot be used": Setting(
        {**google_object(kmsKeyName="projects/p/key"), "media": 403}, "store-objects-unreadable"
    ),
}


def test_each_setting_of_google_is_one_finding_and_no_other(server: SettingsServer) -> None:
    for name, setting in GOOGLE.items():
        server.answer(setting.answers)

        demand_one(name, setting, diagnosed(server, "gs", setting.topics))


def test_what_does_no_harm_at_google_is_no_finding(server: SettingsServer) -> None:
    rules = google_rule("Delete", {"daysSinceNoncurrentTime": 3})
    for harmless in (
        google(),
        google(versioning={"enabled": True}, lifecycle=rules),
        google(lifecycle=google_rule("Delete", {"age": 21})),
        google_object(kmsKeyName="projects/p/key"),
    ):
        server.answer(harmless)

        assert diagnosed(server, "gs") == []


def test_what_google_does_not_tell_is_unknown(server: SettingsServer) -> None:
    for question, answers in (
        ("bucket settings", {**google(), "bucket": 403}),
        ("policy", {**google(iamConfiguration=OPEN_TO_ALL), "iam": 403}),
        ("objects", {**google(), "object": 403}),
        ("encryption key", google(encryption={"defaultKmsKeyName": "projects/p/key"})),
    ):
        server.answer(answers)

        findings = [one for one in diagnosed(server, "gs") if one.severity is not Severity.INFO]

        assert [one.evidence["question"] for one in findings] == [question]
        assert exit_code_of(findings) is ExitCode.INCOMPLETE


def test_requests_only_read(server: SettingsServer) -> None:
    server.answer(CLEAN)
    diagnosed(server)
    server.answer(google())
    diagnosed(server, "gs")

    assert {*server.requests} <= {"GET", "HEAD", "TrentService.DescribeKey"}
