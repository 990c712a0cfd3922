"""What `orphans apply` refuses: each with its own words and exit code, and nothing changed."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

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

CONFIRMED = ("--yes", "--cluster-id", CLUSTER_ID)
REFUSED: dict[str, tuple[tuple[str, ...], int]] = {
    "nobody to ask": ((), 2),
    "yes alone": (("--yes",), 2),
    "another cluster typed": (("--yes", "--cluster-id", OTHER_CLUSTER_ID), 2),
    "rate that is none": ((*CONFIRMED, "--rate", "nan"), 2),
    "deleting by a plan for quarantine": ((*CONFIRMED, "--delete"), 2),
    "age below an hour": ((*CONFIRMED, "--min-age", "59m"), 2),
    "no age": ((*CONFIRMED, "--min-age", "0s"), 2),
    "receipts in no folder": ((*CONFIRMED, "--receipts", "{folder}/missing/receipts"), 1),
    **{f"receipts on {name}": ((*CONFIRMED, "--receipts", f"/dev/{name}"), 1) for name in ("full", "null", "zero")},
    "topics without end": ((*CONFIRMED, "--live-topic-ids", "/dev/zero"), 1),
    "a snapshot without end": ((*CONFIRMED, "--kraft-snapshot", "/dev/zero"), 1),
    "a snapshot that is a pipe": ((*CONFIRMED, "--kraft-snapshot", "{folder}/pipe"), 1),
}


def test_what_is_not_confirmed_or_cannot_be_read_or_recorded_is_not_done(planned: CrashedClusterOnDisk) -> None:
    os.mkfifo(planned.folder / "pipe")
    before = planned.objects()

    for case, (words, code) in REFUSED.items():
        outcome = planned.apply_unconfirmed(*(word.replace("{folder}", str(planned.folder)) for word in words))

        assert (outcome.exit_code, outcome.out, planned.receipts_file.exists()) == (code, "", False), case
        assert without_own(planned.objects()) == before, case
    assert planned.apply().exit_code == 0


def test_a_plan_is_not_carried_out_by_the_metadata_of_others_or_half_of_it(
    planned: CrashedClusterOnDisk, captures: Path, tmp_path: Path
) -> None:
    half = metadata_of(planned, tmp_path / "half")
    shutil.rmtree(half / "__remote_log_metadata-3")
    before = planned.objects()

    of_others = replace(planned, log_dir=captures / "aiven-plain-4.3.1/data").apply()
    by_half = replace(planned, log_dir=half).apply()
    unsaid = planned.tieredctl("orphans", "apply", planned.plan_file, "--log-dir", planned.log_dir, *CONFIRMED)

    assert [outcome.exit_code for outcome in (of_others, by_half, unsaid)] == [2, 5, 2]
    assert "metadata partition 3 is missing here" in by_half.err
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


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


def test_a_plan_is_used_once(planned: CrashedClusterOnDisk) -> None:
    first = planned.apply()
    after = without_lease(planned.objects())

    second = planned.apply()

    assert (first.exit_code, second.exit_code) == (0, 2)
    assert without_lease(planned.objects()) == after


def test_a_plan_is_valid_for_as_long_as_it_says(cluster: CrashedClusterOnDisk) -> None:
    cluster.plan(*AGED, *ENOUGH, "--valid-for", "0s")
    before = cluster.objects()

    outcome = cluster.apply()

    assert outcome.exit_code == 2
    assert cluster.objects() == before


def test_a_store_that_shrank_makes_a_plan_too_large(planned: CrashedClusterOnDisk) -> None:
    kept = planned_keys(planned.plan_file)
    for key in set(planned.objects()) - kept:
        (planned.bucket / key).unlink()
    before = planned.objects()

    outcome = planned.apply()

    assert outcome.exit_code == 2
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_store_that_another_run_changes_is_left_alone(planned: CrashedClusterOnDisk) -> None:
    before = planned.objects()

    with lease_held(FileStore(str(planned.bucket)), "orphans apply", lambda: time.time_ns() // 1_000_000):
        outcomes = [planned.apply(), planned.purge(*AT_ONCE)]

    assert [outcome.exit_code for outcome in outcomes] == [11, 11]
    assert (without_own(planned.objects()), planned.receipts_file.exists()) == (before, False)


def test_a_rehearsal_changes_nothing(planned: CrashedClusterOnDisk) -> None:
    before = planned.objects()

    outcome = planned.apply_unconfirmed("--dry-run", "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]["dryRun"]) == (0, True)
    assert planned.objects() == before
    assert not planned.receipts_file.exists()


def test_an_object_that_was_written_again_stops_a_plan(planned: CrashedClusterOnDisk) -> None:
    key = min(planned_keys(planned.plan_file))
    (planned.bucket / key).write_bytes(b"other bytes")

    outcome = planned.apply()

    assert outcome.exit_code == 5
    assert (planned.bucket / key).read_bytes() == b"other bytes"


def test_an_object_that_is_gone_is_skipped(planned: CrashedClusterOnDisk) -> None:
    (planned.bucket / min(planned_keys(planned.plan_file))).unlink()

    outcome = planned.apply("-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["skipped"]) == (5, ORPHANS - 1, 1)


def test_a_store_that_cannot_keep_a_quarantine_or_is_gone_is_refused(
    planned: CrashedClusterOnDisk, tmp_path: Path
) -> None:
    (planned.bucket / ".tieredctl").write_bytes(b"a file where a folder should be")
    before = planned.objects()

    without_quarantine = planned.apply()
    kept = planned.objects()
    planned.bucket.rename(tmp_path / "moved")
    gone = planned.apply()

    assert (without_quarantine.exit_code, gone.exit_code, kept) == (1, 2, before)
    assert not planned.bucket.exists()
    assert not planned.receipts_file.exists()


def test_what_is_not_a_whole_plan_is_refused(planned: CrashedClusterOnDisk) -> None:
    plan, before = planned.plan_file.read_bytes(), planned.objects()
    altered = [plan + b"\n", plan + b'{"key":"tiered/notes.txt"}\n']

    for data in (*altered, b"", b"\x00" * 500, b"{}\n" * 40, b"\x1f\x8b\x08", b"[" * 9_999):
        planned.plan_file.write_bytes(data)
        assert (planned.apply().exit_code, planned.objects() == before) == (2, True), data[-40:]
    planned.plan_file.unlink()
    assert planned.apply().exit_code == 2
    planned.plan_file.symlink_to("/dev/zero")
    assert planned.apply().exit_code == 1
    planned.plan_file.unlink()
    os.mkfifo(planned.plan_file)
    assert planned.apply().exit_code == 1
    assert planned.objects() == before
