"""A stopped node with something to clean."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cleaned_nodes import node_to_clean


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    node_to_clean(tmp_path / "node")
    return tmp_path / "node"
