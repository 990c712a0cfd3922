"""A stopped node whose brokers moved log starts, and what `recover metadata -o json` says to put back."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from tests.cli.command_line import Outcome, this_process
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.formats.partition_metadata import PartitionMetadata, encode_partition_metadata

CLUSTER_ID, TOPIC_ID = "5lgVbV_vRSmEjoqjPWDZrA", "AQIDBAUGBwgJCgsMDQ4PEA"
STARTS = "log-start-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
STARTS_MOVED = "0\n4\nother 7 5\norders 1 40\norders 0 22\n__consumer_offsets 0 0\n"
STARTS_BACK = "0\n4\nother 7 5\norders 1 3\norders 0 0\n__consumer_offsets 0 0\n"
EPOCHS_MOVED = {0: "0\n2\n2 22\n4 26\n", 1: "0\n1\n5 40\n"}
EPOCHS_BACK = {0: "0\n3\n0 0\n2 9\n4 26\n", 1: "0\n2\n1 0\n5 30\n"}
RIGHT = {
    STARTS: STARTS_BACK,
    **{f"orders-{number}/{EPOCHS}": text for number, text in EPOCHS_BACK.items()},
}
"""The files as they are to be, by their path."""
CONFIRMED = ("--apply", "--yes", "--cluster-id", CLUSTER_ID)


def moved_node(log_dir: Path) -> None:
    """Writes the log directory of a node that was stopped: two partitions of `orders`, moved up."""
    for number, epochs in EPOCHS_MOVED.items():
        folder = log_dir / f"orders-{number}"
        folder.mkdir(parents=True)
        (folder / "partition.metadata").write_bytes(encode_partition_metadata(PartitionMetadata(0, TOPIC_ID)))
        (folder / EPOCHS).write_text(epochs)
        (folder / EPOCHS).chmod(0o640)
    (log_dir / STARTS).write_text(STARTS_MOVED)
    (log_dir / ".lock").touch()
    meta = MetaProperties(KRAFT_VERSION, CLUSTER_ID, 1, None)
    (log_dir / "meta.properties").write_bytes(encode_meta_properties(meta))


def item(number: int, moved_to: int, start: int, epochs: str) -> dict[str, Any]:
    """That of a partition of `orders` in a plan."""
    return {
        "topic": "orders",
        "topicId": TOPIC_ID,
        "partition": number,
        "metadataPartition": 0,
        "segments": 7,
        "inMetadata": 0,
        "toRecover": 0,
        "bytes": 0,
        "leftOut": {"below-log-start": 7},
        "logStartOffset": moved_to,
        "localLogStartOffset": moved_to,
        "restore": {"logStartOffset": start, "leaderEpochCheckpoint": epochs},
    }


def plan() -> dict[str, Any]:
    """The document for this node; a copy of its own."""
    return copy.deepcopy(
        {
            "kind": "MetadataRecoveryPlan",
            "apiVersion": "tieredctl/v1",
            "source": {"bootstrapServer": "broker:9092", "store": "file:store", "clusterId": CLUSTER_ID},
            "summary": {},
            "items": [item(0, 22, 0, EPOCHS_BACK[0]), item(1, 40, 3, EPOCHS_BACK[1])],
        }
    )


def written(path: Path, document: object) -> Path:
    """A plan in a file."""
    path.write_text(json.dumps(document))
    return path


def checkpoint(*epochs: tuple[int, int]) -> str:
    """The text of a leader-epoch-checkpoint."""
    return encode_leader_epoch_checkpoint([EpochEntry(*one) for one in epochs]).decode()


def contents(log_dir: Path) -> dict[str, str]:
    """Every file below a folder, by its path."""
    return {str(path.relative_to(log_dir)): path.read_bytes().decode() for path in log_dir.rglob("*") if path.is_file()}


def kept(log_dir: Path) -> dict[str, str]:
    """The old files that stayed beside the new ones, by the new one's path."""
    return {name.partition(".tieredctl-kept-")[0]: text for name, text in contents(log_dir).items() if "-kept-" in name}


def is_right(log_dir: Path) -> bool:
    """Whether log starts and leader epochs are back."""
    return contents(log_dir).items() >= RIGHT.items()


def put_back(plan_file: Path, log_dir: Path, *words: str) -> Outcome:
    """Runs `recover log-starts`, confirmed."""
    return this_process("recover", "log-starts", plan_file, "--log-dir", log_dir, *CONFIRMED, *words)
