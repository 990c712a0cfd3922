"""How many partitions a metadata topic has, by the controllers' log in the same log directory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tieredctl.errors import DecodeError
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER
from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.kafka.node_replay import NodeReplay
from tieredctl.kraft.image import ClusterImage
from tieredctl.ports.metadata_source import METADATA_TOPIC


def metadata_topic_partition_count(log_dirs: Iterable[Path], topic: str = METADATA_TOPIC) -> int | None:
    """The topic's number of partitions; None where no log directory has a `__cluster_metadata-0` that says it for
    certain.

    Of several the most recent one is believed. One that cannot be read in full is ignored.
    """
    told = [found for log_dir in log_dirs if (found := _told_by(log_dir / CLUSTER_METADATA_FOLDER, topic)) is not None]
    if not told:
        return None
    _, count = max(told, key=lambda one: one[0])
    return count


def _told_by(folder: Path, topic: str) -> tuple[int, int | None] | None:
    """A replica's end offset (exclusive), and the number of partitions it has; None where there is none."""
    try:
        return _replayed(folder, _state(folder), topic)
    except OSError:
        return None


def _state(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Name, size and time of each file: changes whenever what the files say does. Raises OSError."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.stat()) for entry in entries]
    return frozenset((name, status.st_size, status.st_mtime_ns) for name, status in found)


@lru_cache(maxsize=16)
def _replayed(folder: Path, _files: frozenset[tuple[str, int, int]], topic: str) -> tuple[int, int | None] | None:
    """As `_told_by`, kept for as long as the files stay: whoever follows the metadata asks again and again. Raises
    OSError."""
    try:
        log = MetadataLog.opened(folder)
        node = NodeReplay(log)
        node.load_snapshot()
        node.load_log()
    except DecodeError:
        return None
    if not log.snapshots and not log.segments:
        return None
    image = node.replay.image
    is_certain = image.is_certain and not node.replay.in_transaction
    return image.end_offset, _partition_count(image, topic) if is_certain else None


def _partition_count(image: ClusterImage, topic: str) -> int | None:
    """None where the topic is not there, or lacks one of its partitions."""
    numbers = {number for topic_id in image.topics_named(topic) for number in image.topics[topic_id].partitions}
    return len(numbers) if numbers and numbers == set(range(len(numbers))) else None
