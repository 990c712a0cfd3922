"""What every test may use."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

CAPTURES = Path(__file__).parent / "captures"


@pytest.fixture(scope="session")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each archive of tests/captures, named like it: what real clusters left behind. Only for reading."""
    folder = tmp_path_factory.mktemp("captures")
    for archive in sorted(CAPTURES.glob("*.tar.gz")):
        with tarfile.open(archive) as members:
            members.extractall(folder, filter="data")
    return folder
