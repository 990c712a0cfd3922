"""The snapshots of the metadata log that a real node made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from confluent_kafka.cimpl import NewTopic

from tests.rigs.broker import KafkaBroker
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tieredctl.formats.file_names import KraftSnapshotName, parse_kraft_snapshot_name

SECONDS = 60

T = TypeVar("T")


def snapshots_of(node: KafkaBroker) -> Sequence[Path]:
    """The finished snapshots that a node made, the latest last."""
    found = (node.log_dir / "__cluster_metadata-0").glob("*.checkpoint")
    return sorted(path for path in found if not path.name.startswith("0" * 20))


def asked_of_latest(node: KafkaBroker, ask: Callable[[], T]) -> tuple[T, Path]:
    """What is answered about the node's latest snapshot, and which that is: where the node makes another one meanwhile,
    as it does a moment after many changes, it is asked again."""
    answers: list[tuple[T, Path]] = []

    def has_stayed() -> bool:
        latest = snapshots_of(node)[-1]
        answers.append((ask(), latest))
        return snapshots_of(node)[-1] == latest

    wait_until(has_stayed, "no other snapshot is made", SECONDS)
    return answers[-1]


def name_of(file: Path) -> KraftSnapshotName:
    """Which snapshot a file holds."""
    found = parse_kraft_snapshot_name(file.name)
    assert found is not None
    return found


def make_snapshots(node: KafkaBroker, broker: KafkaBroker | None = None, until: int = 1) -> None:
    """Makes topics until the node has so many snapshots."""
    server = (broker or node).bootstrap_server
    made = 0

    def has_enough() -> bool:
        nonlocal made
        create_topics(server, NewTopic(f"for-a-snapshot-{made}", 8, 1))
        made += 1
        return len(snapshots_of(node)) >= until

    wait_until(has_enough, "there are enough snapshots", SECONDS)
