"""What mends the settings of a Google Cloud Storage bucket, by Google's own command line; its storage classes; the
rights of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.bucket_settings import ClassTerms
from tieredctl.storage.bucket_address import BucketAddress

GCS_CLASSES = {"NEARLINE": ClassTerms(30), "COLDLINE": ClassTerms(90), "ARCHIVE": ClassTerms(365)}
"""By Google's table of storage classes. None needs restoring."""
GCS_RIGHTS = {
    "bucket": "storage.buckets.get",
    "policy": "storage.buckets.getIamPolicy",
    "objects": "storage.objects.list",
    "versions": "storage.objects.list",
    "sample": "storage.objects.get",
}
_UPDATE = "gcloud storage buckets update gs://{bucket}"
_RULES = (
    "gcloud storage buckets describe gs://{bucket} --format='json(lifecycle_config)'  # {change}, then "
    + _UPDATE
    + " --lifecycle-file=rules.json"
)
_REMEDIES = {
    FindingCode.STORE_SETTING_UNKNOWN: "gcloud storage buckets add-iam-policy-binding gs://{bucket} "
    "--member=MEMBER --role=ROLE  # a role with {right}",
    FindingCode.STORE_VERSIONS_KEPT: _RULES.replace("{change}", "add a Delete rule with daysSinceNoncurrentTime"),
    FindingCode.STORE_SOFT_DELETE: _UPDATE + " --clear-soft-delete",
    FindingCode.STORE_RETENTION_DEFAULT: _UPDATE + " --clear-retention-period --no-default-event-based-hold",
    FindingCode.STORE_OBJECTS_HELD: "gcloud storage objects update gs://{bucket}/{name} --no-temporary-hold "
    "--no-event-based-hold --clear-retention",
    FindingCode.STORE_LIFECYCLE_EXPIRES: _RULES.replace("{change}", "remove or narrow the rule"),
    FindingCode.STORE_CLASS_MINIMUM_DAYS: _UPDATE + " --default-storage-class=STANDARD  # and remove rules that move",
    FindingCode.STORE_CLASS_BY_USE: _UPDATE + " --no-enable-autoclass",
    FindingCode.STORE_OBJECTS_UNREADABLE: "gcloud storage objects describe gs://{bucket}/{name}  # then "
    "gcloud kms keys versions enable VERSION --key KEY --keyring RING --location LOCATION",
    FindingCode.STORE_PUBLIC: _UPDATE + " --public-access-prevention",
    FindingCode.STORE_PUBLIC_NOT_PREVENTED: _UPDATE + " --public-access-prevention",
    FindingCode.STORE_OBJECT_ACLS: _UPDATE + " --uniform-bucket-level-access",
    FindingCode.STORE_REQUESTER_PAYS: _UPDATE + " --no-requester-pays",
}


def gcs_remedies(address: BucketAddress) -> Mapping[FindingCode, str]:
    """The commands for a bucket; what they still need stands in braces: `name`, `right`."""
    return {code: text.replace("{bucket}", quote(address.bucket)) for code, text in _REMEDIES.items()}
