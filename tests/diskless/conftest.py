"""A real control plane for each test: the capture's, in a database of its own; and its bucket as a folder."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.removals import Removal
from tests.rigs.inkless import CAPTURED, Inkless

_numbers = count()


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
def removal(inkless: Inkless, tieredctl: Tieredctl, tmp_path: Path) -> Removal:
    return Removal(inkless, tieredctl, tmp_path / "plan")
