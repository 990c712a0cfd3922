"""`orphans scan` on a bucket: what lies in which storage class, and what that costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer


def test_a_bucket_tells_the_storage_class_of_each_object(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path, moto: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash, root, bucket = captures / "aiven-crash-4.3.1", "classes/", S3Bucket(moto.endpoint)
    files = [file for file in sorted((crash / "bucket").rglob("*")) if file.is_file()]
    classes = ("STANDARD", "GLACIER", "DEEP_ARCHIVE")
    put = {
        file.relative_to(crash / "bucket").as_posix(): classes[number % len(classes)]
        for number, file in enumerate(files)
    }
    for key, storage_class in put.items():
        bucket.client.put_object(
            Bucket=BUCKET, Key=root + key, Body=(crash / "bucket" / key).read_bytes(), StorageClass=storage_class
        )
    config = tmp_path / "config.yaml"
    config.write_text(
        "prices:\n"
        "  - {store: 's3://', perGiBMonth: 1024, currency: EUR}\n"
        "  - {store: 's3://', storageClass: GLACIER, perGiBMonth: 0, currency: EUR}\n"
    )
    monkeypatch.setenv("TIEREDCTL_CONFIG", str(config))
    words = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    where = ("--store", f"s3://{BUCKET}/{root}", *words, "--layout", "aiven", "--layout-option", "key-prefix=tiered/")

    outcome = tieredctl("orphans", "scan", *where, "--log-dir", crash / "data", "--min-age", "0s", "-o", "json")

    document = json.loads(outcome.out)
    assert {item["key"]: item["storageClass"] for item in document["items"]} == put
    assert {name: one["objects"] for name, one in document["summary"]["storageClasses"].items()} == {
        name: list(put.values()).count(name) for name in classes
    }
    assert document["summary"]["storageClasses"]["GLACIER"]["monthlyCost"] == 0
    assert "Priced like the store, since they have no price of their own: DEEP_ARCHIVE." in outcome.err
