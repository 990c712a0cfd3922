"""What cannot be put back, and receipts that nothing is built on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import (
    AGED,
    AT_ONCE,
    CLUSTER_ID,
    ENOUGH,
    ORPHANS,
    CrashedClusterOnDisk,
    plan_lines,
    planned_keys,
    put,
    without_lease,
    without_own,
)
from tieredctl.formats.removal_files import RECEIPT
from tieredctl.model.removal import QuarantinedCopy, Receipt, ReceiptStep
from tieredctl.ops.guards.own_objects import LEASE_KEY, QUARANTINE, receipts_folder
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ports.object_store import RESERVED_FOLDER, StoredObject


def test_a_plan_that_was_undone_is_not_used_again_and_without_receipts_nothing_is(
    planned: CrashedClusterOnDisk,
) -> None:
    by_file, by_id = planned.restore(), planned.tieredctl("orphans", "restore", "0123", *planned.store)
    planned.apply()
    planned.restore()

    again = planned.apply()

    assert (by_file.exit_code, by_id.exit_code, again.exit_code) == (2, 2, 2)
    assert "already restored" in again.err


def test_nothing_moves_where_receipts_cannot_be_written(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    """By a link that anybody may have placed: receipts are read through it, and not written."""
    planned.apply("--receipts", tmp_path / "mine")
    anybodys = tmp_path / "anybodys"
    anybodys.mkdir()
    anybodys.chmod(0o777)
    (anybodys / "link").symlink_to(tmp_path / "mine")
    before = planned.objects()

    refused = planned.tieredctl("orphans", "restore", anybodys / "link")

    assert refused.exit_code == 1, refused.err
    assert planned.objects() == before


def test_receipts_that_a_run_left_have_to_be_named_again(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    key = min(planned_keys(planned.plan_file))
    data = (planned.bucket / key).read_bytes()
    (planned.bucket / key).write_bytes(b"other bytes")
    stopped = planned.apply("--receipts", tmp_path / "mine")
    (planned.bucket / key).write_bytes(data)
    before = without_lease(planned.objects())

    resumed = planned.apply()

    assert (stopped.exit_code, resumed.exit_code) == (5, 2)
    assert without_lease(planned.objects()) == before


DAMAGED_HEADERS: dict[str, Callable[[bytes], bytes]] = {
    "no receipts": lambda data: b"these are no receipts\n" + data,
    "a header alone, cut": lambda data: data[:40],
    "an older release's": lambda data: data.replace(b"tieredctl/v1", b"tieredctl/v0"),
}


def test_receipts_of_nobody_knows_which_plan_change_nothing(planned: CrashedClusterOnDisk) -> None:
    planned.apply()
    receipts, before = planned.receipts_file.read_bytes(), without_own(planned.objects())
    for case, damage in DAMAGED_HEADERS.items():
        planned.receipts_file.write_bytes(damage(receipts))

        assert planned.restore().exit_code == 1, case
        assert without_own(planned.objects()) == before, case


DAMAGED_LINES: dict[str, Callable[[bytes], bytes]] = {
    "a line that is none": lambda data: data.replace(b'"step":"removed"', b'"step":"removes"', 1),
    "a line without a key": lambda data: data.replace(b'"key":', b'"kex":', 1),
    "bytes": lambda data: data[:2_000] + b"\xff\xfe" + data[2_000:],
    "a line more": lambda data: data.replace(b"\n", b"\ngarbage\n", 1),
    "all lines": lambda data: data.replace(b'"step"', b'"stop"'),
}


@pytest.mark.parametrize("in_store", [False, True], ids=["in a file", "in the store"])
def test_a_damaged_line_of_receipts_is_named_and_stops_nothing(planned: CrashedClusterOnDisk, in_store: bool) -> None:
    original = without_own(planned.objects())
    for case, damage in DAMAGED_LINES.items():
        planned.receipts_file.unlink(missing_ok=True)
        planned.plan(*AGED, *ENOUGH, "--force")
        planned.apply(*(("--receipts", "store") if in_store else ()))
        folder = planned.bucket / receipts_folder(plan_id_of(planned))
        file = max(folder.iterdir()) if in_store else planned.receipts_file
        file.write_bytes(damage(file.read_bytes()))

        outcome = restore_by_id(planned) if in_store else planned.restore("-o", "json")

        assert (outcome.exit_code, f"{file.name}, line " in outcome.err) == (5, True), case
        assert outcome.document()["summary"]["damagedReceipts"] > 0, case
        assert without_own(planned.objects()) == original, case


def plan_id_of(cluster: CrashedClusterOnDisk) -> str:
    plan_id: str = plan_lines(cluster.plan_file)[0]["planId"]
    return plan_id


def times_of(cluster: CrashedClusterOnDisk) -> dict[str, int]:
    """When each object was written, in ms."""
    return {key: (cluster.bucket / key).stat().st_mtime_ns // 1_000_000 for key in without_own(cluster.objects())}


def restore_by_id(cluster: CrashedClusterOnDisk) -> Outcome:
    return cluster.tieredctl("orphans", "restore", plan_id_of(cluster), *cluster.store, "-o", "json")


@pytest.mark.parametrize("in_store", [False, True], ids=["in a file", "in the store"])
def test_lost_receipts_are_undone_from_the_quarantine_alone(planned: CrashedClusterOnDisk, in_store: bool) -> None:
    original, times = without_own(planned.objects()), times_of(planned)
    for lost in (("receipts",), ("receipts", "plans"), ("receipts", "plans", "removed")):
        planned.plan(*AGED, *ENOUGH, "--force")
        assert planned.apply(*(("--receipts", "store") if in_store else ())).exit_code == 0, lost
        planned.receipts_file.unlink(missing_ok=True)
        for folder in lost:
            shutil.rmtree(planned.bucket / RESERVED_FOLDER / folder, ignore_errors=True)

        restored, again = restore_by_id(planned), restore_by_id(planned)
        used = planned.apply()

        assert [one.exit_code for one in (restored, again, used)] == [0, 0, 2], lost
        assert [one.document()["summary"]["done"] for one in (restored, again)] == [ORPHANS, ORPHANS], lost
        assert (without_own(planned.objects()), times_of(planned)) == (original, times), lost


@pytest.mark.parametrize("alter", [Path.unlink, lambda copy: copy.write_bytes(b"")], ids=["gone", "cut"])
def test_of_a_copy_that_is_gone_or_was_cut_all_others_are_put_back(
    planned: CrashedClusterOnDisk, alter: Callable[[Path], object]
) -> None:
    planned.apply()
    planned.receipts_file.unlink()
    copies = sorted(file for file in (planned.bucket / QUARANTINE).rglob("*") if file.is_file() and file.stat().st_size)
    alter(copies[0])

    outcome = restore_by_id(planned)

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, ORPHANS - 1, 1)


def forged(cluster: CrashedClusterOnDisk, forgery: str) -> None:
    """Receipts and quarantine altered to name what is live, or tieredctl's own."""
    live = sorted(set(without_own(cluster.objects())) - planned_keys(cluster.plan_file))
    copy_of_another = min(
        file.relative_to(cluster.bucket).as_posix() for file in (cluster.bucket / QUARANTINE).rglob("*.log~*")
    )
    lines = cluster.receipts_file.read_bytes().splitlines(keepends=True)
    forged_key = quarantine_key(CLUSTER_ID, plan_id_of(cluster), StoredObject(live[0], 6, 0, "1"))
    copies = {
        "a copy of another object": copy_of_another,
        "a live object for the copy": live[1],
        "the lease": LEASE_KEY,
        "a copy forged in quarantine": forged_key,
    }
    copy = copies.get(forgery, copy_of_another)
    key = LEASE_KEY + "2" if forgery == "a key of tieredctl's own" else live[0]
    if forgery == "a copy forged in quarantine":
        put(cluster, copy, b"forged")
    forged_copy = QuarantinedCopy(copy, (cluster.bucket / copy).stat().st_size, 0, "1")
    steps = (ReceiptStep.COPIED, ReceiptStep.REMOVED, ReceiptStep.RESTORED, ReceiptStep.DELETING)
    lines += [RECEIPT.encode(Receipt(step, key, 0, forged_copy.size, forged_copy)) for step in steps]
    live_copy = QuarantinedCopy(live[1], 1, 0, "1")
    lines += [RECEIPT.encode(Receipt(step, "never/there", 0, 1, live_copy)) for step in steps]
    cluster.receipts_file.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    "forgery",
    [
        *("a copy of another object", "a live object for the copy", "the lease"),
        *("a copy forged in quarantine", "a key of tieredctl's own"),
    ],
)
@pytest.mark.parametrize("command", ["restore", "apply"])
def test_receipts_that_name_what_is_live_touch_nothing_live(
    planned: CrashedClusterOnDisk, forgery: str, command: str
) -> None:
    planned.apply()
    forged(planned, forgery)
    live = set(without_own(planned.objects()))
    before = {key: data for key, data in planned.objects().items() if key in live}
    doomed = planned_keys(planned.plan_file)

    outcome = planned.restore() if command == "restore" else planned.apply()

    after = without_own(planned.objects())
    assert outcome.exit_code == (5 if command == "restore" else 2)
    assert {key: after[key] for key in before} == before
    assert set(after) - set(before) <= doomed
    assert not (planned.bucket / (LEASE_KEY + "2")).exists()


def test_receipts_that_call_what_is_in_quarantine_gone_hide_nothing(planned: CrashedClusterOnDisk) -> None:
    original = without_own(planned.objects())
    planned.apply()
    receipts = planned.receipts_file.read_bytes()
    planned.receipts_file.write_bytes(receipts.replace(b'"step":"removed"', b'"step":"gone"'))

    restored = planned.restore("-o", "json")

    assert (restored.exit_code, restored.document()["summary"]["done"]) == (0, ORPHANS)
    assert without_own(planned.objects()) == original


def test_another_plans_receipts_are_not_added_to(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    planned.apply()
    receipts = planned.receipts_file.read_bytes()
    planned.restore()
    planned.plan(*AGED, *ENOUGH, "--force")

    outcome = planned.apply()

    assert outcome.exit_code == 1
    assert planned.receipts_file.read_bytes().startswith(receipts)
    assert planned_keys(planned.plan_file) <= set(planned.objects())


def test_a_file_that_has_no_receipts_is_not_written_over(planned: CrashedClusterOnDisk, tmp_path: Path) -> None:
    for data in (b"notes of mine", b"notes\nof mine", b'{"kind":"RemovalPlan"}\n'):
        (tmp_path / "notes").write_bytes(data)

        outcome = planned.apply("--receipts", tmp_path / "notes")

        assert (outcome.exit_code, (tmp_path / "notes").read_bytes()) == (2, data)
        assert planned_keys(planned.plan_file) <= set(planned.objects())


def test_what_was_purged_cannot_be_put_back(planned: CrashedClusterOnDisk) -> None:
    planned.apply()
    planned.purge(*AT_ONCE)
    before = without_lease(planned.objects())

    outcome = planned.restore("-o", "json")

    summary = outcome.document()["summary"]
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, 0, ORPHANS)
    assert outcome.document()["items"][0]["error"].startswith("removal-failed: ")
    assert without_own(planned.objects()) == without_own(before)


def test_another_object_under_a_key_is_not_written_over(planned: CrashedClusterOnDisk) -> None:
    """Of the same length or not."""
    same, longer = sorted(planned_keys(planned.plan_file))[:2]
    others = {
        same: bytes(len((planned.bucket / same).read_bytes())),
        longer: bytes(len((planned.bucket / longer).read_bytes())) + b" and more",
    }
    planned.apply()
    for key, other in others.items():
        put(planned, key, other)

    outcome = planned.restore("-o", "json")

    summary = outcome.document()["summary"]
    assert {key: (planned.bucket / key).read_bytes() for key in others} == others
    assert (outcome.exit_code, summary["done"], summary["failed"]) == (5, ORPHANS - 2, 2)
