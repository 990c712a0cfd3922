"""What the tests of backups share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.backup.captured_sets import CapturedSets
from tests.rigs.memory import IN_MEMORY


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of the test's own, gone after it."""
    with TemporaryDirectory(prefix="tieredctl-test-", dir=IN_MEMORY) as name:
        yield Path(name)


@pytest.fixture(scope="session")
def made_sets(captures: Path) -> Iterator[Path]:
    """Two sets of a captured cluster; only for reading."""
    with TemporaryDirectory(prefix="tieredctl-test-", dir=IN_MEMORY) as name:
        CapturedSets.of(captures, Path(name)).add()
        yield Path(name)


@pytest.fixture
def sets(made_sets: Path, captures: Path, tmp_path: Path) -> CapturedSets:
    """The same, and a remote store, to be changed."""
    shutil.copytree(made_sets / "sets", tmp_path / "sets")
    shutil.copytree(made_sets / "remote", tmp_path / "remote")
    return CapturedSets(tmp_path / "sets", tmp_path / "remote", captures / "kafka-4.3.1/data")
