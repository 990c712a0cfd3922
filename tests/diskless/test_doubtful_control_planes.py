"""By a control plane that may not know all, or is not the plan's, nothing is planned, removed or purged."""

from __future__ import annotations

import time
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.diskless.changes import FOLDER, put
from tests.diskless.removals import HOUR, Removal
from tests.rigs.inkless import CAPTURED, READER, TABLES, Inkless
from tieredctl.config.plan_key import signing_key
from tieredctl.model.ids import uuid_text
from tieredctl.ops.guards.own_objects import QUARANTINE
from tieredctl.ops.orphan_removal.plan_file import read_plan, written_plan
from tieredctl.storage.file import FileStore

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
        removal.plan("--max-percent", "90", "--max-missing", "1")
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


def test_while_the_buckets_clock_is_another_nothing_is_planned(
    removal: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileStore, "time_ms", lambda _: time.time_ns() // 1_000_000 - 600_000)

    outcome = removal.plan()

    assert (outcome.exit_code, removal.plan_file.exists()) == (1, False)
    assert "10 minutes behind" in outcome.err


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
