"""A replica may be late: what it does not know is neither lost nor orphaned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import CAPTURED, Inkless
from tests.rigs.postgres import SUPERUSER


@pytest.fixture
def standby(inkless: Inkless) -> Iterator[Inkless]:
    """A control plane on a server that replays what another one commits, and hears nothing of it."""
    inkless.server.restart(standby=True)
    yield inkless
    inkless.server.restart(standby=False)


def test_by_a_standby_nothing_is_known_to_be_orphaned(standby: Inkless, tieredctl: Tieredctl) -> None:
    """What was committed since may be in the bucket, and unknown to it."""
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *standby.places, "-o", "json")

    shown = tieredctl("diskless", "status", *standby.places, "-o", "json")
    summary = outcome.document()["summary"]
    assert (outcome.exit_code, shown.exit_code, summary["complete"]) == (5, 5, False)
    assert (summary["status"]["orphan"]["objects"], summary["status"]["unknown"]["objects"]) == (0, 4)


@pytest.mark.parametrize("command", [("verify",), ("orphans", "scan"), ("explain", "payments:0@0")])
def test_on_a_standby_that_is_behind_nothing_is_lost(
    standby: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]
) -> None:
    """Retention may have deleted it since."""
    (standby.bucket / standby.capture.tables["files"][1]["object_key"]).unlink()

    outcome = tieredctl("diskless", *command, *standby.places, "-o", "json")

    assert outcome.exit_code == 5
    assert "object-missing" not in outcome.out + outcome.err


@pytest.fixture
def standby_answers_later(inkless: Inkless, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inkless]:
    """A pool, or a URI of several hosts: the tables are read from the primary, and a standby is asked after that."""
    states_of = PostgresControlPlane.states_of
    restarted: list[bool] = []

    def by_standby(self: PostgresControlPlane, keys: Any) -> Any:
        if not restarted:
            restarted.append(True)
            inkless.server.restart(standby=True)
        return states_of(self, keys)

    monkeypatch.setattr(PostgresControlPlane, "states_of", by_standby)
    yield inkless
    if restarted:
        inkless.server.restart(standby=False)


@pytest.mark.parametrize("command", [("verify",), ("orphans", "scan"), ("explain", "payments:0@0")])
def test_what_a_standby_answers_after_the_primary_proves_no_loss(
    standby_answers_later: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]
) -> None:
    inkless = standby_answers_later
    (inkless.bucket / inkless.capture.tables["files"][1]["object_key"]).unlink()

    outcome = tieredctl("diskless", *command, *inkless.places, "-o", "json")

    assert outcome.exit_code == 5
    assert "object-missing" not in outcome.out + outcome.err


def test_what_a_standby_answers_after_the_primary_proves_no_orphan(
    standby_answers_later: Inkless, tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *standby_answers_later.places, "-o", "json")

    status = outcome.document()["summary"]["status"]
    assert (status["orphan"]["objects"], status["unknown"]["objects"]) == (0, 3)


@pytest.fixture
def subscriber(inkless_alone: Inkless) -> Iterator[Inkless]:
    """A control plane whose tables a logical subscription fills."""
    inkless, server = inkless_alone, inkless_alone.server
    primary = f"host=127.0.0.1 port={server.port} dbname={CAPTURED} user={SUPERUSER} password={server.password}"
    server.run(CAPTURED, "CREATE PUBLICATION everything FOR ALL TABLES")
    inkless.run(
        f"CREATE SUBSCRIPTION copy CONNECTION '{primary}' PUBLICATION everything"
        " WITH (enabled = false, create_slot = false, slot_name = NONE, copy_data = false)"
    )
    yield inkless
    inkless.run("DROP SUBSCRIPTION copy")
    server.run(CAPTURED, "DROP PUBLICATION everything")


@pytest.mark.parametrize("command", [("status",), ("verify",), ("orphans", "scan"), ("explain", "payments:0@0")])
def test_a_logical_replica_is_refused(subscriber: Inkless, tieredctl: Tieredctl, command: tuple[str, ...]) -> None:
    """To PostgreSQL it is not a standby; while its tables are first copied, they are of different moments."""
    outcome = tieredctl("diskless", *command, *subscriber.places)

    assert (outcome.exit_code, outcome.out) == (5, "")
    assert outcome.err.startswith("tieredctl: The database is a logical replica: ")
