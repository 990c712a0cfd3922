"""The control plane is read whole, at one moment, by a role that may do nothing else; an unknown schema is refused."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import CAPTURED, READER, SCHEMA, Inkless
from tests.rigs.postgres import SUPERUSER
from tieredctl.control_plane import connection, copied_columns, postgres
from tieredctl.control_plane.copied_columns import copy_statement, read_texts
from tieredctl.control_plane.postgres import PostgresControlPlane
from tieredctl.diskless.control_plane import FileState
from tieredctl.errors import DecodeError, ErrorCode, TieredctlError

SECRET = "not-to-be-seen"


def control_plane(inkless: Inkless) -> PostgresControlPlane:
    return PostgresControlPlane(inkless.control_plane[1])


def test_every_value_of_every_row_is_read(inkless: Inkless) -> None:
    captured = inkless.capture.tables

    tables = control_plane(inkless).tables()

    def milliseconds(moment: object) -> int | None:
        return None if moment is None else round(moment.timestamp() * 1000)  # type: ignore[attr-defined]

    assert tables.files.to_pylist() == [
        {
            "fileId": row["file_id"],
            "objectKey": row["object_key"],
            "format": row["format"],
            "state": FileState[row["state"].upper()],
            "uploaderBrokerId": row["uploader_broker_id"],
            "committedMs": milliseconds(row["committed_at"]),
            "markedForDeletionMs": milliseconds(row["marked_for_deletion_at"]),
            "size": row["size"],
        }
        for row in captured["files"]
    ]
    for table, name in ((tables.batches, "batches"), (tables.logs, "logs"), (tables.producers, "producer_state")):
        renamed = [_renamed(row) for row in captured[name]]
        found = table.to_pylist()
        assert len(found) == len(renamed)
        for row in found:
            assert any(row.items() <= one.items() for one in renamed)


def _renamed(row: dict[str, object]) -> dict[str, object]:
    """A captured row in the names of the columns."""
    names = {"topic_name": "topic"}
    camel = {
        names.get(name, re.sub(r"_(\w)", lambda found: found[1].upper(), name)): value for name, value in row.items()
    }
    return camel | {"topicId": UUID(str(row["topic_id"])).bytes}


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


def test_what_is_read_is_one_moment(inkless: Inkless, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is committed while the tables are read is in none of them, not in some."""
    before = control_plane(inkless).tables()
    asked = count()

    def statement(*words: Any) -> str:
        if next(asked) == 1:
            inkless.run("DELETE FROM batches", "DELETE FROM logs", "DELETE FROM files", "DELETE FROM producer_state")
        return copy_statement(*words)

    with monkeypatch.context() as patch:
        patch.setattr(postgres, "copy_statement", statement)
        tables = control_plane(inkless).tables()

    assert (tables.files, tables.batches, tables.logs) == (before.files, before.batches, before.logs)
    assert control_plane(inkless).tables().batches.num_rows == 0


@pytest.mark.parametrize("table", ["files", "batches", "logs", "producer_state", "flyway_schema_history"])
def test_every_grant_is_needed_and_its_lack_is_a_sentence(inkless: Inkless, tieredctl: Tieredctl, table: str) -> None:
    inkless.run(f"REVOKE SELECT ON {table} FROM {READER}")

    outcome = tieredctl("diskless", "status", *inkless.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"tieredctl: The control plane refuses: permission denied for table {table}")
    assert "SELECT on files, batches, logs, producer_state and flyway_schema_history" in outcome.err


def _another(columns: str) -> str:
    """The statement that adds a migration to the history."""
    rest = "installed_by, installed_on, 1, true FROM flyway_schema_history WHERE version = '27'"
    return f"INSERT INTO flyway_schema_history SELECT {columns}, {rest}"


UNKNOWN_SCHEMAS = {
    "a later version": (
        _another("28, '28', 'Soft delete logs', type, 'V28__Soft_delete_logs.sql', 1"),
        "migration V28__Soft_delete_logs.sql (checksum 1) is not one that tieredctl knows",
    ),
    "another script of a known version": (
        "UPDATE flyway_schema_history SET checksum = 7 WHERE version = '14'",
        "migration V14__Commit_file_coalescing.sql (checksum 7) is not one that tieredctl knows",
    ),
    "a repeatable migration": (
        _another("28, NULL, 'Views', type, 'R__Views.sql', 5"),
        "migration R__Views.sql (checksum 5) is not one that tieredctl knows",
    ),
    "a migration of another kind": (
        "UPDATE flyway_schema_history SET type = 'JDBC', script = 'a.b.V27' WHERE version = '27'",
        "migration a.b.V27 (checksum -1153769694) is not one that tieredctl knows",
    ),
    "a failed migration": (
        "UPDATE flyway_schema_history SET success = false WHERE version = '27'",
        "V27__Find_batches_request_level_min_one_message.sql (checksum -1153769694) failed",
    ),
    "a hole": (
        "DELETE FROM flyway_schema_history WHERE version = '13'",
        "migration V13__Prune_diskless_batches.sql (checksum -1143380536) is missing",
    ),
    "an old version": ("DELETE FROM flyway_schema_history WHERE installed_rank > 11", "it is of version 11"),
    "an empty history": ("DELETE FROM flyway_schema_history", "it is of version 0"),
}


@pytest.mark.parametrize(("statement", "why"), UNKNOWN_SCHEMAS.values(), ids=list(UNKNOWN_SCHEMAS))
def test_a_schema_that_is_not_known_is_refused_by_name(
    inkless: Inkless, tieredctl: Tieredctl, statement: str, why: str
) -> None:
    inkless.run(statement)

    outcome = tieredctl("diskless", "status", *inkless.places)

    assert (outcome.exit_code, outcome.out) == (5, "")
    assert why in outcome.err


def test_a_database_without_flyways_history_is_refused(inkless_alone: Inkless, tieredctl: Tieredctl) -> None:
    inkless_alone.run("DROP TABLE flyway_schema_history")

    outcome = tieredctl("diskless", "status", *inkless_alone.places)

    assert (outcome.exit_code, outcome.out) == (5, "")
    assert 'relation "flyway_schema_history" does not exist' in outcome.err


def test_a_known_version_before_the_last_is_read(inkless_alone: Inkless) -> None:
    inkless_alone.run("DELETE FROM flyway_schema_history WHERE installed_rank > 15")
    inkless_alone.run("ALTER TABLE logs DROP COLUMN remote_log_start_offset, DROP COLUMN earliest_batch_timestamp")

    tables = control_plane(inkless_alone).tables()

    assert tables.schema_version == 15
    assert tables.logs["remoteLogStartOffset"].null_count == tables.logs.num_rows


def test_flyways_own_row_for_a_schema_that_it_made_is_not_a_migration(inkless: Inkless) -> None:
    inkless.run(_another("0, NULL, '<< Flyway Schema Creation >>', 'SCHEMA', '\"inkless\"', NULL"))

    assert control_plane(inkless).tables().schema_version == 27


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


@pytest.fixture
def encoded(inkless: Inkless, request: pytest.FixtureRequest) -> Inkless:
    """The capture in a database of another encoding, with a byte that is not ASCII in the first file's key."""
    database = f"encoded_{request.param.lower()}"
    inkless.server.run(
        "postgres",
        f"DROP DATABASE IF EXISTS {database}",
        f"CREATE DATABASE {database} ENCODING '{request.param}' TEMPLATE template0",
    )
    inkless.server.run(database, *SCHEMA)
    inkless.capture.fill(inkless.server, database)
    inkless.server.run(database, "UPDATE files SET object_key = chr(233) || object_key WHERE file_id = 1")
    return replace(inkless, database=database)


@pytest.mark.parametrize("encoded", ["LATIN1"], indirect=True)
def test_texts_of_a_database_in_another_encoding_are_read(encoded: Inkless, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    key = "é" + encoded.capture.tables["files"][0]["object_key"]

    assert control_plane(encoded).tables().files["objectKey"][0].as_py() == key
    assert control_plane(encoded).states_of([key]).states == {key: FileState.UPLOADED}


@pytest.mark.parametrize("encoded", ["SQL_ASCII"], indirect=True)
def test_texts_of_no_known_encoding_are_a_sentence(encoded: Inkless, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "status", *encoded.places)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith("tieredctl: The control plane could not be read: ")


TEXTS = {"other lengths": (b"\0\0\0\2ab", b"\0\0\0\4cdef"), "not text": (b"\0\0\0\3a\xff\xfe", b"\0\0\0\3def")}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=list(TEXTS))
def test_copied_texts_that_are_not_what_was_measured_are_refused(texts: tuple[bytes, bytes]) -> None:
    copied = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(b"\0\1" + text for text in texts) + b"\xff\xff"

    with pytest.raises(DecodeError):
        read_texts([copied], np.array([3, 3]))


def test_keys_that_no_database_can_hold_are_known_to_none(inkless: Inkless) -> None:
    known = inkless.capture.tables["files"][0]["object_key"]

    assert control_plane(inkless).states_of(["nul\0", "\udcff", "other", known]) == ({known: FileState.UPLOADED}, False)


def test_more_rows_than_one_stretch_are_read(inkless: Inkless, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = control_plane(inkless).tables()
    monkeypatch.setattr(copied_columns, "_STRETCH", 100)

    assert control_plane(inkless).tables().batches == whole.batches


def test_psycopg_is_the_one_that_brings_its_own_libpq() -> None:
    assert psycopg.pq.__impl__ == "binary"


@pytest.fixture
def standby(inkless: Inkless) -> Iterator[Inkless]:
    """A control plane on a server that replays what another one commits, and hears nothing of it."""
    inkless.server.restart(standby=True)
    yield inkless
    inkless.server.restart(standby=False)


def test_on_a_standby_that_is_behind_nothing_is_old_enough_to_be_orphaned(
    standby: Inkless, tieredctl: Tieredctl
) -> None:
    """What was committed since may be in the bucket, and unknown to it."""
    outcome = tieredctl("diskless", "orphans", "scan", "--min-age", "1h", *standby.places, "-o", "json")

    status = outcome.document()["summary"]["status"]
    assert outcome.exit_code == 0
    assert (status["orphan"]["objects"], status["in-progress"]["objects"]) == (0, 4)


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


def test_tables_in_another_schema_are_found_by_the_search_path(inkless_alone: Inkless, tieredctl: Tieredctl) -> None:
    tables = ("logs", "files", "batches", "producer_state", "flyway_schema_history")
    inkless_alone.run("CREATE SCHEMA elsewhere", f"GRANT USAGE ON SCHEMA elsewhere TO {READER}")
    inkless_alone.run(*(f"ALTER TABLE {table} SET SCHEMA elsewhere" for table in tables))
    option, url = inkless_alone.control_plane

    lost = tieredctl("diskless", "status", option, url)
    found = tieredctl("diskless", "status", option, f"{url}?options=-c%20search_path%3Delsewhere", "-o", "json")

    assert lost.exit_code == 5
    assert (found.exit_code, found.document()["summary"]["batches"]) == (0, 30)


def test_without_psycopg_it_is_named(tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    outcome = tieredctl("diskless", "status", "--control-plane", "service=x")

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "pip install 'tieredctl[diskless]'" in outcome.err
