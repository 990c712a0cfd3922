"""Local logs beside the metadata tell whose events are lost, also while a broker goes on."""

from __future__ import annotations

from pathlib import Path

from tests.metadata_logs import PARTITION, copied, write_events
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.partition_metadata import PartitionMetadata, encode_partition_metadata
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.ids import TopicIdPartition, uuid_text

NEW, LOST = (TopicIdPartition(uuid_text(number.to_bytes(16)), name, 0) for number, name in ((1, "new"), (2, "lost")))
KNOWN = copied(1, 0, 9)


def write_trimmed(log_dir: Path, *partitions: TopicIdPartition) -> None:
    """Their logs, of which the first ten records are in remote storage alone."""
    for partition in partitions:
        folder = log_dir / f"{partition.topic}-{partition.partition}"
        folder.mkdir()
        (folder / "partition.metadata").write_bytes(encode_partition_metadata(PartitionMetadata(0, partition.topic_id)))
        (folder / "leader-epoch-checkpoint").write_bytes(encode_leader_epoch_checkpoint([EpochEntry(0, 0)]))
        (folder / f"{10:020d}.log").touch()
    lines = "".join(f"{one.topic} {one.partition} 0\n" for one in partitions)
    (log_dir / "log-start-offset-checkpoint").write_text(f"0\n{len(partitions)}\n{lines}")


def test_what_was_begun_copied_and_trimmed_since_the_metadata_was_read_has_lost_no_event(tmp_path: Path) -> None:
    write_events(tmp_path, *KNOWN)
    source = LogDirectories([tmp_path])
    assert sum(map(len, source.chunks(0))) == len(KNOWN)

    write_events(tmp_path, *KNOWN, *copied(2, 0, 9, partition=NEW))
    write_trimmed(tmp_path, NEW, LOST)

    assert source.tiered_besides({PARTITION}) == [LOST]


def test_a_partition_on_several_disks_is_named_once(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_events(tmp_path / name, *KNOWN)
        write_trimmed(tmp_path / name, LOST)
    source = LogDirectories([tmp_path / "one", tmp_path / "other"])
    assert sum(map(len, source.chunks(0))) == len(KNOWN)

    assert source.tiered_besides({PARTITION}) == [LOST]
