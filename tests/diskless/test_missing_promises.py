"""While objects that the database promises are missing, nothing is removed: what looks orphaned may be theirs."""

from __future__ import annotations

from tests.diskless.asking_commands import read
from tests.diskless.changes import ONE_BATCH
from tests.diskless.removals import Removal

OTHER_KEYS = """UPDATE files SET object_key = 'v2/' || object_key WHERE file_id IN
    (SELECT file_id FROM batches ORDER BY file_id DESC LIMIT 6)"""
"""As a hasty migration does: the objects stay where they are."""


def test_by_a_database_whose_keys_were_altered_nothing_is_planned_or_removed(removal: Removal) -> None:
    removal.plan()
    before = removal.objects()
    removal.inkless.run(OTHER_KEYS)

    outcomes = [removal.plan("--force"), removal.apply("--dry-run"), removal.apply()]

    assert [outcome.exit_code for outcome in outcomes] == [5, 5, 5], outcomes
    assert all("promised" in outcome.err and "v2/" in outcome.err for outcome in outcomes)
    assert removal.objects() == before
    assert not any("quarantine" in name for name in removal.own_files())


def test_as_many_may_be_missing_as_were_named_and_the_signed_plan_knows_how_many(removal: Removal) -> None:
    (removal.inkless.bucket / ONE_BATCH).unlink()

    refused, planned, applied = removal.plan(), removal.plan("--max-missing", "1"), removal.apply()

    assert (refused.exit_code, planned.exit_code, applied.exit_code) == (5, 0, 0), applied.err
    assert removal.objects().isdisjoint(removal.left_behind)


def test_apply_asks_again_and_has_a_limit_of_its_own(removal: Removal) -> None:
    removal.plan("--max-missing", "7")
    (removal.inkless.bucket / ONE_BATCH).unlink()
    before = removal.objects()

    refused = removal.apply("--max-missing", "0")
    untouched = removal.objects()
    applied = removal.apply()

    assert (refused.exit_code, untouched, applied.exit_code) == (5, before, 0), refused.err


def test_an_object_whose_file_is_deleted_too_is_not_missing(removal: Removal) -> None:
    """Brokers delete the object before its row."""
    (deleting,) = removal.inkless.capture.document["roles"]["deleting_object_present"]
    (removal.inkless.bucket / deleting).unlink()

    assert removal.plan().exit_code == 0


def test_while_promised_objects_are_missing_no_command_calls_any_object_orphaned(removal: Removal) -> None:
    removal.inkless.run(OTHER_KEYS)

    outcomes = read(removal, "scan", "verify", "status")

    summary = outcomes["scan"].document()["summary"]
    assert (summary["status"]["orphan"]["objects"], summary["complete"]) == (0, False)
    assert {name: outcome.exit_code for name, outcome in outcomes.items()} == {"scan": 4, "verify": 4, "status": 5}
    assert not [name for name, outcome in outcomes.items() if "object-unreferenced" in outcome.out]
    (doubt,) = outcomes["status"].document()["summary"]["findings"]
    assert doubt["evidence"] == {"error": "promised-objects-missing"}
