"""What servers answer about buckets, as their makers document it, and what `doctor store` finds by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from tests.rigs.object_servers import AZURE_ACCOUNT
from tests.rigs.settings_server import (
    BUCKET,
    Answer,
    SettingsServer,
    listing,
    missing,
    parts,
    settings_server,
)
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.doctor.bucket import diagnose_bucket
from tieredctl.ops.doctor.bucket_view import TieredTopics
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


def azure(soft_delete_days: int = 0, **container: str) -> Mapping[str, Answer]:
    """A container of Azure's, of an account whose blobs have versions, and one blob of the default tier."""
    kept = f"<Enabled>true</Enabled><Days>{soft_delete_days}</Days>" if soft_delete_days else "<Enabled>false</Enabled>"
    return {
        "container": {f"x-ms-{name.replace('_', '-')}": value for name, value in container.items()},
        "service": f"<StorageServiceProperties><DeleteRetentionPolicy>{kept}</DeleteRetentionPolicy>"
        "</StorageServiceProperties>",
        "listing": azure_listing(),
        "blob-head": {"Content-Length": "9", "x-ms-access-tier": "Hot", "x-ms-access-tier-inferred": "true"},
        "blob-get": "x",
    }


def azure_listing(tier: str = "Hot", more: str = "") -> str:
    return (
        f"<EnumerationResults><Blobs><Blob><Name>{KEY}</Name>{more}<Properties><Content-Length>9</Content-Length>"
        f"<Last-Modified>Sat, 01 Nov 2025 00:00:00 GMT</Last-Modified><Etag>e</Etag><AccessTier>{tier}</AccessTier>"
        "</Properties></Blob></Blobs></EnumerationResults>"
    )


def azure_blob(**headers: str) -> Mapping[str, Answer]:
    answers = azure()
    described = answers["blob-head"]
    assert isinstance(described, Mapping)
    return {**answers, "blob-head": {**described, **{f"x-ms-{k.replace('_', '-')}": v for k, v in headers.items()}}}


@pytest.fixture(scope="module")
def server(cloud_environment: None) -> Iterator[SettingsServer]:
    with settings_server() as running:
        yield running


@pytest.fixture(autouse=True)
def kms(server: SettingsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where keys are asked for, as AWS' own tools take it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.endpoint)


def diagnosed(server: SettingsServer, scheme: str = "s3", topics: TieredTopics | None = TOPICS) -> list[Finding]:
    path = f"/{AZURE_ACCOUNT}" if scheme == "az" else ""
    url, options = f"{scheme}://{BUCKET}/prod", {"endpoint": server.endpoint + path}
    options |= {"addressing-style": "path"} if scheme == "s3" else {}
    found = diagnose_bucket(open_store(url, options), open_settings(url, options), NOW_MS, price=PRICE, topics=topics)
    return found.findings


def demand_one(name: str, setting: Setting, findings: Sequence[Finding]) -> None:
    assert [one.code.value for one in findings] == [setting.code], name
    (finding,) = findings
    assert setting.evidence.items() <= dict(finding.evidence).items(), name
    assert setting.severity in (None, finding.severity), name
    assert "{" not in finding.remedy.replace("{Tier", ""), name
    assert any(one in finding.remedy for one in (BUCKET, "kms", AZURE_ACCOUNT, "tieredctl remote")), name
