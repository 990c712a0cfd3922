"""`recover log-starts`: plans which checkpoint files of a stopped node put log starts back, and writes what was
shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    partition_folder_name,
)
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE, MetaProperties, read_meta_properties
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE, read_partition_metadata
from tieredctl.kafka.node_folder import NodeFolder, opened_node_folder, stopped_node
from tieredctl.model.named_cluster import demand_named_cluster, demand_same_cluster
from tieredctl.ops.file_reading import reading
from tieredctl.ops.metadata_recovery.log_start_plan import (
    LARGEST_CHECKPOINT_BYTES,
    LogStartPlan,
    NodeLogStarts,
    log_starts_in,
    plan_log_starts,
)
from tieredctl.ops.metadata_recovery.log_start_writing import LogStartOutcome, LogStartWriting
from tieredctl.ops.metadata_recovery.restored_log_start import ReplicaFiles, WantedLogStarts, read_wanted_log_starts


@dataclass(frozen=True, slots=True)
class LogStartRecovery:
    """A plan for one log directory, and what applies it, while no node can start."""

    plan: LogStartPlan
    _folder: NodeFolder
    _plan_again: Callable[[], LogStartPlan]
    _demand_stopped: Callable[[], None]

    def apply(self) -> LogStartOutcome:
        """Writes what was shown; whatever stops it is in the outcome."""
        return LogStartWriting(self.plan, self._folder, self._plan_again, self._demand_stopped).run()


@contextmanager
def log_start_recovery(plan_file: Path, log_dir: Path) -> Iterator[LogStartRecovery]:
    """The plan for a stopped node's log directory by what `recover metadata` wrote. Changes nothing.

    Raises TieredctlError where the file is not such a plan or is of another cluster, where a node may be running, and
    where the log directory's own files cannot be read.
    """
    wanted = read_wanted_log_starts(plan_file)
    if not log_dir.exists():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {log_dir}.")
    if not log_dir.is_dir():
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{log_dir} is a file, not a broker's log directory.")
    path = log_dir.resolve()
    with reading(path), opened_node_folder(path) as folder:
        owner = _owner(folder)
        demand_named_cluster(owner.cluster_id)
        demand_same_cluster(owner.cluster_id, wanted.cluster_id)
        with stopped_node(path) as node:
            plan_again = partial(_plan, wanted, folder)
            yield LogStartRecovery(plan_again(), folder, plan_again, node.demand_stopped)


def _plan(wanted: WantedLogStarts, folder: NodeFolder) -> LogStartPlan:
    return plan_log_starts(wanted, _node_log_starts(wanted, folder))


def _node_log_starts(wanted: WantedLogStarts, folder: NodeFolder) -> NodeLogStarts:
    owner, path = _owner(folder), folder.path / LOG_START_OFFSET_CHECKPOINT
    demand_same_cluster(owner.cluster_id, wanted.cluster_id)
    with reading(path):
        checkpoint = folder.read(LOG_START_OFFSET_CHECKPOINT, LARGEST_CHECKPOINT_BYTES)
    starts = log_starts_in(path, checkpoint)
    names = [(one.partition.topic, one.partition.partition) for one in wanted.starts]
    by_name = {name: _replica(folder, name, starts.get(name)) for name in names}
    replicas = {name: files for name, files in by_name.items() if files is not None}
    return NodeLogStarts(folder.path, wanted.cluster_id, owner.node_id, checkpoint, replicas)


def _owner(folder: NodeFolder) -> MetaProperties:
    """Raises TieredctlError where it is not known whose log directory this is."""
    path = folder.path / META_PROPERTIES_FILE
    try:
        with reading(path):
            properties = read_meta_properties(folder.read(META_PROPERTIES_FILE, LARGEST_CHECKPOINT_BYTES))
    except DecodeError as error:
        raise TieredctlError(ErrorCode.UNDECODABLE, f"{path} is damaged: {error.message}.") from None
    if properties.cluster_id is None:
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{path} names no cluster.")
    return properties


def _replica(folder: NodeFolder, name: tuple[str, int], log_start_offset: int | None) -> ReplicaFiles | None:
    """The files of a replica; None where there is no such folder. Raises TieredctlError for what may not be read."""
    topic_id: str | None = None
    leader_epochs: bytes | None = None
    inner_name = partition_folder_name(*name)
    try:
        with reading(folder.path / inner_name), folder.inner(inner_name) as inner:
            with suppress(DecodeError, FileNotFoundError):
                topic_id = read_partition_metadata(
                    inner.read(PARTITION_METADATA_FILE, LARGEST_CHECKPOINT_BYTES)
                ).topic_id
            with suppress(FileNotFoundError):
                leader_epochs = inner.read(LEADER_EPOCH_CHECKPOINT, LARGEST_CHECKPOINT_BYTES)
    except TieredctlError as error:
        if error.code is ErrorCode.PATH_MISSING:
            return None
        raise
    return ReplicaFiles(topic_id, leader_epochs, log_start_offset)
