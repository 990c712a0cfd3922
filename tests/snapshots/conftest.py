"""A controller that answers as a test says, and the command for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.scripted_controller import ScriptedController
from tests.rigs.snapshot_fetch import SNAPSHOT, Fetch


@pytest.fixture
def controller() -> Iterator[ScriptedController]:
    with ScriptedController(SNAPSHOT) as made:
        yield made


@pytest.fixture
def fetch(controller: ScriptedController, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Fetch:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    return Fetch(controller, folder, capfd)
