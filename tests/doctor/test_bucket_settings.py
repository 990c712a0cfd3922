"""`doctor store`: each setting of a bucket that harms tiered storage is one finding, and a bucket without any has none.

What is said of servers is seen in tests/doctor/test_buckets_on_servers.py; here a server of the tests answers with the
bodies that Amazon and Google document, for no server at hand has all of these settings.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.doctor.bucket_answers import (
    CLEAN,
    DEFAULT_RETENTION,
    ENCRYPTED,
    KMS_KEY,
    LOCKED,
    NONCURRENT,
    NOW_MS,
    OBJECT,
    RETAINED,
    TIB,
    VERSIONED,
    archiving,
    demand_one,
    diagnosed,
    kms,
    lifecycle,
    rule,
    server,
    tiering,
)
from tests.doctor.s3_bucket_settings import HARMLESS, S3
from tests.rigs.settings_server import BUCKET, Answer, SettingsServer, listing, uploads, versions
from tieredctl.errors import ExitCode
from tieredctl.model.findings import Severity, exit_code_of
from tieredctl.ops.doctor.bucket_contents import BucketContents
from tieredctl.ops.doctor.bucket_reading_rules import reading_findings
from tieredctl.ops.doctor.bucket_view import BucketView, TieredTopics
from tieredctl.ports.bucket_settings import BucketFacts
from tieredctl.storage.registry import open_settings

__all__ = ["kms", "server"]
"""Fixtures."""

QUESTIONS = {"versioning", "object-lock", "lifecycle", "intelligent-tiering", "replication", "encryption"} | {
    *("requestPayment", "publicAccessBlock", "policyStatus", "acl", "head", "list-type")
}
"""What is asked of every bucket of S3."""


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


def test_a_page_of_archive_tiers_that_does_not_say_it_is_the_last_leaves_them_unknown(server: SettingsServer) -> None:
    page = "<ListBucketIntelligentTieringConfigurationsOutput></ListBucketIntelligentTieringConfigurationsOutput>"
    server.answer({**CLEAN, "intelligent-tiering": page})

    assert [one.code.value for one in diagnosed(server)] == ["store-setting-unknown"]


def test_a_request_rate_above_the_stores_is_a_finding(server: SettingsServer) -> None:
    settings = open_settings(f"s3://{BUCKET}", {"region": "eu-north-1"})
    rates = {}
    for partitions, has_cache in ((1_300, False), (1_300, True), (1_300, None), (1_000, False)):
        topics = TieredTopics(1, partitions, "orders", 20.0, has_cache)
        view = BucketView("s3://b", BucketFacts(), BucketContents(), settings, NOW_MS, None, topics)
        rates[partitions, has_cache] = [one.code.value for one in reading_findings(view)]

    assert rates.pop((1_300, False)) == ["store-request-rate"]
    assert not any(rates.values())
