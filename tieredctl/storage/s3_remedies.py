"""What mends the settings of an S3 bucket by AWS' own command line; its storage classes; the rights of questions."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.pasteable import quoted
from tieredctl.ports.bucket_settings import ClassTerms
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.s3_connection import S3Connection

_SMALLEST_BYTES = 128 << 10
S3_CLASSES = {
    "STANDARD_IA": ClassTerms(30, _SMALLEST_BYTES),
    "ONEZONE_IA": ClassTerms(30, _SMALLEST_BYTES),
    "GLACIER_IR": ClassTerms(90, _SMALLEST_BYTES),
    "GLACIER": ClassTerms(90, needs_restoring=True),
    "DEEP_ARCHIVE": ClassTerms(180, needs_restoring=True),
}
"""By Amazon S3's table of storage classes."""
S3_RIGHTS = {
    "objects": "s3:ListBucket",
    "versions": "s3:ListBucketVersions",
    "uploads": "s3:ListBucketMultipartUploads, s3:ListMultipartUploadParts",
    "sample": "s3:GetObject",
    "holds": "s3:GetObjectLegalHold, s3:GetObjectRetention",
}
_GET_RULES = "aws s3api get-bucket-lifecycle-configuration{place} > rules.json"
_PUT_RULES = "aws s3api put-bucket-lifecycle-configuration{place} --lifecycle-configuration file://rules.json"
_REMEDIES = {
    FindingCode.STORE_SETTING_UNKNOWN: "aws iam put-user-policy --user-name USER --policy-name doctor-store "
    "--policy-document file://policy.json  # allow {right}",
    FindingCode.STORE_VERSIONS_KEPT: _GET_RULES + "  # add NoncurrentVersionExpiration, then " + _PUT_RULES,
    FindingCode.STORE_RETENTION_DEFAULT: "aws s3api put-object-lock-configuration{place} "
    "--object-lock-configuration ObjectLockEnabled=Enabled",
    FindingCode.STORE_OBJECTS_HELD: "aws s3api put-object-legal-hold{place} --key {name} --legal-hold Status=OFF",
    FindingCode.STORE_LIFECYCLE_EXPIRES: _GET_RULES + "  # disable or narrow the rule, then " + _PUT_RULES,
    FindingCode.STORE_LIFECYCLE_ARCHIVES: _GET_RULES + "  # disable or narrow the rule, then " + _PUT_RULES,
    FindingCode.STORE_CLASS_MINIMUM_DAYS: _GET_RULES + "  # disable or delay the transition, then " + _PUT_RULES,
    FindingCode.STORE_UPLOADS_NEVER_ABORTED: _GET_RULES + "  # add AbortIncompleteMultipartUpload, then " + _PUT_RULES,
    FindingCode.STORE_ARCHIVE_TIERS: "aws s3api list-bucket-intelligent-tiering-configurations{place}  # then "
    "aws s3api delete-bucket-intelligent-tiering-configuration{place} --id ID",
    FindingCode.STORE_OBJECTS_ARCHIVED: "aws s3api restore-object{place} --key {name} "
    "--restore-request Days=7,GlacierJobParameters={{Tier=Standard}}",
    FindingCode.STORE_CLASS_SMALL_OBJECTS: "aws s3 cp {url} {url} --recursive --storage-class STANDARD{endpoint}",
    FindingCode.STORE_REPLICATION_KEEPS_DELETED: "aws s3api get-bucket-replication{place} > replication.json  # set "
    "DeleteMarkerReplication to Enabled, then aws s3api put-bucket-replication{place} "
    "--replication-configuration file://replication.json",
    FindingCode.STORE_REPLICATION_INCOMPLETE: "aws s3api get-bucket-replication{place}  # enable or widen the rule; "
    "existing objects are copied by a job of aws s3control create-job with S3ReplicateObject",
    FindingCode.STORE_KEY_UNUSABLE: "aws kms cancel-key-deletion --key-id {key}; aws kms enable-key --key-id {key}",
    FindingCode.STORE_PUBLIC: "aws s3api put-public-access-block{place} --public-access-block-configuration "
    "BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true",
    FindingCode.STORE_REQUESTER_PAYS: "aws s3api put-bucket-request-payment{place} "
    "--request-payment-configuration Payer=BucketOwner",
    FindingCode.STORE_REQUEST_RATE: "aws cloudwatch get-metric-statistics --namespace AWS/S3 --metric-name GetRequests "
    "--dimensions Name=BucketName,Value={bucket} --statistics Sum --period 60 --start-time START --end-time END",
}


def s3_remedies(address: BucketAddress, connection: S3Connection) -> Mapping[FindingCode, str]:
    """The commands for a bucket; what they still need stands in braces: `key`, `name`, `right`."""
    endpoint = "" if connection.endpoint is None else f" --endpoint-url {quote(connection.endpoint)}"
    given = {
        "place": f" --bucket {quote(address.bucket)}{endpoint}",
        "bucket": quote(address.bucket),
        "url": quoted(address.url + "/"),
        "endpoint": endpoint,
    }
    remedies = _REMEDIES | {FindingCode.STORE_PUBLIC_NOT_PREVENTED: _REMEDIES[FindingCode.STORE_PUBLIC]}
    return {code: _filled(text, given) for code, text in remedies.items()}


def _filled(text: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        text = text.replace("{" + name + "}", value.replace("{", "{{").replace("}", "}}"))
    return text
