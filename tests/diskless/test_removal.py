"""`diskless orphans plan`, `apply`, `restore` and `purge`: only what no row needs goes, and it can be put back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import BATCHES_GONE, FOLDER, ONE_BATCH, put
from tests.diskless.removals import CLUSTER, HOUR, Removal
from tieredctl.config.plan_key import signing_key
from tieredctl.model.removal import PlannedObject
from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ops.orphan_removal.plan_file import read_plan, written_plan
from tieredctl.storage.file import FileStore


def test_what_brokers_left_is_planned_removed_and_put_back(removal: Removal) -> None:
    before = removal.objects()

    planned = removal.plan()
    applied = removal.apply()
    removed = before - removal.objects()
    restored = removal.restore()

    assert (planned.exit_code, applied.exit_code, restored.exit_code) == (0, 0, 0), applied.err
    assert removed == removal.planned() == removal.left_behind
    assert removal.objects() == before
    assert "Apply it with: tieredctl diskless orphans apply" in planned.err


def test_a_removal_ends_in_quarantine_and_its_purge_is_final(removal: Removal) -> None:
    removal.plan()
    removal.apply()

    purged = removal.purge("-o", "json")

    assert purged.exit_code == 0, purged.err
    assert purged.document()["summary"]["done"] == 3
    assert not [name for name in removal.own_files() if QUARANTINE in name]
    assert removal.restore().exit_code == 5


def test_a_plan_is_shown_object_by_object(removal: Removal) -> None:
    removal.plan()

    shown = removal.run("diskless", "orphans", "show", str(removal.plan_file), "-o", "json")

    assert shown.exit_code == 0
    assert {item["key"] for item in shown.document()["items"]} == removal.planned() == removal.left_behind


def test_each_planned_object_has_its_evidence_and_the_plan_its_database(removal: Removal) -> None:
    removal.plan("-o", "json")

    header, *lines = map(json.loads, removal.plan_file.read_text().splitlines())
    (deleting,) = removal.inkless.capture.document["roles"]["deleting_object_present"]
    causes = {line["key"]: line["cause"] for line in lines if "key" in line}
    assert (header["layout"], header["metadataEndOffsets"]) == ("inkless", {})
    assert len(header["controlPlane"].split("/")) == 4
    assert causes.pop(deleting) == "delete-never-finished"
    assert {*causes.values()} == {"no-metadata"}
    assert next(line for line in lines if line.get("key") == deleting)["evidence"]["fileState"] == "deleting"


def test_only_objects_of_the_named_cause_are_planned(removal: Removal) -> None:
    outcome = removal.plan("--cause", "delete-never-finished", "-o", "json")

    assert outcome.document()["items"] == [{"cause": "delete-never-finished", "objects": 1, "bytes": 2586}]


def test_a_file_that_lost_its_batches_without_a_mark_is_not_a_leftover(removal: Removal) -> None:
    """Its batches were lost, and may come back with a backup."""
    removal.inkless.run(*BATCHES_GONE)

    outcome = removal.plan()

    assert outcome.exit_code == 0, outcome.err
    assert ONE_BATCH not in removal.planned()
    assert "lost all batches without being marked" in outcome.err


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no cluster": (("plan", "--to", "PLAN"), "Give --cluster-id"),
    "no control plane": (("plan", "--to", "PLAN", *CLUSTER, "--store", "file:."), "No control plane was given"),
    "a password": (
        ("plan", "--to", "PLAN", *CLUSTER, "--store", "file:.", "--control-plane", "postgresql://u:secret@h/d"),
        "holds a password",
    ),
    "an unknown cause": (("plan", "--to", "PLAN", "--cause", "topic-gone"), "topic-gone"),
    "too young": (("plan", "--to", "PLAN", *CLUSTER, "--min-age", "5m"), "younger than an hour"),
    "no plan": (("apply", "PLAN", "--control-plane", "service=x"), "There is no plan"),
    "no quarantine": (("purge", "--older-than", "2h", *CLUSTER), "No store was given"),
    "purged too soon": (("purge", "--older-than", "5m", *CLUSTER), "less than an hour ago"),
    "nothing to restore": (("restore", "PLAN.receipts"), "There are no receipts"),
}


@pytest.mark.parametrize(("words", "text"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_wrong_or_missing_is_told(
    tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if words[0] == "plan" and "--store" not in words:
        words = (*words, "--store", "file:.", "--control-plane", "postgresql://127.0.0.1:1/none")

    outcome = tieredctl("diskless", "orphans", *words)

    assert (outcome.exit_code in (1, 2), outcome.out) == (True, "")
    assert text in outcome.err
    assert "secret" not in outcome.err
    assert "Traceback" not in outcome.err
    assert not [*tmp_path.iterdir()]


def test_more_than_a_tenth_of_the_bucket_is_planned_to_be_looked_at_and_not_applied(removal: Removal) -> None:
    outcome = removal.plan("--max-percent", "10")
    applied = removal.apply()

    assert (outcome.exit_code, removal.plan_file.exists()) == (3, True)
    assert "3 of 16 objects" in outcome.err
    assert (applied.exit_code, "3 of the 16 objects" in applied.err) == (2, True), applied.err


def test_no_secret_is_written_anywhere(removal: Removal) -> None:
    removal.plan()
    applied = removal.apply("--receipts", "store")

    written = [removal.plan_file.read_bytes(), *removal.own_files().values(), (applied.out + applied.err).encode()]
    assert not [one for one in written if removal.inkless.server.password.encode() in one]
    assert not [one for one in written if b"postgresql://" in one]


def test_each_command_takes_its_own_plans_only(removal: Removal) -> None:
    removal.plan()

    outcome = removal.run("orphans", "apply", str(removal.plan_file), "--offline-metadata", "--log-dir", ".", "--yes")

    assert (outcome.exit_code, outcome.out) == (2, "")


@pytest.mark.parametrize("key", [ONE_BATCH, "notes.txt", f"{FOLDER}notes.txt", "other/AAAAAAAAAAAAAAAAAAAAAA"])
@pytest.mark.parametrize("status", ["orphan", "owned", "unknown", "foreign"])
def test_a_plan_cannot_name_what_is_not_orphaned(removal: Removal, key: str, status: str) -> None:
    """Even if it is signed, and names it as it is."""
    if not (removal.inkless.bucket / key).exists():
        put(removal.inkless, key, 100 * HOUR)
    removal.plan()
    forged = read_plan(removal.plan_file, signing_key())
    stored = FileStore(str(removal.inkless.bucket)).head(key)
    assert stored is not None
    named = replace(forged.header, unknown_keys=frozenset([key]), foreign_topic_ids=frozenset([key]))
    with written_plan(removal.plan_file, signing_key(), force=True) as writer:
        writer.begin(named)
        writer.add(PlannedObject(*stored[:4], status, None, None))
        writer.end(16)

    applied = removal.apply()

    assert (applied.exit_code, removal.objects() >= {key}) == (5, True)


def test_a_dry_run_of_a_plan_writes_none(removal: Removal) -> None:
    rehearsed = removal.plan("--dry-run", "-o", "json")

    assert (rehearsed.exit_code, removal.plan_file.exists(), removal.own_files()) == (0, False, {})
    would, planned = rehearsed.document()["summary"], removal.plan("-o", "json").document()["summary"]
    assert (would["planned"], would["bytes"]) == (planned["planned"], planned["bytes"])
    assert "Would plan" in rehearsed.err


def test_a_dry_run_changes_nothing(removal: Removal) -> None:
    removal.plan()
    before = removal.objects()

    outcome = removal.apply("--dry-run")

    assert (outcome.exit_code, removal.objects(), removal.own_files()) == (0, before, {})
    assert "are still as planned; nothing was changed." in outcome.err
