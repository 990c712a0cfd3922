"""What somebody locks is not waited for without end: each command says so, and ends."""

from __future__ import annotations

import pytest
from tieredctl_inkless.control_plane import connection

from tests.diskless.asking_commands import all_outcomes, with_copies_in_quarantine
from tests.diskless.removals import Removal
from tests.rigs.inkless import READER, TABLES, Inkless


def test_no_command_waits_for_a_locked_table_without_end(removal: Removal, monkeypatch: pytest.MonkeyPatch) -> None:
    with_copies_in_quarantine(removal)
    before, server = removal.objects(), removal.inkless.server
    monkeypatch.setenv("PGOPTIONS", "-c lock_timeout=50ms")
    with server.connected(removal.inkless.database) as session, session.transaction():
        session.execute(f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE")

        outcomes = all_outcomes(removal)

    for name, outcome in outcomes.items():
        assert outcome.exit_code == 1, (name, outcome)
        assert "locked by another session" in outcome.err, (name, outcome.err)
    assert removal.objects() == before


def test_a_statement_that_takes_too_long_is_a_sentence(removal: Removal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=50ms")
    server = removal.inkless.server
    with server.connected(removal.inkless.database) as session, session.transaction():
        session.execute("LOCK TABLE files IN ACCESS EXCLUSIVE MODE")

        outcome = removal.run("diskless", "status", *removal.inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "statement_timeout" in outcome.err


def test_every_statement_has_a_limit_and_whoever_set_one_keeps_it(
    inkless: Inkless, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = inkless.server.url(inkless.database, READER)
    asked = "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"

    with connection.connected(url) as opened:
        ours = opened.execute(asked).fetchone()
    monkeypatch.setenv("PGOPTIONS", "-c lock_timeout=7s -c statement_timeout=2h")
    with connection.connected(url) as opened:
        theirs = opened.execute(asked).fetchone()

    assert (ours, theirs) == (("10s", "1h"), ("7s", "2h"))
