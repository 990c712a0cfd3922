"""Files that a removal keeps writing, in a folder where all may write: others' links are not followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import AGED, ENOUGH, CrashedClusterOnDisk, without_own
from tieredctl.errors import TieredctlError
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint

STRANGER = 65_534
STICKY, ALL_MAY_WRITE = 0o1777, 0o777


@pytest.fixture(params=[STICKY, ALL_MAY_WRITE])
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A stranger's link, to where nothing is yet."""
    shared = tmp_path / "shared"
    shared.mkdir()
    link = shared / "link"
    link.symlink_to(tmp_path / "precious")
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    shared.chmod(request.param)
    return link


def test_receipts_are_not_written_through_a_strangers_link(planned: CrashedClusterOnDisk, laid: Path) -> None:
    before = planned.objects()

    applied = planned.apply("--receipts", laid)

    assert applied.exit_code == 1
    assert without_own(planned.objects()) == before
    assert not laid.exists()


def test_nor_is_a_checkpoint(cluster: CrashedClusterOnDisk, laid: Path) -> None:
    made = cluster.plan(*AGED, *ENOUGH, "--resume", laid)

    assert (made.exit_code, cluster.plan_file.exists()) == (1, False)
    assert not laid.exists()


def test_receipts_are_private(planned: CrashedClusterOnDisk) -> None:
    assert planned.apply().exit_code == 0

    assert planned.receipts_file.stat().st_mode & 0o777 == 0o600


def test_a_checkpoint_is_private(tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"

    ListingCheckpoint(file, "file:/store", 0).close()

    assert file.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_not_a_checkpoint(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(TieredctlError, match="is not a regular file"):
        ListingCheckpoint(pipe, "file:/store", 0)
