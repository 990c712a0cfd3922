"""Settings of S3 that harm tiered storage, and those that do not, as Amazon documents what a server answers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.doctor.bucket_answers import (
    DEFAULT_RETENTION,
    ENCRYPTED,
    FOREVER,
    KEEPING_ONE,
    KEY,
    KMS_KEY,
    LOCKED,
    NONCURRENT,
    OBJECT,
    OPEN,
    OWNER,
    RETAINED,
    TAGGED,
    TIB,
    TIERED,
    VERSIONED,
    Setting,
    archiving,
    expiry,
    lifecycle,
    moved,
    replication,
    rule,
    tiering,
)
from tests.rigs.settings_server import Answer, listing, missing, uploads, versions
from tieredctl.model.findings import Severity

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
