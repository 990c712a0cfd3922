"""Buckets that keep what is deleted: what is said of it, what a scan counts, and how it is deleted for good."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_bucket import broker_of_bucket, crashed_contents
from tests.cli.crashed_cluster import ENOUGH, NO_AGE, CrashedCluster, planned_keys
from tests.cli.test_recover_indexes import CONFIRMED, SEGMENT_ID, STEM
from tests.rigs.buckets import S3Bucket
from tests.rigs.faulty_proxy import Answer, FaultyProxy, Request
from tests.rigs.object_servers import ObjectServer
from tests.rigs.versioned_bucket import VersionedBucket

LOCK_RULE = {"DefaultRetention": {"Mode": "GOVERNANCE", "Days": 30}}
PARTITIONS = re.compile("tiered/orders33-[^/]+/[02]/")


@pytest.fixture(scope="module")
def contents(captures: Path) -> Mapping[str, bytes]:
    """Two partitions are enough."""
    return {key: data for key, data in crashed_contents(captures).items() if PARTITIONS.match(key)}


@pytest.fixture
def bucket(moto: ObjectServer, contents: Mapping[str, bytes]) -> Iterator[VersionedBucket]:
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        bucket.fill(contents)
        yield bucket


@pytest.fixture
def cluster(
    tieredctl: Tieredctl, captures: Path, bucket: VersionedBucket, contents: Mapping[str, bytes], tmp_path: Path
) -> CrashedCluster:
    """With a plan that deletes without quarantine."""
    cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, bucket.store_words())
    planned = cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished", "--delete")
    assert planned.exit_code == 0
    return cluster


def planned_bytes(cluster: CrashedCluster, contents: Mapping[str, bytes]) -> int:
    return sum(len(contents[key]) for key in planned_keys(cluster.plan_file))


def test_what_is_deleted_in_a_versioned_bucket_is_not_said_to_be_freed(
    cluster: CrashedCluster, bucket: VersionedBucket, contents: Mapping[str, bytes]
) -> None:
    """And a scan counts what no listing shows."""
    size, unfinished = planned_bytes(cluster, contents), len(planned_keys(cluster.plan_file))

    applied = cluster.apply("-o", "json")
    kept = bucket.kept(planned_keys(cluster.plan_file))
    bucket.forget_own_versions()
    scanned = cluster.scan("-o", "json")

    stays = applied.document()["summary"]["stays"]
    assert (applied.exit_code, stays["versioning"], stays["bytesKept"]) == (0, "enabled", size)
    assert kept == (unfinished, unfinished)
    found = scanned.document()["summary"]["noncurrent"]
    assert found == {"versioning": "enabled", "versions": unfinished, "bytes": size, "deleteMarkers": unfinished}


def test_versions_are_deleted_where_that_is_asked_for(
    cluster: CrashedCluster, bucket: VersionedBucket, contents: Mapping[str, bytes]
) -> None:
    size = planned_bytes(cluster, contents)

    applied = cluster.apply("--delete-versions", "-o", "json")

    stays = applied.document()["summary"]["stays"]
    assert (applied.exit_code, stays["bytesKept"]) == (0, 0)
    assert (stays["versionsDeleted"], stays["versionBytesDeleted"]) == (len(planned_keys(cluster.plan_file)), size)
    assert bucket.kept(planned_keys(cluster.plan_file)) == (0, 0)
    assert set(bucket.current()) == set(contents) - planned_keys(cluster.plan_file)


def test_a_quarantine_stays_when_versions_are_deleted(
    tieredctl: Tieredctl, captures: Path, bucket: VersionedBucket, contents: Mapping[str, bytes], tmp_path: Path
) -> None:
    cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, bucket.store_words())
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    cluster.apply("--delete-versions")

    restored = cluster.restore("-o", "json")

    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, len(planned_keys(cluster.plan_file)))
    assert bucket.current() == contents


@pytest.mark.parametrize("options", [(), ("--delete-versions",)], ids=["kept", "deleted"])
def test_a_purge_says_whether_copies_are_gone_for_good(
    tieredctl: Tieredctl,
    captures: Path,
    bucket: VersionedBucket,
    contents: Mapping[str, bytes],
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, bucket.store_words())
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    cluster.apply()

    purged = cluster.purge("--older-than", "0s", "--allow-young", "--max-percent", "90", *options)

    assert purged.exit_code == 0
    assert ("for good" in purged.err) == bool(options)
    assert bucket.kept_in_quarantine() == (0 if options else len(planned_keys(cluster.plan_file)))


def test_versions_that_a_lock_keeps_are_reported_as_kept(
    tieredctl: Tieredctl, captures: Path, moto: ObjectServer, contents: Mapping[str, bytes], tmp_path: Path
) -> None:
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        bucket.lock(LOCK_RULE)
        bucket.fill(contents)
        cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, bucket.store_words())
        cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished", "--delete")
        bucket.hold(planned_keys(cluster.plan_file))

        applied = cluster.apply("--delete-versions", "-o", "json")

    stays = applied.document()["summary"]["stays"]
    assert (applied.exit_code, stays["versionsDeleted"]) == (5, 0)
    assert stays["objectLock"] == "Object Lock keeps new versions for 30 days (GOVERNANCE)"


def test_a_bucket_that_does_not_tell_may_keep_versions(
    tieredctl: Tieredctl,
    captures: Path,
    moto: ObjectServer,
    bucket: VersionedBucket,
    contents: Mapping[str, bytes],
    tmp_path: Path,
) -> None:
    denied: list[Any] = [Answer(403, b"<Error><Code>AccessDenied</Code></Error>")] * 10

    def asks(request: Request) -> bool:
        return request.method == "GET" and request.path.endswith("?versioning")

    with FaultyProxy(moto.endpoint, denied, asks) as proxy:
        store = bucket.store_words(proxy.endpoint)
        cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, contents), tmp_path, store)
        cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished", "--delete")
        applied = cluster.apply("-o", "json")
        scanned = cluster.scan("-o", "json")

    assert applied.document()["summary"]["stays"]["bytesKept"] is None
    assert scanned.document()["summary"]["noncurrent"]["versions"] is None


def test_lost_objects_come_back_from_the_versions_that_the_bucket_keeps(
    tieredctl: Tieredctl, captures: Path, moto: ObjectServer
) -> None:
    """One that was deleted, and one that was overwritten, without any option that names a source."""
    capture, folder = captures / "kafka-4.3.1", STEM.partition("/")[0]
    root = capture / "remote" / "kafka-tiered-storage"
    written = {path.relative_to(root).as_posix(): path.read_bytes() for path in (root / folder).iterdir()}
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        bucket.fill(written)
        bucket.delete(f"{STEM}.log")
        bucket.fill({f"{STEM}.timeindex": b"garbage"})
        words = ("heal", "--segment-id", SEGMENT_ID, *bucket.store_words(), "--log-dir", capture / "data", *CONFIRMED)

        healed = tieredctl(*words, "-o", "json")

        sources = {one["part"]: (one["source"], one["healed"]) for one in healed.document()["items"]}
        assert healed.exit_code == 0, healed.err
        assert sources == {"log": ("kept-version", True), "time-index": ("kept-version", True)}
        assert bucket.current() == written
