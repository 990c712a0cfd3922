"""`doctor store` on Google Cloud Storage: each setting is one finding, as with those of S3."""

from __future__ import annotations

from collections.abc import Mapping

from tests.doctor.bucket_answers import (
    CLEAN,
    Setting,
    demand_one,
    diagnosed,
    google,
    google_object,
    google_rule,
    kms,
    server,
)
from tests.rigs.settings_server import (
    SettingsServer,
)
from tieredctl.errors import ExitCode
from tieredctl.model.findings import Severity, exit_code_of

__all__ = ["kms", "server"]
"""Fixtures."""


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
