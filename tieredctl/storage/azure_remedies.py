"""What mends the settings of a container of Azure Blob Storage, by Azure's own command line; its access tiers; the
rights of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.bucket_settings import ClassTerms

AZURE_CLASSES = {"Cool": ClassTerms(30), "Cold": ClassTerms(90), "Archive": ClassTerms(180, needs_restoring=True)}
"""By Azure's table of access tiers."""
_STORAGE = "Microsoft.Storage/storageAccounts/"
_CONTAINERS = f"{_STORAGE}blobServices/containers/"
AZURE_RIGHTS = {
    "container": f"{_CONTAINERS}read",
    "service": f"{_STORAGE}blobServices/read",
    "objects": f"{_CONTAINERS}blobs/read",
    "versions": f"{_CONTAINERS}blobs/read",
    "sample": f"{_CONTAINERS}blobs/read",
}
LIFECYCLE_RIGHT = f"{_STORAGE}managementPolicies/read"
REPLICATION_RIGHT = f"{_STORAGE}objectReplicationPolicies/read"
VERSIONING_RIGHT = AZURE_RIGHTS["service"]
IMMUTABILITY_RIGHT = f"{_CONTAINERS}immutabilityPolicies/read"
SCOPE_RIGHT = f"{_STORAGE}encryptionScopes/read"
"""The right for questions about encryption scopes, which Azure's management API alone answers."""

_SERVICE = "az storage account blob-service-properties update --account-name {account}"
_CONTAINER = "--account-name {account} --container-name {container}"
_POLICY = "az storage account management-policy show --account-name {account}  # "
_REMEDIES = {
    FindingCode.STORE_SETTING_UNKNOWN: "az storage account show --name {account}  # by a role with {right}; tieredctl "
    "asks the storage account alone",
    FindingCode.STORE_VERSIONS_KEPT: _POLICY + "add a rule that deletes versions and snapshots",
    FindingCode.STORE_SOFT_DELETE: _SERVICE + " --enable-delete-retention false",
    FindingCode.STORE_RETENTION_DEFAULT: f"az storage container legal-hold show {_CONTAINER}  # then legal-hold clear, "
    f"or az storage container immutability-policy delete {_CONTAINER}",
    FindingCode.STORE_OBJECTS_HELD: f"az storage blob show {_CONTAINER} --name {{name}}  # then az storage blob "
    "set-legal-hold, immutability-policy delete, or lease break",
    FindingCode.STORE_OBJECTS_ARCHIVED: f"az storage blob set-tier {_CONTAINER} --name {{name}} --tier Hot",
    FindingCode.STORE_CLASS_MINIMUM_DAYS: "az storage account update --name {account} --access-tier Hot",
    FindingCode.STORE_REPLICATION_INCOMPLETE: "az storage account or-policy show --account-name {account}  # and "
    "minCreationTime of its rules",
    FindingCode.STORE_OBJECTS_UNREADABLE: f"az storage blob show {_CONTAINER} --name {{name}}  # then az storage "
    "account encryption-scope update --account-name {account} --name SCOPE --state Enabled",
    FindingCode.STORE_PUBLIC: "az storage container set-permission --account-name {account} --name {container} "
    "--public-access off",
}


def azure_remedies(account: str | None, container: str) -> Mapping[FindingCode, str]:
    """The commands for a container; what they still need stands in braces: `name`, `right`."""
    names = {"{account}": quote(account or "ACCOUNT"), "{container}": quote(container)}
    return {code: _filled(text, names) for code, text in _REMEDIES.items()}


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text
