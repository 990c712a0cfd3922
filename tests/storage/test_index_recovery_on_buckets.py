"""`recover indexes` on buckets: the same objects as before the damage, and the damaged one in quarantine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, own_process
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket

pytestmark = pytest.mark.integration

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
FOLDER = "orders7-0-Ex-aw3fEQIi3do0H9Y7cKQ"
STEM = f"{FOLDER}/00000000000000000039-{SEGMENT_ID}"
MISSING, DAMAGED = f"{STEM}.txnindex", f"{STEM}.timeindex"
CONFIRMED = ("--apply", "--yes", "--cluster-id", "preTTRqnQOeby9xOnCMfyA")
PREFIX = "indexes"


SERVERS: dict[str, type[Bucket]] = {"versitygw": S3Bucket, "fake_gcs_server": GcsBucket, "azurite": AzureContainer}


@pytest.fixture(params=SERVERS)
def bucket(request: pytest.FixtureRequest) -> Bucket:
    return SERVERS[request.param](request.getfixturevalue(request.param).endpoint)


def test_a_missing_index_is_put_and_a_damaged_one_replaced(captures: Path, bucket: Bucket) -> None:
    capture = captures / "kafka-4.3.1"
    root = capture / "remote" / "kafka-tiered-storage"
    written = {path.relative_to(root).as_posix(): path.read_bytes() for path in (root / FOLDER).iterdir()}
    for key, data in (written | {DAMAGED: b"seven b"}).items():
        if key != MISSING:
            bucket.put(f"{PREFIX}/{key}", data)
    settings = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]

    def recover() -> Outcome:
        store = ("--store", f"{bucket.scheme}://{BUCKET}/{PREFIX}", *settings, "--layout", "local")
        words: tuple[str | Path, ...] = (
            "recover",
            "indexes",
            SEGMENT_ID,
            *store,
            "--log-dir",
            capture / "data",
            *CONFIRMED,
            "-o",
            "json",
        )
        return own_process(*words, **os.environ)

    outcome = recover()

    kept = [one["quarantinedAs"] for one in outcome.document()["items"] if one["quarantinedAs"]]
    assert outcome.exit_code == 0, outcome.err
    assert {key: bucket.read(f"{PREFIX}/{key}") for key in written} == written
    assert [bucket.read(f"{PREFIX}/{key}") for key in kept] == [b"seven b"]
    assert recover().document()["summary"]["toWrite"] == 0
