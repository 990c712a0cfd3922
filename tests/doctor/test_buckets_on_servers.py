"""`doctor store` on servers: what a finding says will fail or cost, fails or costs there; what a server lacks is
unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command_line import this_process
from tests.doctor.bucket_answers import CLEAN, expiry, lifecycle, rule
from tests.rigs.buckets import GcsBucket, S3Bucket
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.object_servers import ObjectServer
from tests.rigs.settings_server import BUCKET, settings_server
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.doctor.bucket import diagnose_bucket
from tieredctl.storage.registry import open_settings, open_store, open_writable_store

pytestmark = pytest.mark.integration
DAY_MS = 86_400_000
UNKNOWN = FindingCode.STORE_SETTING_UNKNOWN
ABORTING = {
    "ID": "abort",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
}


class Bucket:
    """A bucket of its own on an S3 server."""

    def __init__(self, server: ObjectServer) -> None:
        known = S3Bucket(server.endpoint)
        self.client, self.options = known.client, known.options
        self.name = f"settings-{uuid4().hex[:12]}"
        self.url = f"s3://{self.name}/prod"
        self.now_ms = 0

    def make(self, *, locked: bool = False) -> Bucket:
        self.client.create_bucket(Bucket=self.name, ObjectLockEnabledForBucket=locked)
        return self

    def put(self, key: str = "a", data: bytes = b"bytes") -> str:
        answer = self.client.put_object(Bucket=self.name, Key=f"prod/{key}", Body=data)
        self.now_ms = next(open_store(self.url, self.options).list()).last_modified_ms
        return str(answer.get("VersionId", ""))

    def findings(self, after_days: int = 0) -> dict[FindingCode, Finding]:
        """What is wrong with it so much later, but for what the server does not report."""
        now_ms = self.now_ms + after_days * DAY_MS
        found = diagnose_bucket(open_store(self.url, self.options), open_settings(self.url, self.options), now_ms)
        return {FindingCode(one.code): one for one in found.findings if one.code is not UNKNOWN}

    def questions_unknown(self) -> set[object]:
        found = diagnose_bucket(open_store(self.url, self.options), open_settings(self.url, self.options), 0)
        return {one.evidence["question"] for one in found.findings if one.code is UNKNOWN}

    def sound(self) -> None:
        """Without what servers do by default."""
        self.client.put_bucket_lifecycle_configuration(Bucket=self.name, LifecycleConfiguration={"Rules": [ABORTING]})
        blocks = dict.fromkeys(
            ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True
        )
        self.client.put_public_access_block(Bucket=self.name, PublicAccessBlockConfiguration=blocks)

    def add_rule(self, **added: Any) -> None:
        rules = [ABORTING, {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": "prod/"}, **added}]
        self.client.put_bucket_lifecycle_configuration(Bucket=self.name, LifecycleConfiguration={"Rules": rules})


@pytest.fixture
def bucket(moto: ObjectServer) -> Bucket:
    """At a server that has most settings, and trouble by none."""
    made = Bucket(moto).make()
    made.sound()
    made.put()
    return made


def test_a_bucket_without_trouble_has_no_finding(bucket: Bucket) -> None:
    assert bucket.findings() == {}


def test_what_versions_keep_is_counted_and_a_deletion_frees_nothing(bucket: Bucket) -> None:
    bucket.client.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    store = open_writable_store(bucket.url, bucket.options)
    store.delete(list(store.list()))

    (finding,) = bucket.findings().values()

    assert finding.code is FindingCode.STORE_VERSIONS_KEPT
    kept = [one for one in store.kept_versions() if not one.is_delete_marker]
    assert "a" in {one.key for one in kept}
    assert finding.evidence["noncurrentVersions"] == len(kept)
    assert finding.evidence["noncurrentBytes"] == sum(one.size for one in kept)


def test_rules_of_a_lifecycle_are_found(bucket: Bucket) -> None:
    for setting, code in (
        ({"Expiration": {"Days": 7}}, FindingCode.STORE_LIFECYCLE_EXPIRES),
        ({"Transitions": [{"Days": 7, "StorageClass": "GLACIER"}]}, FindingCode.STORE_LIFECYCLE_ARCHIVES),
    ):
        bucket.add_rule(**setting)

        assert set(bucket.findings()) == {code}


def test_an_archived_object_is_found_and_cannot_be_read(bucket: Bucket) -> None:
    bucket.client.put_object(Bucket=bucket.name, Key="prod/z", Body=b"bytes", StorageClass="GLACIER")

    assert set(bucket.findings()) == {FindingCode.STORE_OBJECTS_ARCHIVED}
    with pytest.raises(TieredctlError, match="archived"):
        open_store(bucket.url, bucket.options).read("z")


def test_a_key_that_is_disabled_is_found(bucket: Bucket, moto: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", moto.endpoint)
    kms = boto3.client("kms", region_name="us-east-1")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": by_default}]}
    bucket.client.put_bucket_encryption(Bucket=bucket.name, ServerSideEncryptionConfiguration=rules)
    assert bucket.findings() == {}

    kms.disable_key(KeyId=key)
    disabled = bucket.findings()
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    in_deletion = bucket.findings()

    assert set(disabled) == set(in_deletion) == {FindingCode.STORE_KEY_UNUSABLE}
    assert in_deletion[FindingCode.STORE_KEY_UNUSABLE].evidence["deletionDate"]


def test_a_public_policy_lets_everybody_read(bucket: Bucket) -> None:
    bucket.client.delete_public_access_block(Bucket=bucket.name)
    assert set(bucket.findings()) == {FindingCode.STORE_PUBLIC_NOT_PREVENTED}

    bucket.client.put_bucket_acl(Bucket=bucket.name, ACL="public-read")

    assert set(bucket.findings()) == {FindingCode.STORE_PUBLIC}


def test_what_moto_lacks_is_unknown(bucket: Bucket) -> None:
    assert bucket.questions_unknown() == {"archive tiers", "requester pays"}


@pytest.fixture
def locked(versitygw: ObjectServer) -> Iterator[Bucket]:
    """At a server that keeps locks."""
    made = Bucket(versitygw).make(locked=True)
    yield made
    for page in made.client.get_paginator("list_objects_v2").paginate(Bucket=made.name):
        for one in page.get("Contents", ()):
            made.client.put_object_legal_hold(Bucket=made.name, Key=one["Key"], LegalHold={"Status": "OFF"})
            made.client.delete_object(Bucket=made.name, Key=one["Key"], BypassGovernanceRetention=True)
    made.client.delete_bucket(Bucket=made.name)


def test_an_object_with_a_legal_hold_is_found_and_cannot_be_deleted(locked: Bucket) -> None:
    locked.put()
    assert locked.findings() == {}

    locked.client.put_object_legal_hold(Bucket=locked.name, Key="prod/a", LegalHold={"Status": "ON"})

    assert set(locked.findings()) == {FindingCode.STORE_OBJECTS_HELD}
    assert is_deletion_refused(locked)


def test_default_retention_is_found_and_new_objects_cannot_be_deleted(locked: Bucket) -> None:
    rule = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}
    locked.client.put_object_lock_configuration(
        Bucket=locked.name, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", "Rule": rule}
    )
    locked.put()

    found = locked.findings()

    assert set(found) == {FindingCode.STORE_RETENTION_DEFAULT}
    assert found[FindingCode.STORE_RETENTION_DEFAULT].evidence["days"] == 30
    assert is_deletion_refused(locked)


def is_deletion_refused(bucket: Bucket) -> bool:
    try:
        bucket.client.delete_object(Bucket=bucket.name, Key="prod/a")
    except bucket.client.exceptions.ClientError:
        return open_store(bucket.url, bucket.options).head("a") is not None
    return False


def test_an_upload_that_was_never_completed_is_found_with_its_bytes(versitygw: ObjectServer) -> None:
    bucket = Bucket(versitygw).make()
    bucket.put()
    place = {"Bucket": bucket.name, "Key": "prod/u"}
    upload = bucket.client.create_multipart_upload(**place)["UploadId"]
    bucket.client.upload_part(**place, UploadId=upload, PartNumber=1, Body=b"x" * 1_000)

    assert bucket.findings() == {}
    (finding,) = bucket.findings(after_days=3).values()

    assert finding.code is FindingCode.STORE_UPLOADS_INCOMPLETE
    assert (finding.evidence["uploads"], finding.evidence["bytes"]) == (1, 1_000)


def test_what_versitygw_lacks_is_unknown(versitygw: ObjectServer) -> None:
    bucket = Bucket(versitygw).make()

    assert bucket.questions_unknown() == {
        *("lifecycle", "archive tiers", "replication", "encryption", "requester pays", "public access block")
    }


def test_what_a_server_like_googles_does_not_report_is_unknown(fake_gcs_server: ObjectServer) -> None:
    bucket = GcsBucket(fake_gcs_server.endpoint)
    bucket.put("settings/a", b"bytes")
    place: tuple[str, Mapping[str, str]] = ("gs://tiered/settings", bucket.options)

    found = diagnose_bucket(open_store(*place), open_settings(*place), 0).findings

    assert {one.code for one in found} == {UNKNOWN}
    assert {one.evidence["question"] for one in found} >= {"lifecycle", "soft delete", "retention policy", "policy"}


def test_a_rule_is_judged_by_what_a_live_clusters_topics_retain(kafka_4: DrivenBroker, cloud_environment: None) -> None:
    tiered = {name for name, topic in kafka_4.cluster.topics.items() if topic.tiered and not topic.deleted}
    with settings_server() as server:
        server.answer({**CLEAN, "lifecycle": lifecycle(rule(expiry(3_650)))})
        options = ("--store-option", f"endpoint={server.endpoint}", "--store-option", "addressing-style=path")
        words = ("doctor", "store", "--store", f"s3://{BUCKET}", *options, "-o", "json")
        alone = this_process(*words)
        judged = this_process(*words, "--bootstrap-server", kafka_4.broker.bootstrap_server)

    (warning,), (error,) = alone.document()["items"], judged.document()["items"]
    assert (alone.exit_code, judged.exit_code) == (ExitCode.FINDINGS, ExitCode.FINDINGS)
    assert (warning["code"], warning["severity"]) == ("store-lifecycle-expires", "warning")
    assert (error["code"], error["severity"]) == ("store-lifecycle-expires", "error")
    assert error["evidence"]["topic"] in tiered
    assert error["evidence"]["retentionDays"] == "unlimited"
    assert judged.document()["summary"]["topics"] == len(tiered)


def test_what_cannot_be_asked_is_said_in_a_sentence(moto: ObjectServer, tmp_path: Any) -> None:
    options = ("--store-option", f"endpoint={moto.endpoint}", "--store-option", "addressing-style=path")

    for store, said in ((f"file:{tmp_path}", "no settings"), ("s3://no-such-bucket-anywhere", "no bucket")):
        outcome = this_process("doctor", "store", "--store", store, *(options if store.startswith("s3") else ()))

        assert outcome.exit_code in (ExitCode.FAILURE, ExitCode.USAGE), outcome.err
        assert said in outcome.err
        assert "Traceback" not in outcome.err
