"""What happens while objects of diskless topics are removed: commits, cut connections, and databases that go away."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane, _Moment

from tests.diskless.removals import Removal
from tests.rigs.inkless import READER


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


def test_what_was_planned_stays_if_the_schema_turns_out_to_be_younger(removal: Removal) -> None:
    """As of a control plane that was lost and made again, but for its identity, which is refused by itself."""
    removal.plan()
    before = removal.objects()
    removal.inkless.run("UPDATE flyway_schema_history SET installed_on = now()")

    applied, planned = removal.apply(), removal.plan("--force")

    kept = {
        removal.inkless.capture.document["roles"][role] for role in ("orphan_broker_killed", "orphan_database_down")
    }
    assert (applied.exit_code, planned.exit_code) == (5, 0), applied.err
    assert removal.objects() == before
    assert not kept & removal.planned()
