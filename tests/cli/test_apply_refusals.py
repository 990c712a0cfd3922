"""What `orphans apply` refuses: each with its own words and exit code, and nothing changed."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    CLUSTER_ID,
    ENOUGH,
    ORPHANS,
    OTHER_CLUSTER_ID,
    CrashedClusterOnDisk,
    metadata_of,
    planned_keys,
    verdict_on,
    without_lease,
    without_own,
)
from tieredctl.ops.guards.lease import lease_held
from tieredctl.storage.file import FileStore

REFUSED_APPLIES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "nobody to ask": ((), 2, "needs confirmation"),
    "yes alone": (("--yes",), 2, "needs confirmation"),
    "another cluster typed": (("--yes", "--cluster-id", OTHER_CLUSTER_ID), 2, f"This is cluster {CLUSTER_ID}, not"),
    "rate that is none": (("--yes", "--cluster-id", CLUSTER_ID, "--rate", "nan"), 2, "nan"),
}


@pytest.mark.parametrize(("words", "code", "said"), REFUSED_APPLIES.values(), ids=REFUSED_APPLIES)
def test_what_is_not_confirmed_is_not_done(
    planned: CrashedClusterOnDisk, words: tuple[str, ...], code: int, said: str
) -> None:
    before = planned.objects()

    outcome = planned.apply_unconfirmed(*words)

    assert (outcome.exit_code, outcome.out) == (code, "")
    assert said in outcome.err
    assert not planned.receipts_file.exists()
    assert planned.objects() == before


def test_nothing_is_removed_while_an_object_is_missing_that_was_there_when_the_plan_was_made(
    planned: CrashedClusterOnDisk,
) -> None:
    logs = (key for key in sorted(planned.objects()) if key.endswith(".log"))
    lost = next(key for key in logs if verdict_on(planned, key)[0] == "owned")
    (planned.bucket / lost).unlink()
    before = without_own(planned.objects())

    refused = [planned.apply("--dry-run"), planned.apply()]
    left = without_own(planned.objects())
    accepted = planned.apply("--max-missing", "1")

    assert [outcome.exit_code for outcome in (*refused, accepted)] == [5, 5, 0]
    assert all(lost in outcome.err for outcome in refused)
    assert left == before
    assert planned_keys(planned.plan_file).isdisjoint(without_own(planned.objects()))


def test_who_confirms_is_told_what_the_plan_lets_be_missing(planned: CrashedClusterOnDisk) -> None:
    planned.plan("--max-missing", "3", "--force", *ENOUGH)

    asked = [planned.apply_unconfirmed(), planned.apply_unconfirmed("--max-missing", "0")]

    assert ["3 promised objects" in outcome.err for outcome in asked] == [True, False], asked
    assert [outcome.exit_code for outcome in asked] == [2, 2]


def test_a_log_directory_is_not_a_live_cluster(planned: CrashedClusterOnDisk) -> None:
    confirmed = ("--yes", "--cluster-id", CLUSTER_ID)

    outcome = planned.tieredctl("orphans", "apply", planned.plan_file, "--log-dir", planned.log_dir, *confirmed)

    assert outcome.exit_code == 2
    assert "give --bootstrap-server" in outcome.err


def test_a_plan_is_not_carried_out_by_another_clusters_metadata(planned: CrashedClusterOnDisk, captures: Path) -> None:
    before = planned.objects()

    outcome = replace(planned, log_dir=captures / "aiven-plain-4.3.1/data").apply()

    assert outcome.exit_code == 2
    assert f"not {CLUSTER_ID}" in outcome.err
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_plan_is_not_carried_out_by_half_of_the_metadata(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    half = replace(planned, log_dir=metadata_of(planned, tmp_path / "half"))
    shutil.rmtree(half.log_dir / "__remote_log_metadata-3")
    before = planned.objects()

    outcome = half.apply()

    assert outcome.exit_code == 5
    assert "metadata partition 3 is missing here" in outcome.err
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_plan_is_used_once(planned: CrashedClusterOnDisk) -> None:
    first = planned.apply()
    after = without_lease(planned.objects())

    second = planned.apply()

    assert (first.exit_code, second.exit_code) == (0, 2)
    assert "a plan can be used only once" in second.err
    assert without_lease(planned.objects()) == after


def test_a_plan_is_valid_for_as_long_as_it_says(cluster: CrashedClusterOnDisk) -> None:
    cluster.plan(*AGED, *ENOUGH, "--valid-for", "0s")
    before = cluster.objects()

    outcome = cluster.apply()

    assert outcome.exit_code == 2
    assert "was valid for 0 hours" in outcome.err
    assert cluster.objects() == before


def test_a_store_that_shrank_makes_a_plan_too_large(planned: CrashedClusterOnDisk) -> None:
    kept = planned_keys(planned.plan_file)
    for key in set(planned.objects()) - kept:
        (planned.bucket / key).unlink()
    before = planned.objects()

    outcome = planned.apply()

    assert outcome.exit_code == 2
    assert "115 of the 115 objects" in outcome.err
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_store_that_another_run_changes_is_left_alone(planned: CrashedClusterOnDisk) -> None:
    before = planned.objects()

    with lease_held(FileStore(str(planned.bucket)), "orphans apply", lambda: time.time_ns() // 1_000_000):
        outcomes = [planned.apply(), planned.purge(*AT_ONCE)]

    assert [outcome.exit_code for outcome in outcomes] == [11, 11]
    assert all("is locked by" in outcome.err for outcome in outcomes)
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_rehearsal_changes_nothing(planned: CrashedClusterOnDisk) -> None:
    before = planned.objects()

    outcome = planned.apply_unconfirmed("--dry-run", "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["dryRun"]) == (0, True)
    assert planned.objects() == before
    assert not planned.receipts_file.exists()


def test_a_plan_of_nothing_is_not_written(cluster: CrashedClusterOnDisk) -> None:
    before = cluster.objects()

    planned = cluster.plan(*AGED, "--topic", "events33")

    assert planned.exit_code == 0
    assert not cluster.plan_file.exists()
    assert cluster.objects() == before


def test_an_object_that_was_written_again_stops_a_plan(planned: CrashedClusterOnDisk) -> None:
    key = min(planned_keys(planned.plan_file))
    (planned.bucket / key).write_bytes(b"other bytes")

    outcome = planned.apply()

    assert outcome.exit_code == 5
    assert f"{key} was rewritten after planning" in outcome.err
    assert (planned.bucket / key).read_bytes() == b"other bytes"


def test_an_object_that_is_gone_is_skipped(planned: CrashedClusterOnDisk) -> None:
    (planned.bucket / min(planned_keys(planned.plan_file))).unlink()

    outcome = planned.apply("-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["skipped"]) == (5, ORPHANS - 1, 1)


def test_a_store_that_is_not_there_any_more_is_refused(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    planned.bucket.rename(tmp_path / "moved")

    outcome = planned.apply()

    assert outcome.exit_code == 2
    assert "There is no" in outcome.err
    assert not planned.bucket.exists()
    assert not planned.receipts_file.exists()


def test_a_store_that_cannot_keep_a_quarantine_is_refused(planned: CrashedClusterOnDisk) -> None:
    (planned.bucket / ".tieredctl").write_bytes(b"a file where a folder should be")
    before = planned.objects()

    outcome = planned.apply()

    assert outcome.exit_code == 1
    assert planned.objects() == before


def test_receipts_that_cannot_be_written_are_refused(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    before = planned.objects()

    outcome = planned.apply("--receipts", tmp_path / "missing" / "receipts")

    assert outcome.exit_code == 1
    assert "cannot be written" in outcome.err
    assert without_own(planned.objects()) == before


@pytest.mark.parametrize("change", [b"\n", b'{"key":"tiered/notes.txt"}\n'])
def test_a_plan_that_was_altered_is_refused(planned: CrashedClusterOnDisk, change: bytes) -> None:
    planned.plan_file.write_bytes(planned.plan_file.read_bytes() + change)
    before = planned.objects()

    outcome = planned.apply()

    assert outcome.exit_code == 2
    assert "a plan that was altered is not applied" in outcome.err
    assert planned.objects() == before


@pytest.mark.parametrize("data", [b"", b"\x00" * 500, b"{}\n" * 40, b"\x1f\x8b\x08", b"[" * 9_999])
def test_a_file_that_is_not_a_plan_is_refused(cluster: CrashedClusterOnDisk, data: bytes) -> None:
    cluster.plan_file.write_bytes(data)

    outcome = cluster.apply()

    assert outcome.exit_code == 2
    assert "is not a valid plan" in outcome.err


def test_a_plan_that_is_not_there_is_refused(cluster: CrashedClusterOnDisk) -> None:
    outcome = cluster.apply()

    assert outcome.exit_code == 2
    assert "There is no plan" in outcome.err


@pytest.mark.parametrize("option", [None, "--live-topic-ids", "--kraft-snapshot"])
def test_what_gives_bytes_for_ever_is_read_neither_as_a_plan_nor_as_topics(
    planned: CrashedClusterOnDisk, option: str | None
) -> None:
    endless, before = Path("/dev/zero"), planned.objects()
    if option is None:
        planned.plan_file.unlink()
        planned.plan_file.symlink_to(endless)

    outcome = planned.apply(*(() if option is None else (option, endless)))

    assert outcome.exit_code == 1
    assert "cannot be read: " in outcome.err
    assert planned.objects() == before


@pytest.mark.parametrize("option", [None, "--kraft-snapshot"])
def test_a_pipe_is_neither_a_plan_nor_a_snapshot(
    planned: CrashedClusterOnDisk, tmp_path: Path, option: str | None
) -> None:
    pipe = planned.plan_file if option is None else tmp_path / "pipe"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)

    outcome = planned.apply(*(() if option is None else (option, pipe)))

    assert outcome.exit_code == 1
    assert f"{pipe} cannot be read: it is not a regular file." in outcome.err


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/zero"])
def test_receipts_on_a_device_are_refused_before_anything_is_removed(
    planned: CrashedClusterOnDisk, device: str
) -> None:
    before = planned.objects()

    outcome = planned.apply("--receipts", device)

    assert outcome.exit_code == 1
    assert f"{device} exists and is not a regular file." in outcome.err
    assert without_own(planned.objects()) == before
    assert planned.apply().exit_code == 0
