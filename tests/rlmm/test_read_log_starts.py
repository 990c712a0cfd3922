"""Where a log begins, by the files of a broker that may be running."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieredctl.formats.partition_metadata import PartitionMetadata, encode_partition_metadata
from tieredctl.kafka.local_logs import read_local_logs
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog

PARTITION = TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "t", 0)


def read(log_dir: Path, *, checkpointed: int | None, first_epoch_start: int, local_start: int) -> LocalLog:
    folder = log_dir / "t-0"
    folder.mkdir()
    (folder / "partition.metadata").write_bytes(encode_partition_metadata(PartitionMetadata(0, PARTITION.topic_id)))
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n7 {first_epoch_start}\n")
    (folder / f"{local_start:020d}.log").touch()
    lines = "0\n0\n" if checkpointed is None else f"0\n1\nt 0 {checkpointed}\n"
    (log_dir / "log-start-offset-checkpoint").write_text(lines)
    return read_local_logs([log_dir])[PARTITION]


@pytest.mark.parametrize("local_start", [30, 90])
def test_a_log_start_that_moved_since_the_last_checkpoint_is_that_of_the_leader_epochs(
    tmp_path: Path, local_start: int
) -> None:
    log = read(tmp_path, checkpointed=20, first_epoch_start=60, local_start=local_start)

    assert log.log_start_offset == 60


def test_leader_epochs_made_anew_of_the_local_log_move_no_log_start(tmp_path: Path) -> None:
    log = read(tmp_path, checkpointed=20, first_epoch_start=60, local_start=60)

    assert log.log_start_offset == 20


def test_leader_epochs_below_the_checkpoint_move_no_log_start(tmp_path: Path) -> None:
    log = read(tmp_path, checkpointed=20, first_epoch_start=0, local_start=60)

    assert log.log_start_offset == 20


def test_a_log_start_that_no_checkpoint_names_stays_unknown(tmp_path: Path) -> None:
    log = read(tmp_path, checkpointed=None, first_epoch_start=60, local_start=30)

    assert log.log_start_offset is None
