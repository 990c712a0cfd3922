"""What cannot be put back, and receipts that nothing is built on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    ENOUGH,
    ORPHANS,
    CrashedClusterOnDisk,
    planned_keys,
    put,
    without_lease,
    without_own,
)


def test_a_plan_that_was_undone_is_not_used_again(planned: CrashedClusterOnDisk) -> None:
    planned.apply()
    planned.restore()

    again = planned.apply()

    assert again.exit_code == 2
    assert "restored before" in again.err


def test_receipts_that_are_not_there_cannot_be_undone(cluster: CrashedClusterOnDisk) -> None:
    by_file, by_id = cluster.restore(), cluster.tieredctl("orphans", "restore", "0123", *cluster.store)

    assert (by_file.exit_code, by_id.exit_code) == (2, 2)
    assert "There are no receipts" in by_file.err
    assert "has no receipts of a plan 0123" in by_id.err


def test_receipts_that_a_run_left_have_to_be_named_again(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    key = min(planned_keys(planned.plan_file))
    data = (planned.bucket / key).read_bytes()
    (planned.bucket / key).write_bytes(b"other bytes")
    stopped = planned.apply("--receipts", tmp_path / "mine")
    (planned.bucket / key).write_bytes(data)
    before = without_lease(planned.objects())

    resumed = planned.apply()

    assert (stopped.exit_code, resumed.exit_code) == (5, 2)
    assert "left receipts, but not in" in resumed.err
    assert without_lease(planned.objects()) == before


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no receipts": lambda data: b"these are no receipts\n" + data,
    "a header alone, cut": lambda data: data[:40],
    "a line that is none": lambda data: data.replace(b'"step":"removed"', b'"step":"removes"', 1),
    "a line without a key": lambda data: data.replace(b'"key":', b'"kex":', 1),
    "bytes": lambda data: data[:2_000] + b"\xff\xfe" + data[2_000:],
    "an older release's": lambda data: data.replace(b"tieredctl/v1", b"tieredctl/v0"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_receipts_change_nothing(planned: CrashedClusterOnDisk, damage: Callable[[bytes], bytes]) -> None:
    planned.apply()
    planned.receipts_file.write_bytes(damage(planned.receipts_file.read_bytes()))
    before = without_own(planned.objects())

    outcome = planned.restore()

    assert outcome.exit_code == 1
    assert "cannot be read as receipts" in outcome.err
    assert without_own(planned.objects()) == before


def test_another_plans_receipts_are_not_added_to(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    planned.apply()
    receipts = planned.receipts_file.read_bytes()
    planned.restore()
    planned.plan(*AGED, *ENOUGH, "--force")

    outcome = planned.apply()

    assert outcome.exit_code == 1
    assert "has the receipts of another plan" in outcome.err
    assert planned.receipts_file.read_bytes().startswith(receipts)
    assert planned_keys(planned.plan_file) <= set(planned.objects())


@pytest.mark.parametrize("data", [b"notes of mine", b"notes\nof mine", b'{"kind":"RemovalPlan"}\n'])
def test_a_file_that_has_no_receipts_is_not_written_over(
    planned: CrashedClusterOnDisk, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "notes").write_bytes(data)

    outcome = planned.apply("--receipts", tmp_path / "notes")

    assert outcome.exit_code == 1
    assert (tmp_path / "notes").read_bytes() == data
    assert planned_keys(planned.plan_file) <= set(planned.objects())


def test_what_was_purged_cannot_be_put_back(planned: CrashedClusterOnDisk) -> None:
    planned.apply()
    planned.purge(*AT_ONCE)
    before = without_lease(planned.objects())

    outcome = planned.restore("-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, ORPHANS)
    assert "is gone or was altered" in outcome.document()["items"][0]["error"]
    assert without_own(planned.objects()) == without_own(before)


@pytest.mark.parametrize("grown", [b"", b" and more"])
def test_another_object_under_a_key_is_not_written_over(planned: CrashedClusterOnDisk, grown: bytes) -> None:
    key = min(planned_keys(planned.plan_file))
    data = (planned.bucket / key).read_bytes()
    other = bytes(len(data)) + grown
    planned.apply()
    put(planned, key, other)

    outcome = planned.restore("-o", "json")

    summary = outcome.document()["summary"]
    assert (planned.bucket / key).read_bytes() == other
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, ORPHANS - 1, 1)
