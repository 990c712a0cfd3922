"""Segments that nobody can read now, and that are not damaged for all anybody knows: each is a finding of its own, and
the others are verified."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from Crypto.Cipher import PKCS1_OAEP
from Crypto.Hash import SHA3_512
from Crypto.PublicKey import RSA

from tests.cli.command_line import Outcome
from tests.faults.captured_segments import large_segment, small_segment
from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured, exit_code, key_of
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Part
from tieredctl.storage.registry import open_store

CAPTURE = "aiven-zstd-encrypted-4.3.1"


@pytest.fixture
def encrypted(captures: Path, tmp_path: Path) -> Path:
    """A copy whose objects may be replaced, but not written to: they are links."""
    shutil.copytree(captures / CAPTURE / "bucket", tmp_path / "bucket", copy_function=os.link)
    return tmp_path / "bucket"


def wrapped_for_others(manifest: Path) -> None:
    """As if a segment had been copied under another key pair."""
    document: dict[str, Any] = json.loads(manifest.read_bytes())
    wrapped = PKCS1_OAEP.new(RSA.generate(2048), hashAlgo=SHA3_512).encrypt(os.urandom(32))
    document["encryption"]["dataKey"] = f"key2:{b64encode(wrapped).decode()}"
    manifest.unlink()
    manifest.write_text(json.dumps(document, separators=(",", ":")))


@pytest.mark.parametrize("level", ["headers", "full"])
def test_one_segment_of_another_key_pair_is_a_finding_and_the_rest_is_verified(
    encrypted: Path, captures: Path, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = sorted(encrypted.rglob("slow32-*/*/*.rsm-manifest"))[1]
    wrapped_for_others(manifest)

    outcome = verified(encrypted, captures / CAPTURE, capsys, "--level", level)

    finding = outcome.finding(exit_code=5)
    assert finding["code"] == "segment-undecryptable"
    assert finding["evidence"]["segmentId"] == manifest.stem[-22:]
    assert "'key2'" in finding["message"]
    summary = outcome.document()["summary"]
    assert not summary["complete"]
    assert summary["batches"] >= summary["segments"] - 1 > 1


def verified(bucket: Path, capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Outcome:
    key = f"private-key={capture / 'keys' / 'private.pem'}"
    source = ("--log-dir", str(capture / "data"), "--older-than", "99999d", "--topic", "slow32")
    code = run(["verify", *source, "--store", f"file:{bucket}", "--layout-option", key, "-o", "json", *words])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return Outcome(code, said.out, said.err)


@pytest.fixture(scope="module")
def kafka_4(captures: Path) -> Cluster:
    whole = captured(captures / "kafka-4.3.1")
    segments = small_segment(whole), large_segment(whole)
    return whole.only(*(segment.metadata.topic_id_partition for segment in segments))


@pytest.fixture(scope="module")
def bucket(moto: ObjectServer, kafka_4: Cluster) -> S3Bucket:
    bucket = S3Bucket(moto.endpoint)
    for key, data in kafka_4.objects.items():
        bucket.put(f"archive/{key}", data)
    return bucket


def archive(bucket: S3Bucket, key: str, data: bytes, storage_class: str) -> None:
    bucket.client.put_object(Bucket=BUCKET, Key=f"archive/{key}", Body=data, StorageClass=storage_class)


def verified_in(bucket: S3Bucket, cluster: Cluster, level: Level) -> Verification:
    store = open_store(f"s3://{BUCKET}/archive", bucket.options)
    options = VerifyOptions(level, Clock(cluster.last_event_ms, 1 << 40), local_logs=cluster.local_logs)
    return verify(EventStream(EventsInMemory(cluster.events)), store, LAYOUT, LocalEngine(), options)


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
@pytest.mark.parametrize("part", [Part.LOG, Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT])
def test_an_archived_object_is_neither_damaged_nor_missing_nor_sound(
    bucket: S3Bucket, kafka_4: Cluster, part: Part, storage_class: str, level: Level
) -> None:
    metadata = kafka_4.finished()[0]
    key = key_of(metadata, part)
    archive(bucket, key, kafka_4.objects[key], storage_class)

    result = verified_in(bucket, kafka_4, level)
    bucket.put(f"archive/{key}", kafka_4.objects[key])

    (finding,) = result.findings
    assert (finding.code, finding.evidence["key"], finding.evidence["part"]) == ("object-archived", key, part)
    assert exit_code(result.findings) is ExitCode.INCOMPLETE
    assert not result.complete


@pytest.mark.parametrize("storage_class", ["STANDARD_IA", "GLACIER_IR"])
def test_a_class_that_is_read_at_once_is_not_an_archive(bucket: S3Bucket, kafka_4: Cluster, storage_class: str) -> None:
    key = key_of(kafka_4.finished()[0], Part.LOG)
    archive(bucket, key, kafka_4.objects[key], storage_class)

    findings = verified_in(bucket, kafka_4, Level.FULL).findings
    bucket.put(f"archive/{key}", kafka_4.objects[key])

    assert findings == []
