"""What Inkless left behind, as fixtures: its control plane in a real database, and its bucket as a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.inkless import CAPTURED, Inkless, InklessCapture
from tests.rigs.postgres import PostgresServer
from tests.rigs.prerequisites import RigMissing


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
    """A copy of all that was captured, as old as it was then, however long the tests run; the schema stays as it is."""
    fresh = InklessCapture.now(capture.folder)
    fresh.fill(captured_server, CAPTURED)
    return Inkless(captured_server, CAPTURED, fresh.copy_bucket(tmp_path / "bucket"), fresh)
