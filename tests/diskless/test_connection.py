"""The database is named without a secret, and asked by a role that may do nothing else; each refusal is a sentence."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest
from tieredctl_inkless.control_plane import connection

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import READER, Inkless
from tieredctl.errors import ErrorCode, TieredctlError

SECRET = "not-to-be-seen"


@pytest.mark.parametrize(
    "given",
    [
        f"postgresql://reader:{SECRET}@db/inkless",
        f"postgresql://db/inkless?password={SECRET}",
        f"host=db password={SECRET}",
        f"host=db sslpassword={SECRET}",
        f"host=db scram_client_key={SECRET}",
        f"postgresql://db/inkless?scram_server_key={SECRET}",
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(given: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status", "--control-plane", given)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith("tieredctl: --control-plane holds a password")
    assert "PGPASSFILE" in outcome.err
    assert "PGSERVICE" in outcome.err
    assert SECRET not in outcome.err


@pytest.mark.parametrize("given", ["", " ", f"postgresql://db:{SECRET}/x", f"{SECRET}", f"postgresql://[{SECRET}/"])
def test_what_libpq_does_not_understand_is_refused_and_not_repeated(given: str, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status", "--control-plane", given)

    assert outcome.exit_code in (1, 2)
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    if outcome.exit_code == 2:
        assert outcome.err.startswith("tieredctl: --control-plane is not a libpq URI.")
        assert SECRET not in outcome.err


def test_without_a_control_plane_it_is_asked_for(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status")

    assert outcome.exit_code == 2
    assert outcome.err.startswith("tieredctl: No control plane was given.\n  Give --control-plane")


def test_a_service_file_names_the_database(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = inkless.bucket.parent / "services"
    port, name = inkless.server.port, inkless.database
    services.write_text(f"[production]\nhost=127.0.0.1\nport={port}\ndbname={name}\nuser={READER}\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))

    outcome = tieredctl("diskless", "status", "--control-plane", "service=production", "-o", "json")

    assert outcome.exit_code == 0
    assert outcome.document()["source"]["database"] == name


def test_where_it_was_read_is_shown_without_the_role(inkless: Inkless, tieredctl: Tieredctl) -> None:
    source = tieredctl("diskless", "status", *inkless.places, "-o", "json").document()["source"]

    assert source == {
        "controlPlane": "postgresql",
        "host": "127.0.0.1",
        "port": inkless.server.port,
        "database": inkless.database,
        "schemaVersion": 27,
        "store": f"file:{inkless.bucket}",
    }


def test_nothing_can_be_changed_through_a_connection(inkless: Inkless) -> None:
    url = inkless.server.url(inkless.database)

    with pytest.raises(TieredctlError) as refused, connection.connected(url) as opened:
        opened.execute("DELETE FROM batches")

    assert "read-only transaction" in refused.value.message


@pytest.mark.parametrize("table", ["files", "batches", "logs", "producer_state", "flyway_schema_history"])
def test_every_grant_is_needed_and_its_lack_is_a_sentence(inkless: Inkless, tieredctl: Tieredctl, table: str) -> None:
    inkless.run(f"REVOKE SELECT ON {table} FROM {READER}")

    outcome = tieredctl("diskless", "status", *inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"tieredctl: The control plane refuses: permission denied for table {table}")
    assert "SELECT on files, batches, logs, producer_state and flyway_schema_history" in outcome.err


@pytest.fixture
def stopped_server(inkless: Inkless) -> Iterator[Inkless]:
    """A control plane whose server was killed."""
    inkless.server.stop(signal.SIGQUIT)
    yield inkless
    inkless.server.start()


def test_a_server_that_is_down_is_a_sentence(stopped_server: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status", *stopped_server.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith("tieredctl: The control plane does not answer: ")
    assert outcome.err.count("\n") == 2


def test_a_connection_that_is_cut_while_it_is_read_is_a_sentence(inkless: Inkless) -> None:
    url = inkless.server.url(inkless.database, READER)

    def cut_meanwhile() -> None:
        with connection.connected(url) as opened:
            inkless.run(f"SELECT pg_terminate_backend({opened.info.backend_pid})")
            opened.execute("SELECT 1")

    with pytest.raises(TieredctlError) as cut:
        cut_meanwhile()

    assert cut.value.code is ErrorCode.CONTROL_PLANE_UNREACHABLE


def test_a_role_without_its_password_is_a_sentence(
    inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSFILE")

    outcome = tieredctl("diskless", "status", *inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "no password supplied" in outcome.err


def test_a_wrong_password_is_a_refusal(inkless: Inkless, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "wrong")

    outcome = tieredctl("diskless", "status", *inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith("tieredctl: The control plane refuses: ")
    assert "PGPASSFILE" in outcome.err


@pytest.mark.parametrize("where", ["text", "service in the text", "service in the environment", "environment", None])
def test_what_the_operator_set_stays(inkless: Inkless, monkeypatch: pytest.MonkeyPatch, where: str | None) -> None:
    """Before ours come the text, then its service, then the environment."""
    url = inkless.server.url(inkless.database, READER)
    services = inkless.bucket.parent / "services"
    services.write_text("[production]\napplication_name=operator\nconnect_timeout=77\n")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    if where == "text":
        url += "?application_name=operator&connect_timeout=77"
    elif where == "service in the text":
        url += "?service=production"
    elif where == "service in the environment":
        monkeypatch.setenv("PGSERVICE", "production")
    elif where == "environment":
        monkeypatch.setenv("PGAPPNAME", "operator")
        monkeypatch.setenv("PGCONNECT_TIMEOUT", "77")
    before = dict(os.environ)

    with connection.connected(url) as opened:
        found = opened.info.get_parameters()

    expected = ("tieredctl", "10") if where is None else ("operator", "77")
    assert (found["application_name"], found["connect_timeout"]) == expected
    assert dict(os.environ) == before


def test_psycopg_is_the_one_that_brings_its_own_libpq() -> None:
    assert psycopg.pq.__impl__ == "binary"


def test_without_psycopg_it_is_named(tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    outcome = tieredctl("diskless", "status", "--control-plane", "service=x")

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "pip install 'tieredctl[diskless]'" in outcome.err
