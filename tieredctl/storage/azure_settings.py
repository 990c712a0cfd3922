"""What a container of Azure Blob Storage and its account are set to, as far as the storage account itself tells it.

Lifecycle, replication and versioning are told to Azure's management API alone: they are unknown here, but for what
shows in the blobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ports.bucket_settings import BucketFacts, ClassTerms, KeptAmongFirst, ReplicationRule, SampledObject
from tieredctl.ports.object_store import StoredObject, Versioning
from tieredctl.storage.azure import AzureStore
from tieredctl.storage.azure_connection import Answer, AzureConnection, AzureFailure
from tieredctl.storage.azure_remedies import (
    AZURE_CLASSES,
    AZURE_RIGHTS,
    IMMUTABILITY_RIGHT,
    LIFECYCLE_RIGHT,
    REPLICATION_RIGHT,
    SCOPE_RIGHT,
    VERSIONING_RIGHT,
    azure_remedies,
)
from tieredctl.storage.azure_versions import service_properties, soft_delete_days, versioning_by_blobs
from tieredctl.storage.bucket_address import BucketAddress
from tieredctl.storage.bucket_store import concurrently
from tieredctl.storage.settings_asked import SettingsAsked
from tieredctl.storage.versions_bound import kept_among_first

_ACCOUNTS_SCOPE = "$account-encryption-key"
_REPLICATED = "x-ms-or-"
_NO_RULE = "x-ms-or-policy-id"
"""What blobs have that were copied from another account: nothing copies them on."""
_OF_KEYS = ("KeyVault", "EncryptionScope")
"""What is in Azure's words for a key that cannot be used."""


class _Sampled(NamedTuple):
    of: SampledObject
    scope: str | None = None
    default_tier: str | None = None
    rules: Sequence[str] = ()
    refusal: str | None = None
    """Azure's word for why it could not be read, which does not tell whether the key of its scope can be used."""


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """A `BucketSettings` of a container."""

    address: BucketAddress
    connection: AzureConnection

    @property
    def classes(self) -> Mapping[str, ClassTerms]:
        return AZURE_CLASSES

    @property
    def rights(self) -> Mapping[str, str]:
        return AZURE_RIGHTS

    @property
    def remedies(self) -> Mapping[FindingCode, str]:
        return azure_remedies(self.connection.signed_in(self.address.url).name, self._container)

    @property
    def reads_per_second(self) -> int | None:
        """Azure's limit is of an account, and differs by its region."""
        return None

    def kept_versions(self, most: int) -> KeptAmongFirst:
        return kept_among_first(AzureStore(self.address, self.connection).version_entries, most)

    def ask(self, sample: Sequence[StoredObject]) -> BucketFacts:
        asked = SettingsAsked(self.address.url)
        container = asked.at("container", AZURE_RIGHTS["container"], self._container_headers) or {}
        soft_delete = asked.at("soft delete", AZURE_RIGHTS["service"], self._soft_delete_days)
        versioning = asked.at("versioning", AZURE_RIGHTS["versions"], self._versioning)
        found = concurrently(
            lambda one: asked.at("objects", AZURE_RIGHTS["sample"], partial(self._sampled, one)), sample
        )
        sampled = [one for one in found if one is not None]
        rules = sorted({rule for one in sampled for rule in one.rules})
        self._note_management(asked, versioning, container, has_rules=bool(rules))
        self._note_untried_scopes(asked, container, sampled)
        return BucketFacts(
            versioning=versioning or Versioning.UNKNOWN,
            soft_delete_days=soft_delete,
            holds_new_objects=_hold_of_container(container),
            uploads_end_themselves=True,
            # The account's: blobs say whether it is theirs.
            default_class=next((one.default_tier for one in sampled if one.default_tier), None),
            replication=[ReplicationRule(rule, "", True, copies_deletions=True) for rule in rules] or None,
            public_by=_public_by(container),
            sample=[one.of for one in sampled],
            unanswered=asked.unanswered,
        )

    def _note_management(
        self, asked: SettingsAsked, versioning: Versioning | None, container: Mapping[str, str], *, has_rules: bool
    ) -> None:
        questions = {"lifecycle": LIFECYCLE_RIGHT}
        if not has_rules:
            questions["replication"] = REPLICATION_RIGHT
        if versioning is Versioning.UNKNOWN:
            questions["versioning"] = VERSIONING_RIGHT
        if container.get("x-ms-immutable-storage-with-versioning-enabled") == "true":
            questions["default retention"] = IMMUTABILITY_RIGHT
        for question, right in questions.items():
            message = f"{self.address.url} leaves it to Azure's management API, which tieredctl does not ask."
            asked.note(question, right, TieredctlError(ErrorCode.STORE_FORBIDDEN, message))

    def _note_untried_scopes(
        self, asked: SettingsAsked, container: Mapping[str, str], sampled: Sequence[_Sampled]
    ) -> None:
        """The key of new blobs, and that of each scope, is tried by reading a blob that has it."""
        tried = {_ACCOUNTS_SCOPE, *(one.scope for one in sampled if one.refusal is None)}
        untried = {
            one.scope: f"No blob could be read with encryption scope {one.scope} ({one.refusal})."
            for one in sampled
            if one.scope not in tried
        }
        scope = container.get("x-ms-default-encryption-scope", _ACCOUNTS_SCOPE)
        if scope not in tried:
            message = f"No blob that was asked about is encrypted with the container's scope {scope}."
            untried.setdefault(scope, message)
        for message in untried.values():
            asked.note("encryption key", SCOPE_RIGHT, TieredctlError(ErrorCode.STORE_FORBIDDEN, message))

    def _container_headers(self) -> Mapping[str, str]:
        return self._request_container("HEAD", {}).headers

    def _versioning(self) -> Versioning:
        return versioning_by_blobs(self._request_container, self.address)

    def _soft_delete_days(self) -> float | None:
        """How many days soft delete keeps deleted blobs; None where it does not."""
        asked = {"restype": "service", "comp": "properties"}
        answer = self.connection.request("GET", self.address.url, query=asked)
        properties = service_properties(answer.body)
        if properties is None:
            message = f"{self.address.url} tells the service's properties in a way that cannot be understood."
            raise AzureFailure(ErrorCode.UNREADABLE, message)
        return soft_delete_days(properties)

    def _sampled(self, stored: StoredObject) -> _Sampled:
        path = f"{self._container}/{self.address.root}{stored.key}"
        try:
            blob = self.connection.request("HEAD", self.address.url, path).headers
        except AzureFailure as failure:
            if failure.is_missing:  # deleted since it was listed
                return _Sampled(SampledObject(stored.key))
            raise
        scope = blob.get("x-ms-encryption-scope")
        statuses = {name: told for name, told in blob.items() if name.startswith(_REPLICATED) and name != _NO_RULE}
        refusal = None if scope is None else self._refusal(path)
        is_of_key = refusal is not None and any(word in refusal for word in _OF_KEYS)
        unreadable = f"the key of its encryption scope {scope} cannot be used ({refusal})" if is_of_key else None
        sampled = SampledObject(stored.key, _hold(blob), _replication(statuses), unreadable)
        is_default = blob.get("x-ms-access-tier-inferred") == "true"
        tier = blob.get("x-ms-access-tier") if is_default else None
        rules = [name.removeprefix(_REPLICATED) for name in statuses]
        return _Sampled(sampled, scope, tier, rules, None if is_of_key else refusal)

    def _refusal(self, path: str) -> str | None:
        """Azure's word for why the first byte cannot be read of a blob that can be described."""
        try:
            self.connection.request("GET", self.address.url, path, headers={"x-ms-range": "bytes=0-0"})
        except AzureFailure as failure:
            if failure.reason == "InvalidRange" or failure.is_missing:
                return None
            if failure.code in (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE):
                return failure.reason
            raise
        return None

    def _request_container(self, method: str, query: Mapping[str, str]) -> Answer:
        asked = {"restype": "container", **query}
        return self.connection.request(method, self.address.url, self._container, asked)

    @property
    def _container(self) -> str:
        """The URL's, without the account that it may name besides."""
        return self.address.bucket.partition("@")[0]


def _hold_of_container(container: Mapping[str, str]) -> str | None:
    if container.get("x-ms-has-legal-hold") == "true":
        return "a legal hold of the container"
    if container.get("x-ms-has-immutability-policy") == "true":
        return "an immutability policy of the container"
    return None


def _public_by(container: Mapping[str, str]) -> str | None:
    level = container.get("x-ms-blob-public-access")
    return None if level is None else f"public access level ({level})"


def _hold(blob: Mapping[str, str]) -> str | None:
    if blob.get("x-ms-legal-hold") == "true":
        return "legal hold"
    until = blob.get("x-ms-immutability-policy-until-date")
    if until is not None and not _is_past(until):
        return f"{blob.get('x-ms-immutability-policy-mode')} immutability, ends {until}"
    return "lease" if blob.get("x-ms-lease-status") == "locked" else None


def _is_past(text: str) -> bool:
    try:
        return parsedate_to_datetime(text) < datetime.now(UTC)
    except (TypeError, ValueError):
        return False


def _replication(statuses: Mapping[str, str]) -> str:
    """The replication by all rules that copy it; empty where none did."""
    stated = {status.upper() for status in statuses.values()}
    return "FAILED" if "FAILED" in stated else next(iter(stated), "")
