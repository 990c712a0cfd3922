"""`diskless orphans plan`, `apply`, `restore` and `purge`: only what no row needs goes, and it can be put back."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.diskless.changes import FOLDER, ONE_BATCH, put
from tests.rigs.inkless import CAPTURED, READER, TABLES, Inkless
from tieredctl.config.plan_key import signing_key
from tieredctl.control_plane.postgres import PostgresControlPlane, _Moment
from tieredctl.model.ids import uuid_text
from tieredctl.model.removal import PlannedObject
from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ops.orphan_removal.plan_file import read_plan, written_plan
from tieredctl.storage.file import FileStore
from tieredctl.storage.protocol import RESERVED_FOLDER

CLUSTER = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg")
ENOUGH = ("--max-percent", "50")
HOUR = 3600
COLUMNS = "object_key, format, reason, state, uploader_broker_id, committed_at, size"


@dataclass(frozen=True)
class Removal:
    """A captured control plane and bucket, and the commands that remove from it."""

    inkless: Inkless
    run: Tieredctl
    plan_file: Path

    def plan(self, *words: str, min_age: str = "1h") -> Outcome:
        places = self.inkless.places
        words = ("--to", str(self.plan_file), "--min-age", min_age, *ENOUGH, *CLUSTER, *places, *words)
        return self.run("diskless", "orphans", "plan", *words)

    def apply(self, *words: str) -> Outcome:
        words = (str(self.plan_file), *self.inkless.control_plane, "--yes", *CLUSTER, *words)
        return self.run("diskless", "orphans", "apply", *words)

    def restore(self, *words: str) -> Outcome:
        return self.run("diskless", "orphans", "restore", f"{self.plan_file}.receipts", *words)

    def purge(self, *words: str) -> Outcome:
        words = ("--older-than", "0s", "--allow-young", *ENOUGH, "--yes", *CLUSTER, *self.inkless.places, *words)
        return self.run("diskless", "orphans", "purge", *words)

    def planned(self) -> set[str]:
        lines = map(json.loads, self.plan_file.read_text().splitlines())
        return {line["key"] for line in lines if "key" in line}

    def objects(self) -> set[str]:
        """Of the bucket's objects, without tieredctl's own."""
        files = (path.relative_to(self.inkless.bucket) for path in self.inkless.bucket.rglob("*") if path.is_file())
        return {str(path) for path in files if not str(path).startswith(RESERVED_FOLDER)}

    def own_files(self) -> dict[str, bytes]:
        folder = self.inkless.bucket / RESERVED_FOLDER
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    @property
    def left_behind(self) -> set[str]:
        roles = self.inkless.capture.document["roles"]
        return {roles["orphan_broker_killed"], roles["orphan_database_down"], *roles["deleting_object_present"]}

    def commit(self, key: str) -> None:
        """As a broker does whose upload waited: its file, and a batch in it."""
        self.inkless.run(
            f"INSERT INTO files ({COLUMNS}) VALUES ('{key}', 1, 'produce', 'uploaded', 1, now(), 815)",
            "INSERT INTO batches (magic, topic_id, partition, base_offset, last_offset, file_id, byte_offset, "
            "byte_size, timestamp_type, log_append_timestamp, batch_max_timestamp)"
            " SELECT 2, topic_id, partition, high_watermark, high_watermark, (SELECT max(file_id) FROM files), 0, 815,"
            " 0, 0, 0 FROM logs WHERE topic_name = 'orders' AND partition = 1",
            "UPDATE logs SET high_watermark = high_watermark + 1, byte_size = byte_size + 815"
            " WHERE topic_name = 'orders' AND partition = 1",
        )


@pytest.fixture
def removal(inkless: Inkless, tieredctl: Tieredctl, tmp_path: Path) -> Removal:
    return Removal(inkless, tieredctl, tmp_path / "plan")


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
    removal.inkless.run(
        "UPDATE logs SET log_start_offset = high_watermark, byte_size = 0 WHERE (topic_id, partition) IN"
        " (SELECT topic_id, partition FROM batches WHERE file_id = 15)",
        "DELETE FROM batches WHERE (topic_id, partition) IN (SELECT topic_id, partition FROM logs"
        " WHERE log_start_offset = high_watermark)",
    )

    outcome = removal.plan()

    assert outcome.exit_code == 0, outcome.err
    assert ONE_BATCH not in removal.planned()
    assert "lost all batches without being marked" in outcome.err


Statements = tuple[str, ...]
DOUBTS: dict[str, tuple[Statements, int, str]] = {
    "an unknown schema": (
        ("UPDATE flyway_schema_history SET version = '28', script = 'V28__x.sql' WHERE version = '27'",),
        5,
        "V28__x.sql",
    ),
    "file rows are lost": (("DELETE FROM files WHERE file_id = 15",), 5, "file-row-missing"),
    "batches and their files are lost": (
        ("DELETE FROM batches WHERE file_id = 15", "DELETE FROM files WHERE file_id = 15"),
        5,
        "offset-gap",
    ),
    "another cluster's": (("UPDATE files SET object_key = 'elsewhere/' || object_key",), 2, "another bucket"),
    "a right is missing": ((f"REVOKE SELECT ON producer_state FROM {READER}",), 1, "refuses"),
}


@pytest.mark.parametrize(("statements", "code", "text"), DOUBTS.values(), ids=list(DOUBTS))
def test_by_a_doubtful_control_plane_nothing_is_planned_or_removed(
    removal: Removal, statements: Statements, code: int, text: str
) -> None:
    removal.plan()
    before = removal.objects()
    removal.inkless.run(*statements)

    planned, applied = removal.plan("--force"), removal.apply()

    assert (planned.exit_code, planned.out) == (code, "")
    assert text in planned.err
    assert applied.exit_code == (5 if code == 5 else applied.exit_code) != 0
    assert removal.objects() == before


def test_a_standby_removes_nothing(removal: Removal) -> None:
    removal.plan()
    before = removal.objects()
    removal.inkless.server.restart(standby=True)
    try:
        outcomes = [removal.plan("--force"), removal.apply(), removal.apply("--dry-run"), removal.purge()]
    finally:
        removal.inkless.server.restart(standby=False)

    assert [outcome.exit_code for outcome in outcomes[:3]] == [5, 5, 5]
    assert all("standby" in outcome.err for outcome in outcomes[:3])
    assert removal.objects() == before


def test_a_database_that_was_promoted_since_the_plan_removes_nothing(removal: Removal) -> None:
    """It may lack the last commits."""
    removal.plan()
    before, server = removal.objects(), removal.inkless.server
    server.restart(standby=True)
    server.run("postgres", "SELECT pg_promote()")

    applied = removal.apply()

    assert (applied.exit_code, removal.objects()) == (5, before)
    assert "restored or promoted since" in applied.err


def test_a_copy_of_the_database_removes_nothing(removal: Removal) -> None:
    """With all that the plan's knew."""
    removal.plan()
    before, server = removal.objects(), removal.inkless.server
    server.run("postgres", "DROP DATABASE IF EXISTS copied", f"CREATE DATABASE copied TEMPLATE {CAPTURED}")
    copy = replace(removal, inkless=replace(removal.inkless, database="copied"))

    applied = copy.apply()

    assert (applied.exit_code, removal.objects()) == (5, before)
    assert "not the one that was asked before" in applied.err


def test_a_database_whose_disk_was_put_back_removes_nothing(removal: Removal) -> None:
    """Its name and timeline are the plan's, and what was committed in between is gone."""
    server = removal.inkless.server
    with server.put_back_afterwards() as put_back:
        removal.commit(f"{FOLDER}{uuid_text(uuid4().bytes)}")
        removal.inkless.run("UPDATE files SET size = size", "CHECKPOINT")
        removal.plan("--max-percent", "90")
        before = removal.objects()
        put_back()

        applied = removal.apply()

    assert (applied.exit_code, removal.objects()) == (5, before)
    assert "restored or promoted since" in applied.err


def test_another_schema_of_the_database_removes_nothing(removal: Removal, inkless_alone: Inkless) -> None:
    """One that has all that the plan's has, as another cluster's may."""
    alone = replace(removal, inkless=inkless_alone)
    alone.plan()
    before = alone.objects()
    inkless_alone.run(
        "ALTER SCHEMA public RENAME TO former",
        "CREATE SCHEMA public",
        f"GRANT USAGE ON SCHEMA public TO {READER}",
        *(f"CREATE TABLE public.{table} (LIKE former.{table} INCLUDING ALL)" for table in TABLES),
        *(f"INSERT INTO public.{table} SELECT * FROM former.{table}" for table in TABLES),
        *(f"GRANT SELECT ON public.{table} TO {READER}" for table in TABLES),
    )

    applied = alone.apply()

    assert (applied.exit_code, alone.objects()) == (5, before)
    assert "not the one that was asked before" in applied.err


@pytest.mark.parametrize("named", ["", "/0", "0", "/", "1/2/3/-1", "1/2/3/" + "9" * 5000, "1/2/3/٣"])
def test_a_plan_that_names_no_database_removes_nothing(removal: Removal, named: str) -> None:
    """Even if it is signed."""
    removal.plan()
    before, plan = removal.objects(), read_plan(removal.plan_file, signing_key())
    objects = list(plan.objects())
    with written_plan(removal.plan_file, signing_key(), force=True) as writer:
        writer.begin(replace(plan.header, control_plane=named))
        for one in objects:
            writer.add(one)
        writer.end(16)

    applied = removal.apply()

    assert (applied.exit_code, removal.objects()) == (applied.exit_code, before)
    assert applied.exit_code in (2, 5)


def test_by_the_control_plane_of_another_bucket_nothing_is_purged(removal: Removal, inkless_alone: Inkless) -> None:
    """One whose brokers write to a folder of the same name: it knows none of these objects."""
    removal.plan()
    removal.apply()
    before = removal.own_files()
    inkless_alone.run("UPDATE files SET object_key = left(object_key, -4) || 'AAAA'")
    stranger = replace(removal, inkless=replace(inkless_alone, bucket=removal.inkless.bucket))

    purged = stranger.purge()

    assert purged.exit_code != 0
    assert {*before} <= {*removal.own_files()}


def test_a_copy_whose_file_is_back_without_its_batches_is_not_purged(removal: Removal) -> None:
    """Its control plane lost them, and may get them back."""
    removal.plan()
    removal.apply()
    (key,) = removal.inkless.capture.document["roles"]["deleting_object_present"]
    removal.inkless.run(
        f"UPDATE files SET state = 'uploaded', marked_for_deletion_at = NULL WHERE object_key = '{key}'"
    )

    purged = removal.purge()

    assert purged.exit_code == 5, purged.err
    assert any(QUARANTINE in name and key in name for name in removal.own_files())


def test_while_the_clocks_are_apart_nothing_is_planned_or_removed(
    removal: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    removal.plan("--valid-for", "7d")
    before, now_ns = removal.objects(), time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now_ns() + 86_400 * 10**9)

    planned, applied = removal.plan("--force"), removal.apply("--dry-run")

    assert (planned.exit_code, applied.exit_code) == (1, 1)
    assert "clocks of the control plane" in planned.err
    assert "clocks of the control plane" in applied.err
    assert removal.objects() == before


def test_where_another_cluster_uploads_nothing_is_planned_or_removed(removal: Removal) -> None:
    removal.plan()
    before = removal.objects()
    theirs = [f"{FOLDER}{uuid_text(uuid4().bytes)}" for _ in range(12)]
    for key in theirs:
        put(removal.inkless, key, 0.5 * HOUR)

    planned, applied = removal.plan("--force"), removal.apply()

    assert (planned.exit_code, applied.exit_code) == (2, 2)
    assert "another cluster may write there" in planned.err
    assert removal.objects() == before | {*theirs}


@pytest.mark.parametrize("last_files", [1, 4, 12])
def test_what_a_restored_copy_does_not_know_is_not_planned(removal: Removal, last_files: int) -> None:
    """Its logs end where its files do."""
    lacking = f"SELECT file_id FROM files ORDER BY committed_at DESC LIMIT {last_files}"
    removal.inkless.run(
        f"DELETE FROM batches WHERE file_id IN ({lacking})",
        f"DELETE FROM files WHERE file_id IN ({lacking})",
        "UPDATE logs l SET high_watermark = coalesce((SELECT max(last_offset) + 1 FROM batches b WHERE b.topic_id ="
        " l.topic_id AND b.partition = l.partition), log_start_offset)",
    )

    outcome = removal.plan()

    assert outcome.exit_code in (0, 2, 5), outcome.err
    assert not removal.plan_file.exists() or removal.planned() <= removal.left_behind


REFUSED: dict[str, tuple[Statements, str]] = {
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
    tieredctl: Tieredctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Statements, text: str
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


def test_more_than_a_tenth_of_the_bucket_is_not_planned(removal: Removal) -> None:
    outcome = removal.plan("--max-percent", "10")

    assert (outcome.exit_code, removal.plan_file.exists()) == (2, False)
    assert "3 of the 16 objects" in outcome.err


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


def asked(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[int], object]) -> None:
    """Something that happens before each question about files, by its number."""
    files_of = PostgresControlPlane.files_of
    numbers = count()

    def observed(self: PostgresControlPlane, keys: Any) -> Any:
        meanwhile(next(numbers))
        return files_of(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "files_of", observed)


@pytest.mark.parametrize(("question", "code"), [(0, 5), (1, 5), (2, 5), (3, 0)])
def test_a_commit_that_comes_meanwhile_saves_its_object(
    removal: Removal, monkeypatch: pytest.MonkeyPatch, question: int, code: int
) -> None:
    """At first, before it is copied, before it is deleted; and after that, when it is put back."""
    removal.plan()
    before, left_behind = removal.objects(), removal.left_behind
    key = removal.inkless.capture.document["roles"]["orphan_broker_killed"]
    asked(monkeypatch, lambda number: removal.commit(key) if number == question else None)

    applied = removal.apply("-o", "json")

    assert (applied.exit_code, applied.document()["summary"]["putBack"]) == (code, 1 if code == 0 else 0), applied.err
    assert before - removal.objects() == (left_behind - {key} if code == 0 else set())


def test_a_commit_that_comes_afterwards_is_told_by_purge_and_undone_by_restore(removal: Removal) -> None:
    removal.plan()
    removal.apply()
    key = removal.inkless.capture.document["roles"]["orphan_broker_killed"]
    removal.commit(key)

    scanned = removal.run("diskless", "orphans", "scan", *removal.inkless.places)
    purged, restored = removal.purge(), removal.restore()

    plan_id = json.loads(removal.plan_file.read_text().splitlines()[0])["planId"]
    assert scanned.exit_code == 4
    assert f"; plan {plan_id} removed it, and it is in quarantine" in scanned.err
    assert f"tieredctl diskless orphans restore {plan_id} --store file:{removal.inkless.bucket}" in scanned.err

    assert purged.exit_code == 4
    assert (
        f"object-missing: file:{removal.inkless.bucket}/{key}: it was removed, and brokers may read it now"
        in purged.err
    )
    assert "Deleted 2 of 3 objects" in purged.err
    assert (restored.exit_code, key in removal.objects()) == (5, True)


def cut(removal: Removal) -> None:
    removal.inkless.server.run(
        "postgres", f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{READER}'"
    )


@pytest.mark.parametrize("question", range(4))
def test_a_connection_that_is_cut_stops_the_run_which_is_resumed(
    removal: Removal, monkeypatch: pytest.MonkeyPatch, question: int
) -> None:
    removal.plan()
    before = removal.objects()
    clock_ms, numbers = _Moment.clock_ms, count()

    def cut_off(self: _Moment) -> int:
        if next(numbers) == question:
            cut(removal)
        return clock_ms(self)

    with monkeypatch.context() as patch:
        patch.setattr(_Moment, "clock_ms", cut_off)
        stopped = removal.apply()
    resumed = removal.apply()

    assert stopped.exit_code == 1
    assert "The control plane does not answer" in stopped.err
    assert "Traceback" not in stopped.err
    assert (resumed.exit_code, removal.objects()) == (0, before - removal.left_behind), resumed.err


@pytest.mark.parametrize("question", [1, 2, 3])
def test_a_database_that_is_gone_stops_the_run_which_is_resumed(
    removal: Removal, monkeypatch: pytest.MonkeyPatch, question: int
) -> None:
    removal.plan()
    before, server = removal.objects(), removal.inkless.server
    with monkeypatch.context() as patch:
        asked(patch, lambda number: server.stop(signal.SIGQUIT) if number == question else None)
        stopped = removal.apply()
        gone = before - removal.objects()
    server.start()
    resumed = removal.apply()

    assert stopped.exit_code == 1
    assert "The control plane does not answer" in stopped.err
    assert gone <= removal.left_behind
    assert (resumed.exit_code, removal.objects()) == (0, before - removal.left_behind), resumed.err


def test_what_the_cleaner_removed_meanwhile_is_gone_and_counted(removal: Removal) -> None:
    removal.plan()
    (deleting,) = removal.inkless.capture.document["roles"]["deleting_object_present"]
    (removal.inkless.bucket / deleting).unlink()
    removal.inkless.run("DELETE FROM files WHERE file_id = 8")

    applied = removal.apply("-o", "json")

    assert (applied.exit_code, applied.document()["summary"]["skipped"]) == (5, 1)


def test_a_dry_run_changes_nothing(removal: Removal) -> None:
    removal.plan()
    before = removal.objects()

    outcome = removal.apply("--dry-run")

    assert (outcome.exit_code, removal.objects(), removal.own_files()) == (0, before, {})
    assert "are still as planned; nothing was changed." in outcome.err
