"""A stopped node with something to clean, and what `snapshot clean` makes of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kraft_snapshots import topic_record
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.model.ids import uuid_text
from tieredctl.ops.snapshots.cleaning import CleaningOutcome
from tieredctl.wiring.snapshot_cleaning import snapshot_cleaning

CLUSTER_ID, TOPIC_ID = "5lgVbV_vRSmEjoqjPWDZrA", uuid_text(bytes(range(16)))
OTHER_TOPIC_ID = uuid_text(bytes(range(1, 17)))
NOW_MS, OLD_MS, NEW_MS = 1_000_000, 1, 999_990
LIMIT_MS = 1_000
FOLDER = "__cluster_metadata-0"


def node_to_clean(log_dir: Path) -> None:
    """Writes the log directory of a node that was killed: six segments, three snapshots (two of them old), two
    left-overs."""
    folder = MetadataFolder(log_dir / FOLDER)
    topic = topic_record(TOPIC_ID)
    folder.append(topic)
    for number in range(5):
        folder.roll()
        for _ in range(3):
            folder.append(timestamp=OLD_MS if number < 3 else NEW_MS)
        (folder.path / f"{folder.end_offset - 3:020}.index").write_bytes(b"")
        if number in (1, 2, 3):
            folder.snapshot(NEW_MS if number == 3 else OLD_MS, [topic])
    (folder.path / "00000000000000000003-0000000001-77.checkpoint.part").write_bytes(b"half")
    (folder.path / "00000000000000000002-0000000001.checkpoint.deleted").write_bytes(b"gone")
    (log_dir / ".lock").touch()
    meta = MetaProperties(KRAFT_VERSION, CLUSTER_ID, 1, None)
    (log_dir / "meta.properties").write_bytes(encode_meta_properties(meta))
    (log_dir / "server.properties").write_text("node.id=1\n")


def applied(log_dir: Path, *, receipts: Path | None = None) -> CleaningOutcome:
    with snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS) as cleaning:
        return cleaning.apply(receipts or log_dir.parent / "receipts")


def names(log_dir: Path) -> list[str]:
    return sorted(os.listdir(log_dir / "__cluster_metadata-0"))


def refused(log_dir: Path) -> ErrorCode:
    before = names(log_dir)
    with pytest.raises(TieredctlError) as error, snapshot_cleaning(log_dir, NOW_MS, max_age_ms=LIMIT_MS):
        pass
    assert names(log_dir) == before
    return error.value.code
