"""What lies in brokers' log directories besides the metadata topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

# A look-up in a log directory does not load numpy.
if TYPE_CHECKING:
    from tieredctl.model.local_log import LocalReplica
    from tieredctl.model.local_metadata_log import SeenMetadataLog


def local_replicas(log_dirs: Sequence[Path] | None) -> list[LocalReplica] | None:
    """The user partitions in brokers' log directories; None if no directories are given."""
    if not log_dirs:
        return None
    from tieredctl.kafka.local_logs import read_local_replicas

    return read_local_replicas(log_dirs)


def local_metadata_logs(log_dirs: Sequence[Path]) -> list[SeenMetadataLog]:
    """The metadata logs in nodes' log directories."""
    from tieredctl.kafka.metadata_log import read_local_metadata_logs

    return read_local_metadata_logs(log_dirs)
