"""Uploads in parts that nobody completed: listed with what they hold, and given up by a plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.command_line import Outcome, this_process
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Rule
from tests.rigs.lies import dropped
from tests.rigs.object_servers import ObjectServer

ROOT = "uploads/"
PART_BYTES = 5 << 20
NEVER_COPIED = "00000000000000000000-Ex-aw3fEQIi3do0H9Y7cKQ.log"


class Debris(NamedTuple):
    """A bucket with one segment's log, an upload of that log again, and one of a segment that nobody knows."""

    bucket: S3Bucket
    options: tuple[str, ...]
    log_dir: Path
    key: str
    owned: str
    unknown: str


@pytest.fixture(params=["moto", "versitygw"])
def debris(request: pytest.FixtureRequest, captures: Path) -> Iterator[Debris]:
    server: ObjectServer = request.getfixturevalue(request.param)
    bucket = S3Bucket(server.endpoint)
    folder = captures / "kafka-4.3.1/remote/kafka-tiered-storage"
    log = next(file for file in sorted(folder.rglob("*.log")) if file.stat().st_size)
    key = log.relative_to(folder).as_posix()
    bucket.put(ROOT + key, log.read_bytes())
    uploads = [ROOT + key, ROOT + key.rpartition("/")[0] + "/" + NEVER_COPIED]
    ids = [bucket.client.create_multipart_upload(Bucket=BUCKET, Key=name)["UploadId"] for name in uploads]
    bucket.client.upload_part(Bucket=BUCKET, Key=uploads[0], UploadId=ids[0], PartNumber=1, Body=b"x" * PART_BYTES)
    bucket.client.upload_part(Bucket=BUCKET, Key=uploads[0], UploadId=ids[0], PartNumber=2, Body=b"yz")
    settings = [f"{name}={value}" for name, value in bucket.options.items()]
    options = ("--store", f"s3://{BUCKET}/{ROOT}", *(word for one in settings for word in ("--store-option", one)))
    yield Debris(bucket, options, captures / "kafka-4.3.1/data", key, *ids)
    for upload in bucket.client.list_multipart_uploads(Bucket=BUCKET, Prefix=ROOT).get("Uploads", ()):
        if upload["Key"].startswith(ROOT):
            bucket.client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


def listed(debris: Debris, *words: str) -> Outcome:
    return this_process("remote", "multipart", *debris.options, "--layout", "local", "-o", "json", *words)


def planned_and_applied(debris: Debris, store: Sequence[str], plan: Path) -> list[Outcome]:
    """A plan with uploads in it, made and applied."""
    cluster_id = json.loads((debris.log_dir.parent / "capture.json").read_text())["cluster_id"]
    where = ("--log-dir", debris.log_dir, "--cluster-id", cluster_id, "-o", "json")
    young = ("--min-age", "0s", "--allow-young", "--max-missing", "100000")  # and nothing but debris
    options = (*store, *where, *young, "--layout", "local", "--multipart", "--to", plan)
    return [
        this_process("orphans", "plan", *options),
        this_process("orphans", "apply", plan, *store[2:], *where, "--offline-metadata", "--yes"),
    ]


def test_uploads_are_listed_with_age_and_bytes(debris: Debris) -> None:
    outcome = listed(debris)

    document = json.loads(outcome.out)
    by_id = {item["uploadId"]: item for item in document["items"]}
    assert outcome.exit_code == 3
    assert by_id[debris.owned]["key"] == debris.key
    assert by_id[debris.owned]["bytes"] == PART_BYTES + 2
    assert by_id[debris.owned]["part"] == "log"
    assert by_id[debris.owned]["ageMs"] >= 0
    assert [one["code"] for one in document["summary"].pop("findings")] == ["multipart-debris"]
    assert document["summary"] == {"uploads": 2, "bytes": PART_BYTES + 2}


def test_a_younger_upload_than_asked_for_is_not_listed(debris: Debris) -> None:
    outcome = listed(debris, "--older-than", "1h", "--now", "2009-01-01")

    assert (outcome.exit_code, json.loads(outcome.out)["items"]) == (0, [])


@pytest.mark.parametrize("debris", ["versitygw"], indirect=True)  # moto's uploads all began in 2010
def test_a_plan_gives_up_uploads_but_for_those_that_may_be_of_a_copy_under_way(debris: Debris, tmp_path: Path) -> None:
    planned, applied = planned_and_applied(debris, debris.options, tmp_path / "plan")

    assert planned.document()["summary"]["uploads"] == 1, planned.err
    assert applied.document()["summary"]["bytes"] == PART_BYTES + 2
    assert [item["status"] for item in applied.document()["items"]] == ["aborted"]
    assert [item["uploadId"] for item in json.loads(listed(debris).out)["items"]] == [debris.unknown]
    assert debris.bucket.described(ROOT + debris.key)


@pytest.mark.parametrize("debris", ["versitygw"], indirect=True)
def test_an_upload_that_is_reported_as_given_up_and_is_not_has_failed(
    debris: Debris, versitygw: ObjectServer, tmp_path: Path
) -> None:
    # Not that of the trial by which tieredctl learns what the server can do.
    with FaultyProxy(versitygw.endpoint, rules=[Rule(dropped, "DELETE", ".log?uploadId=")]) as proxy:
        words = [word.replace(versitygw.endpoint, proxy.endpoint) for word in debris.options]

        planned, applied = planned_and_applied(debris, words, tmp_path / "plan")

    assert planned.document()["summary"]["uploads"] == 1, planned.err
    assert (applied.exit_code, applied.document()["summary"]["done"]) == (5, 0)
    assert "but its parts still exist" in applied.out + applied.err
    assert {item["uploadId"] for item in json.loads(listed(debris).out)["items"]} == {debris.owned, debris.unknown}


def test_a_store_that_has_no_uploads_in_parts_says_so(captures: Path) -> None:
    folder = captures / "kafka-4.3.1/remote/kafka-tiered-storage"

    outcome = this_process("remote", "multipart", "--store", f"file:{folder}")

    assert outcome.exit_code == 1
    assert "has no multipart uploads" in outcome.err
