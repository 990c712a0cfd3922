"""`diskless orphans scan`: only what is proven to be orphaned is called so."""

from __future__ import annotations

from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables

from tests.cli.command_line import Tieredctl
from tests.diskless.changes import BATCHES_GONE, FOLDER, ONE_BATCH, PRUNED, put
from tests.rigs.inkless import Inkless

UNKNOWN_NAME = f"{FOLDER}AAAAAAAAAAAAAAAAAAAAAA"
HOUR = 3600
KILLED, DOWN, IN_FLIGHT = (
    "orphan_broker_killed",
    "orphan_database_down",
    "in_flight_uploaded_not_committed_young",
)


def scanned(inkless: Inkless, tieredctl: Tieredctl, min_age: str = "1h") -> dict[str, dict[str, Any]]:
    """Each object by its key, with the exit code under the empty key."""
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", min_age, *inkless.places, "-o", "jsonl")
    return {item["key"]: item for item in outcome.lines()} | {"": {"exitCode": outcome.exit_code}}


def verdict(found: dict[str, dict[str, Any]], key: str) -> tuple[str, str | None]:
    return found[key]["status"], found[key]["cause"]


def test_every_object_of_the_capture_has_the_verdict_of_its_role(inkless: Inkless, tieredctl: Tieredctl) -> None:
    roles = inkless.capture.document["roles"]
    (deleting,) = roles["deleting_object_present"]
    special = {
        roles[KILLED]: ("orphan", "no-metadata"),
        roles[DOWN]: ("orphan", "no-metadata"),
        roles[IN_FLIGHT]: ("in-progress", None),
        deleting: ("orphan", "delete-never-finished"),
    }

    found = scanned(inkless, tieredctl)

    assert found.pop("")["exitCode"] == 3
    assert {key: verdict(found, key) for key in found} == {
        key: special.get(key, ("owned", None)) for key in inkless.capture.times_ms
    }


def test_an_orphan_has_its_evidence(inkless: Inkless, tieredctl: Tieredctl) -> None:
    roles = inkless.capture.document["roles"]
    (deleting,) = roles["deleting_object_present"]

    found = scanned(inkless, tieredctl)

    killed = found[roles[KILLED]]
    assert (killed["size"], killed["evidence"]["file"]) == (815, None)
    assert killed["evidence"]["ageMs"] >= 2 * HOUR * 1000
    assert found[deleting]["evidence"].items() >= {"file": 8, "fileState": "deleting", "batchCount": 0}.items()
    assert found[deleting]["evidence"]["markedForDeletionAt"]


def test_by_default_a_day_has_to_pass(inkless: Inkless, tieredctl: Tieredctl) -> None:
    found = scanned(inkless, tieredctl, "24h")

    assert found[""]["exitCode"] == 0
    assert {item["status"] for key, item in found.items() if key} == {"owned", "in-progress"}


def test_the_summary_counts_by_status_and_cause(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places, "-o", "json")

    summary = outcome.document()["summary"]
    assert summary["status"]["orphan"] == {"objects": 3, "bytes": 815 + 536 + 2586}
    assert summary["status"]["in-progress"] == {"objects": 1, "bytes": 815}
    assert summary["causes"]["no-metadata"] == {"objects": 2, "bytes": 815 + 536}
    assert (summary["objects"], summary["complete"]) == (16, True)


def test_a_table_has_totals_and_a_sentence(inkless: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places)

    assert outcome.exit_code == 3
    assert outcome.err.startswith("3 of 16 objects, 3.8 KiB, are orphaned.\n")
    assert outcome.out.startswith("STATUS       CAUSE")


def test_that_all_is_too_young_is_said_with_what_shows_it(inkless: Inkless, tieredctl: Tieredctl) -> None:
    much = ("--min-age", "900000h", *inkless.places)

    table, lines = (tieredctl("diskless", "orphans", "scan", *much, *output) for output in ((), ("-o", "jsonl")))

    said = "4 objects that are not owned, 4.6 KiB, are younger than --min-age 900000h: a lower one shows what is"
    assert table.err == f"0 of 16 objects, 0 B, are orphaned.\n{said} orphaned.\n"
    assert lines.err == f"{said} orphaned.\n"


@pytest.mark.parametrize("output", ["table", "json"])
def test_among_orphans_those_that_are_too_young_are_counted(
    inkless: Inkless, tieredctl: Tieredctl, output: str
) -> None:
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places, "-o", output)

    if output == "json":
        assert outcome.document()["summary"]["younger"] == {"objects": 1, "bytes": 815}
    else:
        assert "\n1 object that is not owned, 815 B, is younger than --min-age 1h.\n" in outcome.err


def test_a_file_that_is_too_young_to_be_orphaned_is_counted_with_them(inkless: Inkless, tieredctl: Tieredctl) -> None:
    inkless.run("UPDATE files SET marked_for_deletion_at = now() WHERE file_id = 8")

    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places, "-o", "json")

    assert outcome.document()["summary"]["younger"] == {"objects": 2, "bytes": 815 + 2586}


def test_files_whose_batches_are_gone_are_orphaned(inkless: Inkless, tieredctl: Tieredctl) -> None:
    """Brokers delete only what is marked, so such a file is never deleted."""
    inkless.run(*BATCHES_GONE)

    found = scanned(inkless, tieredctl)

    assert verdict(found, ONE_BATCH) == ("orphan", "batches-gone")


def test_what_is_promised_and_not_there_is_data_loss(inkless: Inkless, tieredctl: Tieredctl) -> None:
    (inkless.bucket / ONE_BATCH).unlink()

    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places)

    assert outcome.exit_code == 4
    assert (
        "critical: object-missing: kafka-prod/diskless/b66arlMtQRSjOhgrVZ6pUg: the control plane promises"
        in outcome.err
    )


def test_a_file_that_is_deleting_and_still_has_batches_is_owned(inkless: Inkless, tieredctl: Tieredctl) -> None:
    inkless.run(
        "UPDATE files SET state = 'deleting', marked_for_deletion_at = now() - interval '2 days' WHERE file_id = 15"
    )

    assert verdict(scanned(inkless, tieredctl), ONE_BATCH) == ("owned", None)


def test_a_file_marked_a_moment_ago_is_being_deleted(inkless: Inkless, tieredctl: Tieredctl) -> None:
    inkless.run("UPDATE files SET marked_for_deletion_at = now() WHERE file_id = 8")

    assert verdict(scanned(inkless, tieredctl), PRUNED) == ("in-progress", None)


@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("another-cluster/AAAAAAAAAAAAAAAAAAAAAA", "foreign"),
        (f"{FOLDER}deeper/AAAAAAAAAAAAAAAAAAAAAA", "foreign"),
        (f"{FOLDER}backup.tar", "unknown"),
        (f"{FOLDER}AAAAAAAAAAAAAAAAAAAAAA.bak", "unknown"),
        (f"{FOLDER}AAAAAAAAAAAAAAAAAAAAAB", "unknown"),
        ("notes.txt", "unknown"),
        (UNKNOWN_NAME, "orphan"),
    ],
)
def test_only_what_brokers_of_this_control_plane_write_can_be_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, key: str, status: str
) -> None:
    """The last of these ids has bits that no id has."""
    put(inkless, key, 100 * HOUR)

    assert scanned(inkless, tieredctl)[key]["status"] == status


@pytest.mark.parametrize("age", [-10 * HOUR, 0, 20 * 60])
def test_a_young_object_or_one_of_the_future_is_in_progress(inkless: Inkless, tieredctl: Tieredctl, age: float) -> None:
    put(inkless, UNKNOWN_NAME, age)

    assert verdict(scanned(inkless, tieredctl), UNKNOWN_NAME) == ("in-progress", None)


def test_ages_are_taken_against_the_databases_clock(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine may be wrong: by it, an upload in flight would be a day old."""
    put(inkless, UNKNOWN_NAME, 0)
    monkeypatch.setattr("time.time_ns", lambda: (inkless.capture.now_ms + 86_400_000) * 1_000_000)

    assert verdict(scanned(inkless, tieredctl), UNKNOWN_NAME) == ("in-progress", None)


@pytest.mark.parametrize("last_files", range(1, 13))
def test_by_a_copy_that_lacks_the_last_commits_no_live_object_is_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, last_files: int
) -> None:
    """A database restored to an earlier moment, a replica that is late, or one that was promoted with a loss."""
    lacking = f"SELECT file_id FROM files ORDER BY committed_at DESC LIMIT {last_files}"
    inkless.run(f"DELETE FROM batches WHERE file_id IN ({lacking})", f"DELETE FROM files WHERE file_id IN ({lacking})")
    left = [inkless.capture.document["roles"][name] for name in (KILLED, DOWN)]

    found = scanned(inkless, tieredctl)

    assert {key for key in found if key and verdict(found, key) == ("orphan", "no-metadata")} <= {*left}


@pytest.mark.parametrize(("minutes", "status"), [(-30, "orphan"), (-5, "unknown"), (0, "unknown"), (30, "unknown")])
def test_what_was_uploaded_after_the_newest_commit_is_unknown(
    inkless: Inkless, tieredctl: Tieredctl, minutes: int, status: str
) -> None:
    """However old it is: what the control plane does not know yet, or no longer, is not orphaned."""
    newest = max(row["committed_at"] for row in inkless.capture.tables["files"]).timestamp()
    put(inkless, UNKNOWN_NAME, inkless.capture.now_ms / 1000 - newest - 60 * minutes)

    found = scanned(inkless, tieredctl)[UNKNOWN_NAME]

    assert found["status"] == status
    assert "newestCommitAt" in found["evidence"]


def test_by_a_broker_whose_clock_is_ahead_no_unknown_object_is_orphaned(inkless: Inkless, tieredctl: Tieredctl) -> None:
    """It dates its commits itself, so that its last one proves none that is later than an upload."""
    inkless.run(
        "UPDATE files SET committed_at = now() + interval '3 hours' WHERE file_id IN (SELECT max(file_id) FROM files)"
    )

    found = scanned(inkless, tieredctl)

    assert {verdict(found, inkless.capture.document["roles"][name]) for name in (KILLED, DOWN)} == {("unknown", None)}


def test_while_files_are_lost_no_unknown_object_is_orphaned(inkless: Inkless, tieredctl: Tieredctl) -> None:
    """It may be the lost file's."""
    lost = ONE_BATCH
    inkless.run("DELETE FROM files WHERE file_id = 15")

    found = scanned(inkless, tieredctl)

    roles = inkless.capture.document["roles"]
    assert {found[key]["status"] for key in (lost, roles[KILLED], roles[DOWN])} == {"unknown"}


def test_what_was_committed_after_the_control_plane_was_read_is_not_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = PostgresControlPlane.states_of
    key = inkless.capture.document["roles"][KILLED]

    def meanwhile(self: PostgresControlPlane, keys: Any) -> Any:
        columns = "object_key, format, reason, state, uploader_broker_id, committed_at, size"
        inkless.run(f"INSERT INTO files ({columns}) VALUES ('{key}', 1, 'produce', 'uploaded', 1, now(), 815)")
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", meanwhile)

    assert verdict(scanned(inkless, tieredctl), key) == ("in-progress", None)


def test_what_brokers_deleted_while_the_bucket_was_listed_is_not_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row is gone when the control plane is read: only the store knows that the object is, too."""
    tables = PostgresControlPlane.tables
    (deleting,) = inkless.capture.document["roles"]["deleting_object_present"]

    def cleaned(self: PostgresControlPlane) -> ControlPlaneTables:
        (inkless.bucket / deleting).unlink()
        inkless.run("DELETE FROM files WHERE file_id = 8")
        return tables(self)

    monkeypatch.setattr(PostgresControlPlane, "tables", cleaned)

    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *inkless.places, "-o", "json")

    summary = outcome.document()["summary"]
    assert deleting not in {item["key"] for item in outcome.document()["items"]}
    assert (summary["gone"], summary["objects"], summary["status"]["orphan"]["objects"]) == (1, 15, 2)


FILE_CHANGES = {
    "its row is deleted": ("DELETE FROM files WHERE file_id IN (8, 15)",),
    "it changes its state": (
        "UPDATE files SET state = 'deleting', marked_for_deletion_at = now() WHERE file_id = 15",
        "UPDATE files SET state = 'uploaded', marked_for_deletion_at = NULL WHERE file_id = 8",
    ),
}


@pytest.mark.parametrize("statements", FILE_CHANGES.values(), ids=list(FILE_CHANGES))
def test_whose_file_was_changed_meanwhile_is_not_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch, statements: tuple[str, ...]
) -> None:
    """Files 8 and 15 are orphaned by the first look, marked long ago and without a batch."""
    inkless.run(*BATCHES_GONE)
    asked = PostgresControlPlane.states_of

    def meanwhile(self: PostgresControlPlane, keys: Any) -> Any:
        inkless.run(*statements)
        return asked(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", meanwhile)

    found = scanned(inkless, tieredctl)

    for key in (PRUNED, ONE_BATCH):
        assert verdict(found, key) == ("in-progress", None)


def test_what_was_replaced_meanwhile_is_not_orphaned(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = PostgresControlPlane.tables
    key = inkless.capture.document["roles"][KILLED]

    def replaced(self: PostgresControlPlane) -> ControlPlaneTables:
        put(inkless, key, 0)
        return tables(self)

    monkeypatch.setattr(PostgresControlPlane, "tables", replaced)

    assert verdict(scanned(inkless, tieredctl), key) == ("in-progress", None)


@pytest.mark.parametrize("command", [("orphans", "scan"), ("verify",)])
def test_another_bucket_is_refused(inkless: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]) -> None:
    store = inkless.bucket.parent / "another"
    store.mkdir()
    (store / "AAAAAAAAAAAAAAAAAAAAAA").write_bytes(b"x")

    outcome = tieredctl("diskless", *command, *inkless.control_plane, "--store", f"file:{store}")

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "has none of the 12 objects that the control plane promises" in outcome.err


@pytest.mark.parametrize("command", [("orphans", "scan"), ("verify",)])
def test_under_an_unknown_schema_nothing_is_judged(
    inkless: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]
) -> None:
    inkless.run("UPDATE flyway_schema_history SET version = '28', script = 'V28__x.sql' WHERE version = '27'")

    outcome = tieredctl(
        "diskless", *command, "--min-age" if command[0] == "orphans" else "--older-than", "0s", *inkless.places
    )

    assert (outcome.exit_code, outcome.out) == (5, "")
    assert "V28__x.sql" in outcome.err


@pytest.mark.parametrize("command", [("orphans", "scan"), ("verify",)])
def test_without_a_store_it_is_asked_for(inkless: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]) -> None:
    outcome = tieredctl("diskless", *command, *inkless.control_plane)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("tieredctl: No store was given.")


def test_an_empty_control_plane_owns_nothing_and_accuses_nothing(inkless: Inkless, tieredctl: Tieredctl) -> None:
    """Its database was made again, or it is another one's."""
    inkless.run("DELETE FROM batches", "DELETE FROM files", "DELETE FROM logs")

    found = scanned(inkless, tieredctl)

    assert found.pop("") == {"exitCode": 5}
    assert {item["status"] for item in found.values()} == {"unknown"}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("interval '1 second'", ("unknown", None)),
        ("interval '-11 hours'", ("unknown", None)),
        ("interval '-13 hours'", ("orphan", "no-metadata")),
    ],
    ids=["after it", "before it, by a clock of another time zone", "before it"],
)
def test_what_is_older_than_the_schema_may_have_had_a_file_in_a_control_plane_that_was_lost(
    inkless: Inkless, tieredctl: Tieredctl, made: str, expected: tuple[str, str | None]
) -> None:
    key = inkless.capture.document["roles"][KILLED]
    uploaded = inkless.capture.times_ms[key] / 1000
    inkless.run(f"UPDATE flyway_schema_history SET installed_on = to_timestamp({uploaded}) AT TIME ZONE 'UTC' + {made}")

    found = scanned(inkless, tieredctl)

    assert verdict(found, key) == expected
    assert {one["status"] for one in found.values() if one.get("evidence", {}).get("file")} <= {"owned", "orphan"}
