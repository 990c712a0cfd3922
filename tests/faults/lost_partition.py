"""A captured cluster that lost a partition of its metadata topic, and hundreds of time indexes besides."""

from __future__ import annotations

import shutil
from pathlib import Path


def lose_a_metadata_partition(captured: Path, folder: Path) -> Path:
    """Copies a captured cluster to a folder that is made, and returned."""
    shutil.copytree(captured, folder)
    shutil.rmtree(folder / "data" / "__remote_log_metadata-2")
    for time_index in folder.rglob("remote/**/*.timeindex"):
        time_index.unlink()
    return folder
