"""A crashed cluster's debris removed from real servers, put back, and removed for good."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_bucket import STUCK, UNFINISHED, FilledBucket, broker_of_bucket, crashed_contents, store_words
from tests.cli.crashed_cluster import (
    AT_ONCE,
    ENOUGH,
    NO_AGE,
    CrashedCluster,
    plan_lines,
    planned_keys,
)
from tests.rigs.buckets import AzureContainer, Bucket, GcsBucket, S3Bucket

SERVERS: Mapping[str, type[Bucket]] = {
    "moto": S3Bucket,
    "versitygw": S3Bucket,
    "fake_gcs_server": GcsBucket,
    "gcp_storage_emulator": GcsBucket,
    "azurite": AzureContainer,
}
WITHOUT_CONDITIONS = "gcp_storage_emulator"
KEEPING_CONDITIONS = [server for server in SERVERS if server != WITHOUT_CONDITIONS]


@pytest.fixture(scope="module")
def contents(captures: Path) -> Mapping[str, bytes]:
    return crashed_contents(captures)


@pytest.fixture(scope="module")
def buckets() -> dict[str, FilledBucket]:
    """The bucket of each server that was asked for."""
    return {}


@pytest.fixture
def filled(
    server: str, buckets: dict[str, FilledBucket], contents: Mapping[str, bytes], request: pytest.FixtureRequest
) -> FilledBucket:
    if server not in buckets:
        buckets[server] = FilledBucket(SERVERS[server](request.getfixturevalue(server).endpoint), contents)
        buckets[server].empty()  # of what other modules left there
    buckets[server].fill()
    return buckets[server]


@pytest.fixture
def cluster(tieredctl: Tieredctl, captures: Path, filled: FilledBucket, tmp_path: Path) -> CrashedCluster:
    return CrashedCluster(tieredctl, broker_of_bucket(captures, filled.contents), tmp_path, store_words(filled.bucket))


@pytest.mark.parametrize("server", KEEPING_CONDITIONS)
def test_what_is_removed_comes_back_as_it_was(cluster: CrashedCluster, filled: FilledBucket) -> None:
    planned = cluster.plan(*ENOUGH, *NO_AGE, "-o", "json")
    doomed = planned_keys(cluster.plan_file)
    applied = cluster.apply("-o", "json")
    left = set(filled.kept())
    scanned = cluster.scan("-o", "json")
    restored = cluster.restore("-o", "json")

    assert (planned.exit_code, applied.exit_code, scanned.exit_code, restored.exit_code) == (0, 0, 0, 0)
    assert len(doomed) == planned.document()["summary"]["planned"] == STUCK + UNFINISHED
    assert applied.document()["summary"]["done"] == restored.document()["summary"]["done"] == STUCK + UNFINISHED
    assert left == set(filled.contents) - doomed
    assert scanned.document()["summary"]["status"]["orphan"]["objects"] == 0
    assert filled.kept() == filled.as_filled()


@pytest.mark.parametrize("server", ["versitygw", "fake_gcs_server", "azurite"])
def test_receipts_in_the_store_undo_a_plan(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    plan_id = plan_lines(cluster.plan_file)[0]["planId"]

    applied = cluster.apply("--receipts", "store")
    restored = cluster.tieredctl("orphans", "restore", plan_id, *cluster.store, "-o", "json")

    assert f"orphans restore {plan_id} --store " in applied.err
    assert (applied.exit_code, restored.exit_code, cluster.receipts_file.exists()) == (0, 0, False)
    assert restored.document()["summary"]["done"] == len(planned_keys(cluster.plan_file)) == UNFINISHED
    assert sorted(set(filled.contents) - set(filled.keys())) == []


@pytest.mark.parametrize("server", KEEPING_CONDITIONS)
def test_a_purge_empties_the_quarantine(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    cluster.apply()
    quarantined = len(filled.in_quarantine())

    purged = cluster.purge(*AT_ONCE, "-o", "json")

    assert (purged.exit_code, purged.document()["summary"]["done"]) == (0, quarantined)
    assert quarantined >= UNFINISHED
    assert filled.in_quarantine() == []
    assert len(filled.kept()) == len(filled.contents) - UNFINISHED


@pytest.mark.parametrize("server", [WITHOUT_CONDITIONS])
def test_a_server_that_cannot_keep_two_runs_apart_is_refused(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE)

    applied = cluster.apply()

    assert applied.exit_code == 1
    assert "cannot keep a lease" in applied.err
    assert sorted(filled.keys()) == sorted(filled.contents)


@pytest.mark.parametrize("server", [WITHOUT_CONDITIONS])
def test_receipts_do_not_go_into_a_store_that_may_lose_them(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE)

    applied = cluster.apply("--no-lease", "--receipts", "store")

    assert applied.exit_code == 1
    assert sorted(filled.kept()) == sorted(filled.contents)


@pytest.mark.parametrize("server", [WITHOUT_CONDITIONS])
def test_without_a_lease_such_a_server_is_served_all_the_same(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")

    applied = cluster.apply("--no-lease")
    quarantined = len(filled.in_quarantine())
    restored = cluster.restore("--no-lease")

    assert (applied.exit_code, restored.exit_code, quarantined) == (0, 0, UNFINISHED)
    assert {key: one.data for key, one in filled.kept().items()} == filled.contents


@pytest.mark.parametrize("server", [WITHOUT_CONDITIONS])
def test_such_a_server_remembers_that_a_plan_was_used(cluster: CrashedCluster, filled: FilledBucket) -> None:
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    cluster.apply("--no-lease")
    cluster.receipts_file.unlink()
    before = filled.kept()

    again = cluster.apply("--no-lease")

    assert again.exit_code == 2
    assert "a plan can be used only once" in again.err
    assert filled.kept() == before


@pytest.mark.parametrize("server", [WITHOUT_CONDITIONS, "versitygw", "fake_gcs_server", "azurite"])
def test_lost_receipts_are_undone_from_the_quarantine_alone(
    cluster: CrashedCluster, filled: FilledBucket, server: str
) -> None:
    unguarded = ("--no-lease",) if server == WITHOUT_CONDITIONS else ()
    cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished")
    cluster.apply(*unguarded)
    cluster.receipts_file.unlink()
    plan_id = plan_lines(cluster.plan_file)[0]["planId"]

    restored = cluster.tieredctl("orphans", "restore", plan_id, *cluster.store, *unguarded, "-o", "json")

    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, UNFINISHED)
    assert {key: one.data for key, one in filled.kept().items()} == filled.contents
