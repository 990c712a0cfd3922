"""What comes back from quarantine is what was removed: other bytes of the same size never are, on any store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import ROOT, UNFINISHED, FilledBucket, broker_of_bucket, crashed_contents, store_words
from tests.cli.crashed_cluster import (
    ENOUGH,
    NO_AGE,
    CrashedCluster,
    CrashedClusterOnDisk,
    objects_in,
    plan_lines,
    planned_keys,
)
from tests.rigs.buckets import AzureContainer, Bucket, GcsBucket, S3Bucket
from tieredctl.ops.guards.own_objects import BYTES_OF_COPIES, QUARANTINE, receipts_folder

SERVERS: Mapping[str, type[Bucket]] = {
    "moto": S3Bucket,
    "versitygw": S3Bucket,
    "fake_gcs_server": GcsBucket,
    "azurite": AzureContainer,
}
VERSITYGW, GCS, MOTO = (
    pytest.param(name, marks=pytest.mark.exhaustive) for name in ("versitygw", "fake_gcs_server", "moto")
)
STORES = ["file", VERSITYGW, GCS, MOTO]
CAUSE = ("--cause", "copy-never-finished")


@dataclass(frozen=True)
class Store:
    """A store that a plan removes objects from, as whoever may write to it sees it."""

    cluster: CrashedCluster
    bucket: Path | FilledBucket

    def below(self, folder: str) -> list[str]:
        return [key for key in self.keys() if key.startswith(folder)]

    def keys(self) -> list[str]:
        return sorted(objects_in(self.bucket)) if isinstance(self.bucket, Path) else self.bucket.keys()

    def read(self, key: str) -> bytes:
        return (
            (self.bucket / key).read_bytes() if isinstance(self.bucket, Path) else self.bucket.bucket.read(ROOT + key)
        )

    def write(self, key: str, data: bytes) -> None:
        """In a folder as old as it was, if it is there: nothing but its bytes tells."""
        if isinstance(self.bucket, FilledBucket):
            self.bucket.bucket.put(ROOT + key, data)
            return
        file = self.bucket / key
        times = file.stat() if file.exists() else None
        file.write_bytes(data)
        if times is not None:
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    def remove(self, key: str) -> None:
        (self.bucket / key).unlink() if isinstance(self.bucket, Path) else self.bucket.bucket.remove(ROOT + key)

    def alter(self) -> None:
        """Writes other bytes of the same size over each copy."""
        for key in self.below(QUARANTINE):
            self.write(key, flipped(self.read(key)))

    @property
    def plan_id(self) -> str:
        return str(plan_lines(self.cluster.plan_file)[0]["planId"])

    def restore(self, by: str, *words: str) -> Outcome:
        if by == "receipts":
            return self.cluster.restore(*words)
        return self.cluster.tieredctl("orphans", "restore", self.plan_id, *self.cluster.store, *words)


def flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> Store:
    """With what was planned: what was never copied to its end."""
    if request.param == "file":
        on_disk: CrashedClusterOnDisk = request.getfixturevalue("cluster")
        found = Store(on_disk, on_disk.bucket)
    else:
        bucket = SERVERS[request.param](request.getfixturevalue(request.param).endpoint)
        filled = FilledBucket(bucket, crashed_contents(captures))
        filled.refill()
        words = store_words(bucket)
        found = Store(CrashedCluster(tieredctl, broker_of_bucket(captures, filled.contents), tmp_path, words), filled)
    assert found.cluster.plan(*ENOUGH, *NO_AGE, *CAUSE).exit_code == 0
    return found


@pytest.mark.parametrize("store", ["file", "versitygw", "fake_gcs_server", "azurite", MOTO], indirect=True)
def test_altered_copies_are_not_put_back(store: Store) -> None:
    doomed = planned_keys(store.cluster.plan_file)
    assert store.cluster.apply().exit_code == 0
    store.alter()

    for by in ("receipts", "plan id"):
        rehearsed = store.restore(by, "--dry-run", "-o", "json")
        restored = store.restore(by, "-o", "json")
        forced = store.restore(by, "--accept-unverified", "-o", "json")

        for outcome in (rehearsed, restored, forced):
            summary = outcome.document()["summary"]
            assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, len(doomed)), (by, outcome.err)
            errors = {item["error"].partition(":")[0] for item in outcome.document()["items"]}
            assert errors == {"copy-altered"}, by
        assert not doomed & set(store.keys()), by


def test_a_forged_receipt_makes_no_altered_copy_pass(store: Store) -> None:
    doomed = planned_keys(store.cluster.plan_file)
    assert store.cluster.apply("--receipts", "store").exit_code == 0
    store.alter()
    forge: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
        "other checksums": lambda receipt: {**receipt, "checksums": {}, "version": None},
        "no checksums": lambda receipt: {name: receipt[name] for name in receipt if name != "checksums"},
    }
    (first, second, *_) = store.below(receipts_folder(store.plan_id))
    for how in forge.values():
        for key in (first, second):
            lines = [json.loads(line) for line in store.read(key).splitlines()]
            forged = [how(line) if "step" in line else line for line in lines]
            store.write(key, b"".join(json.dumps(line).encode() + b"\n" for line in forged))

        outcome = store.restore("plan id", "-o", "json")

        assert (outcome.exit_code, outcome.document()["summary"]["done"]) == (5, 0)
    assert not doomed & set(store.keys())


def test_without_the_seal_a_copy_is_unverified_by_its_plan_alone(store: Store) -> None:
    doomed = planned_keys(store.cluster.plan_file)
    assert store.cluster.apply().exit_code == 0
    for key in store.below(BYTES_OF_COPIES):
        store.remove(key)

    refused = store.restore("plan id", "-o", "json")
    accepted = store.restore("plan id", "--accept-unverified", "-o", "json")

    errors = {item["error"].partition(":")[0] for item in refused.document()["items"]}
    assert (refused.exit_code, refused.document()["summary"]["done"], errors) == (5, 0, {"copy-unverified"})
    assert (accepted.exit_code, accepted.document()["summary"]["unverified"]) == (0, len(doomed))
    assert doomed <= set(store.keys())


@pytest.mark.parametrize("store", ["file", VERSITYGW], indirect=True)
def test_receipts_of_an_older_release_restore_what_is_accepted(store: Store) -> None:
    doomed = planned_keys(store.cluster.plan_file)
    assert store.cluster.apply().exit_code == 0
    receipts = store.cluster.receipts_file
    lines = [json.loads(line) for line in receipts.read_bytes().splitlines()]
    older = [{name: line[name] for name in line if name not in ("checksums", "version")} for line in lines[1:]]
    as_written = (json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in [lines[0], *older])
    receipts.write_bytes(b"".join(as_written))
    for key in store.below(BYTES_OF_COPIES):
        store.remove(key)

    refused = store.restore("receipts")
    accepted = store.restore("receipts", "--accept-unverified", "-o", "json")

    assert (refused.exit_code, accepted.exit_code) == (5, 0)
    assert accepted.document()["summary"]["done"] == len(doomed)
    assert doomed <= set(store.keys())


@pytest.mark.parametrize("store", ["file", VERSITYGW], indirect=True)
def test_an_object_of_the_same_size_is_not_what_was_removed(store: Store) -> None:
    doomed = sorted(planned_keys(store.cluster.plan_file))
    originals = {key: store.read(key) for key in doomed}
    assert store.cluster.apply().exit_code == 0
    for key in store.below(QUARANTINE):
        store.remove(key)
    for key in doomed:
        store.write(key, flipped(originals[key]))

    altered = store.restore("receipts", "-o", "json")
    for key in doomed:
        store.write(key, originals[key])
    same = store.restore("receipts", "-o", "json")

    assert (altered.exit_code, altered.document()["summary"]["done"]) == (5, 0)
    assert (same.exit_code, same.document()["summary"]["done"]) == (0, len(doomed))


@pytest.mark.parametrize("store", ["versitygw", GCS, MOTO], indirect=True)
def test_what_the_store_vouches_for_is_not_downloaded(store: Store) -> None:
    applied = store.cluster.apply("-o", "json")

    requests = applied.document()["summary"]["requests"]
    assert applied.document()["summary"]["done"] == UNFINISHED
    assert requests["copy"] == UNFINISHED
    assert "stream" not in requests
    assert requests.get("read", 0) < UNFINISHED
