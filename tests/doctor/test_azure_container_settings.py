"""`doctor store` on Azure Blob Storage: each setting is one finding, as with those of S3; what the storage account does
not tell is unknown, with the right that it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.request import urlopen
from uuid import uuid4

import pytest

from tests.cli.command_line import this_process
from tests.doctor.bucket_answers import (
    Setting,
    azure,
    azure_blob,
    azure_listing,
    demand_one,
    diagnosed,
    kms,
    server,
)
from tests.rigs.buckets import AzureContainer
from tests.rigs.object_servers import ObjectServer
from tests.rigs.settings_server import SettingsServer
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.ops.doctor.bucket import diagnose_bucket
from tieredctl.storage.registry import open_settings, open_store, open_writable_store

__all__ = ["kms", "server"]
"""Fixtures."""

UNKNOWN = FindingCode.STORE_SETTING_UNKNOWN
MANAGEMENT = {"lifecycle", "replication", "versioning"}
"""What Azure tells of a container without versions to its management API alone."""
PAST_VERSION = "<VersionId>2025-11-01T00:00:00.0000001Z</VersionId>"
COPIED = "or_0a1b-0c2d_3e4f"
SETTINGS: Mapping[str, Setting] = {
    "versions": Setting({**azure(), "listing": azure_listing(more=PAST_VERSION)}, "store-versions-kept"),
    "soft delete": Setting(azure(7), "store-soft-delete", {"softDeleteDays": 7.0}),
    "a legal hold of the container": Setting(
        azure(has_legal_hold="true"),
        "store-retention-default",
        {"mode": "a legal hold of the container"},
        Severity.ERROR,
    ),
    "an immutability policy of the container": Setting(
        azure(has_immutability_policy="true"), "store-retention-default", {}, Severity.ERROR
    ),
    "a legal hold of a blob": Setting(azure_blob(legal_hold="true"), "store-objects-held", {"hold": "legal hold"}),
    "an immutability policy of a blob": Setting(
        azure_blob(immutability_policy_until_date="Fri, 01 Jan 2100 00:00:00 GMT", immutability_policy_mode="Locked"),
        "store-objects-held",
    ),
    "a lease": Setting(azure_blob(lease_status="locked"), "store-objects-held", {"hold": "lease"}),
    "archived blobs": Setting({**azure(), "listing": azure_listing("Archive")}, "store-objects-archived"),
    "a default tier with minimum days": Setting(
        azure_blob(access_tier="Cold"), "store-class-minimum-days", {"minimumDays": 90}
    ),
    "public access": Setting(
        azure(blob_public_access="container"),
        "store-public",
        {"by": "public access level (container)"},
        Severity.WARNING,
    ),
    "an encryption scope whose key is gone": Setting(
        {**azure_blob(encryption_scope="s"), "blob-get": {"x-ms-error-code": "KeyVaultEncryptionKeyNotFound"}},
        "store-objects-unreadable",
    ),
    "replication that failed": Setting(azure_blob(**{COPIED: "failed"}), "store-replication-incomplete"),
}


def known(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.code is not UNKNOWN]


def questions(findings: list[Finding]) -> set[object]:
    return {one.evidence["question"] for one in findings if one.code is UNKNOWN}


def test_each_setting_of_azure_is_one_finding_and_no_other(server: SettingsServer) -> None:
    for name, setting in SETTINGS.items():
        server.answer(setting.answers)

        demand_one(name, setting, known(diagnosed(server, "az", setting.topics)))


def test_what_does_no_harm_at_azure_is_no_finding(server: SettingsServer) -> None:
    for harmless in (
        azure(),
        azure_blob(immutability_policy_until_date="Wed, 01 Jan 2020 00:00:00 GMT", immutability_policy_mode="Locked"),
        azure_blob(encryption_scope="s"),
        azure_blob(**{COPIED: "complete"}),
        azure_blob(or_policy_id="of-a-copy"),
    ):
        server.answer(harmless)

        assert known(diagnosed(server, "az")) == []


def test_what_azure_does_not_tell_is_unknown_with_the_right_that_it_takes(server: SettingsServer) -> None:
    for question, answers in (
        ("container", {**azure(), "container": 403}),
        ("soft delete", {**azure(), "service": 403}),
        ("objects", {**azure(), "blob-head": 403}),
        ("encryption key", azure(default_encryption_scope="s")),
        ("encryption key", {**azure_blob(encryption_scope="s"), "blob-get": 403}),
        # As of a blob in the archive, which has a finding of its own where the listing says so.
        ("encryption key", {**azure_blob(encryption_scope="s"), "blob-get": 409}),
        ("default retention", azure(immutable_storage_with_versioning_enabled="true")),
    ):
        server.answer(answers)

        findings = diagnosed(server, "az")

        assert (questions(findings), known(findings)) == ({*MANAGEMENT, question}, [])
        assert all("Microsoft.Storage/" in str(one.evidence["right"]) for one in findings)
        assert exit_code_of(findings) is ExitCode.INCOMPLETE


def test_requests_only_read(server: SettingsServer) -> None:
    before = len(server.requests)
    server.answer(azure())
    diagnosed(server, "az")

    assert {*server.requests[before:]} <= {"GET", "HEAD"}


class Container:
    """A container of its own on Azurite."""

    def __init__(self, server: ObjectServer) -> None:
        self.name = f"settings-{uuid4().hex[:12]}"
        self._known = AzureContainer(server.endpoint, self.name)
        self.client, self.options, self.url = self._known.client, self._known.options, f"az://{self.name}/prod"
        self._known.put("prod/a", b"bytes")

    def findings(self) -> list[Finding]:
        return diagnose_bucket(open_store(self.url, self.options), open_settings(self.url, self.options), 0).findings


@pytest.fixture
def container(azurite: ObjectServer) -> Iterator[Container]:
    made = Container(azurite)
    yield made
    made.client.delete_container()


@pytest.mark.integration
def test_a_sound_container_of_azurite_has_no_finding_but_what_it_does_not_tell(container: Container) -> None:
    findings = container.findings()

    assert (known(findings), questions(findings)) == ([], MANAGEMENT)


@pytest.mark.integration
def test_a_blob_that_is_leased_is_not_deleted(container: Container) -> None:
    lease = container.client.get_blob_client("prod/a").acquire_lease()

    (finding,) = known(container.findings())

    store = open_writable_store(container.url, container.options)
    (deletion,) = store.delete([*store.list()])
    lease.release()
    assert (finding.code, finding.evidence["hold"]) == (FindingCode.STORE_OBJECTS_HELD, "lease")
    assert deletion.error is not None


@pytest.mark.integration
def test_blobs_in_the_archive_cannot_be_read(container: Container) -> None:
    container.client.get_blob_client("prod/a").set_standard_blob_tier("Archive")

    (finding,) = known(container.findings())

    assert (finding.code, finding.evidence["storageClass"]) == (FindingCode.STORE_OBJECTS_ARCHIVED, "Archive")
    outcome = this_process(
        *("store", "inspect", f"{container.url}/a", "--store-option", f"endpoint={container.options['endpoint']}")
    )
    assert outcome.exit_code != ExitCode.CLEAN


@pytest.mark.integration
def test_everybody_reads_a_container_that_is_public(container: Container) -> None:
    container.client.set_container_access_policy({}, public_access="container")

    (finding,) = known(container.findings())

    assert finding.code is FindingCode.STORE_PUBLIC
    with urlopen(f"{container.options['endpoint']}/{container.name}/prod/a") as nobodys:
        assert nobodys.read() == b"bytes"
