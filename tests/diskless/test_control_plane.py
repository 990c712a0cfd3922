"""The control plane is read whole, at one moment, whatever texts it holds; an unknown schema is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from tieredctl_inkless.control_plane import copied_columns, postgres
from tieredctl_inkless.control_plane.copied_columns import copy_statement, read_texts
from tieredctl_inkless.control_plane.postgres import PostgresControlPlane
from tieredctl_inkless.diskless.control_plane import FileState

from tests.cli.command_line import Tieredctl
from tests.rigs.inkless import READER, SCHEMA, Inkless
from tieredctl.errors import DecodeError


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


def test_tables_in_another_schema_are_found_by_the_search_path(inkless_alone: Inkless, tieredctl: Tieredctl) -> None:
    tables = ("logs", "files", "batches", "producer_state", "flyway_schema_history")
    inkless_alone.run("CREATE SCHEMA elsewhere", f"GRANT USAGE ON SCHEMA elsewhere TO {READER}")
    inkless_alone.run(*(f"ALTER TABLE {table} SET SCHEMA elsewhere" for table in tables))
    option, url = inkless_alone.control_plane

    lost = tieredctl("diskless", "status", option, url)
    found = tieredctl("diskless", "status", option, f"{url}?options=-c%20search_path%3Delsewhere", "-o", "json")

    assert lost.exit_code == 5
    assert (found.exit_code, found.document()["summary"]["batches"]) == (0, 30)
