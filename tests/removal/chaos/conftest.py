"""A folder for clusters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.rigs.memory import IN_MEMORY


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tieredctl-chaos-", dir=IN_MEMORY) as name:
        yield Path(name)
