"""A real control plane for each test: the capture's, in a database of its own; and its bucket as a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, in_this_process
from tests.diskless.removals import Removal
from tests.rigs.availability import rig_unavailable
from tests.rigs.inkless import CAPTURED, Inkless, InklessCapture
from tests.rigs.postgres import PostgresServer
from tests.rigs.prerequisites import RigMissing

_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that asks for passwords."""
    try:
        server = PostgresServer()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSFILE", str(server.password_file))
        yield server


@pytest.fixture(scope="session")
def capture(captures: Path) -> InklessCapture:
    """What Inkless left behind."""
    return InklessCapture.now(captures / "inkless")


@pytest.fixture(scope="session")
def captured_server(postgres: PostgresServer, capture: InklessCapture) -> PostgresServer:
    """The server with the captured control plane, which is only copied."""
    capture.restore(postgres)
    return postgres


@pytest.fixture
def inkless(captured_server: PostgresServer, capture: InklessCapture, tmp_path: Path) -> Inkless:
    """A copy of all that was captured; the schema stays as it is."""
    capture.fill(captured_server, CAPTURED)
    return Inkless(captured_server, CAPTURED, capture.copy_bucket(tmp_path / "bucket"), capture)


@pytest.fixture
def tidy(inkless: Inkless) -> Inkless:
    """The capture without what nothing needs any more."""
    roles = inkless.capture.document["roles"]
    left = [roles[name] for name in ("orphan_broker_killed", "orphan_database_down")]
    for key in (*left, *roles["deleting_object_present"]):
        (inkless.bucket / key).unlink()
    return inkless


@pytest.fixture
def inkless_alone(inkless: Inkless) -> Inkless:
    """The same, in a database of its own, whose schema may be altered."""
    database = f"control_plane_{next(_numbers)}"
    inkless.server.run("postgres", f"CREATE DATABASE {database} TEMPLATE {CAPTURED}")
    return replace(inkless, database=database)


@pytest.fixture
def tieredctl(capsys: pytest.CaptureFixture[str]) -> Tieredctl:
    """Runs tieredctl in the test's own process."""
    return in_this_process(capsys)


@pytest.fixture
def removal(inkless: Inkless, tieredctl: Tieredctl, tmp_path: Path) -> Removal:
    return Removal(inkless, tieredctl, tmp_path / "plan")
