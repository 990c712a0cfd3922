"""What `orphans purge` refuses: nothing is deleted for good by metadata that cannot know whose it is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import (
    CLUSTER_ID,
    ORPHANS,
    OTHER_CLUSTER_ID,
    CrashedClusterOnDisk,
    metadata_of,
    without_lease,
)

IN_FIRST_METADATA_PARTITION = 16
"""How many of the orphans have their events there."""


@pytest.fixture
def quarantined(planned: CrashedClusterOnDisk) -> CrashedClusterOnDisk:
    """A cluster whose orphans are in quarantine."""
    assert planned.apply().exit_code == 0
    return planned


def purge(cluster: CrashedClusterOnDisk, *words: str | Path) -> Outcome:
    return cluster.tieredctl("orphans", "purge", *cluster.store, "--older-than", "0s", *words)


def test_a_purge_by_half_of_the_history_is_refused(quarantined: CrashedClusterOnDisk, tmp_path: Path) -> None:
    half = replace(quarantined, log_dir=metadata_of(quarantined, tmp_path / "half"))
    shutil.rmtree(half.log_dir / "__remote_log_metadata-0")
    before = without_lease(quarantined.objects())

    purged = half.purge("--older-than", "0s")

    assert purged.exit_code == 5
    assert "half of the history" in purged.err
    assert without_lease(quarantined.objects()) == before


def test_another_clusters_metadata_is_refused(quarantined: CrashedClusterOnDisk, captures: Path) -> None:
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", OTHER_CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", captures / "aiven-plain-4.3.1/data", "--layout", "aiven", *confirmed)

    assert outcome.exit_code == 2
    assert f"removed objects of cluster {CLUSTER_ID}, not of {OTHER_CLUSTER_ID}" in outcome.err
    assert without_lease(quarantined.objects()) == before


def test_another_layout_is_refused(quarantined: CrashedClusterOnDisk) -> None:
    confirmed = ("--offline-metadata", "--yes", "--cluster-id", CLUSTER_ID)
    before = without_lease(quarantined.objects())

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--layout", "local", *confirmed)

    assert outcome.exit_code == 2
    assert "of layout aiven, not of local" in outcome.err
    assert without_lease(quarantined.objects()) == before


@pytest.mark.parametrize("words", [(), ("--yes",), ("--yes", "--cluster-id", OTHER_CLUSTER_ID)])
def test_what_is_not_confirmed_is_not_done(quarantined: CrashedClusterOnDisk, words: tuple[str, ...]) -> None:
    before = quarantined.objects()

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--offline-metadata", *words)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert quarantined.objects() == before


def test_a_rehearsal_deletes_nothing(quarantined: CrashedClusterOnDisk) -> None:
    before = quarantined.objects()

    outcome = purge(quarantined, "--log-dir", quarantined.log_dir, "--offline-metadata", "--dry-run")

    assert outcome.exit_code == 0
    assert "Would delete 115 of 115" in outcome.err
    assert quarantined.objects() == before


def test_what_is_young_in_quarantine_is_kept(quarantined: CrashedClusterOnDisk) -> None:
    before = without_lease(quarantined.objects())

    outcome = quarantined.purge("--older-than", "7d")

    assert outcome.exit_code == 0
    assert without_lease(quarantined.objects()) == before


def test_events_that_may_be_in_a_partition_that_is_not_here_keep_what_they_may_name(
    quarantined: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    half = replace(quarantined, log_dir=metadata_of(quarantined, tmp_path / "half"))
    for number in (1, 2, 3):
        shutil.rmtree(half.log_dir / f"__remote_log_metadata-{number}")

    outcome = half.purge("--older-than", "0s", "-o", "json")

    summary = outcome.document()["summary"]
    assert outcome.exit_code == 5
    assert (summary["done"], summary["skipped"]) == (IN_FIRST_METADATA_PARTITION, ORPHANS - IN_FIRST_METADATA_PARTITION)
