"""Log directories, and stores that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import FIRST, SECOND, objects, upload_words
from tests.wal.local_partitions import ORDERS, OTHER, write_partition


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two partitions of orders, and one of another topic that begins at offset 10."""
    folder = tmp_path / "logs"
    write_partition(folder, ORDERS[0], FIRST)
    write_partition(folder, ORDERS[1], FIRST[:2])
    write_partition(folder, OTHER, SECOND, base=10)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    return folder


@pytest.fixture
def uploaded(log_dir: Path, store: Path, tieredctl: Tieredctl) -> Path:
    """The store after an upload into several objects."""
    outcome = tieredctl(*upload_words(log_dir, store), "--upload-bytes", "400", "--apply")
    assert outcome.exit_code == 0, outcome.err
    assert len(objects(store)) > 2
    return store
