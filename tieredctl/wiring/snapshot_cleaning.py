"""`snapshot clean`: plans what retention no longer keeps of a stopped node's snapshots, and removes what was shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import (
    CLUSTER_METADATA_FOLDER,
    KraftSnapshotName,
    SegmentFileName,
    SegmentPart,
    Transition,
    parse_kraft_snapshot_name,
    parse_segment_file_name,
)
from tieredctl.kafka.node_folder import NodeFolder, opened_node_folder
from tieredctl.kafka.stopped_node import stopped_node
from tieredctl.kraft.replica import SnapshotId
from tieredctl.kraft.retention import KeptSegment, KeptSnapshot
from tieredctl.model.local_file import SeenFile
from tieredctl.ops.snapshots.cleaning import Cleaning, CleaningOutcome, demand_receipts
from tieredctl.ops.snapshots.cleaning_plan import CleaningPlan, NodeFiles, plan_cleaning
from tieredctl.ops.snapshots.record_files import RecordFile, metadata_log_folder
from tieredctl.ops.snapshots.sound_node import demand_sound_node
from tieredctl.wiring.node_limits import NodeLimits, node_limits
from tieredctl.wiring.offline_cluster import OfflineClusterPlace, in_sentences


@dataclass(frozen=True, slots=True)
class SnapshotCleaning:
    """A plan for one stopped node, and what applies it, while no node can start."""

    plan: CleaningPlan
    limits: NodeLimits
    _folder: NodeFolder
    _plan_again: Callable[[], CleaningPlan]
    _demand_stopped: Callable[[], None]

    def demand_applicable(self, receipts: Path) -> None:
        """Raises TieredctlError where a limit may be another than the node's, and where the receipts would be among
        its files, or be added to a file that has something else."""
        self.limits.demand_known()
        log_dir = self._folder.path.parent
        if receipts.resolve().is_relative_to(log_dir):
            message = f"The receipts {receipts} would be among the files of the node, in {log_dir}."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Name a file elsewhere with --receipts.")
        demand_receipts(receipts)

    def apply(self, receipts: Path) -> CleaningOutcome:
        """Removes what was shown; whatever stops it is in the outcome. Raises TieredctlError as `demand_applicable`
        does, before anything is removed."""
        self.demand_applicable(receipts)
        return Cleaning(self.plan, self._folder, receipts, self._plan_again, self._demand_stopped).run()


@contextmanager
def snapshot_cleaning(
    path: Path,
    now_ms: int,
    *,
    max_age_ms: int | None = None,
    max_bytes: int | None = None,
    server_properties: Path | None = None,
) -> Iterator[SnapshotCleaning]:
    """The plan for a `__cluster_metadata-0`, or the log directory that has it. Changes nothing.

    Limits are as in `node_limits`. Raises TieredctlError as that does, where a node may be running, where the files are
    not whole (what a node cannot start on is not cleaned), and where the latest snapshot does not fit the log.
    """
    folder = metadata_log_folder(path).resolve()
    if not folder.exists():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.")
    if folder.name != CLUSTER_METADATA_FOLDER:
        message = f"{path} is neither a {CLUSTER_METADATA_FOLDER} nor a log directory that has one."
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, message, hint="Name a stopped node's log directory.")
    log_dir = folder.parent
    limits = node_limits(log_dir, max_age_ms=max_age_ms, max_bytes=max_bytes, server_properties=server_properties)
    with stopped_node(log_dir) as node, in_sentences(folder), opened_node_folder(folder) as opened:
        plan_again = partial(_plan, opened, limits, now_ms)
        yield SnapshotCleaning(plan_again(), limits, opened, plan_again, node.demand_stopped)


def _plan(folder: NodeFolder, limits: NodeLimits, now_ms: int) -> CleaningPlan:
    node = _node_files(folder)
    cluster = OfflineClusterPlace(folder.path).read()
    demand_sound_node(cluster)
    if _node_files(folder) != node:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{folder.path} changed while it was read.")
    return plan_cleaning(node, cluster, limits.limits, now_ms, limits.sources)


def _node_files(folder: NodeFolder) -> NodeFiles:
    snapshots: dict[SnapshotId, SeenFile] = {}
    segments: dict[int, list[SeenFile]] = defaultdict(list)
    left_over = []
    for name, file in sorted(folder.files().items()):
        snapshot, segment = parse_kraft_snapshot_name(name), parse_segment_file_name(name)
        if _is_left_over(snapshot, segment):
            left_over.append(file)
        elif snapshot is not None and snapshot.transition is None:
            snapshots[SnapshotId(snapshot.epoch, snapshot.end_offset)] = file
        elif segment is not None and segment.transition is None and segment.segment_id is None:
            segments[segment.offset].append(file)
    logs = {base: _log_first(files) for base, files in segments.items()}
    whole = {base: files for base, files in sorted(logs.items()) if files[0].name.endswith(SegmentPart.LOG.value)}
    start = min(whole, default=0)
    left_over += [file for base, files in logs.items() if base < start and base not in whole for file in files]
    kept = [_kept(folder.path, one, file) for one, file in sorted(snapshots.items())]
    return NodeFiles(
        kept, [KeptSegment(base, files[0].size) for base, files in whole.items()], whole, snapshots, left_over
    )


def _kept(folder: Path, snapshot: SnapshotId, file: SeenFile) -> KeptSnapshot:
    contained_ms = RecordFile(folder / file.name, is_snapshot=True).last_contained_ms()
    return KeptSnapshot(snapshot, file.size, contained_ms)


def _is_left_over(snapshot: KraftSnapshotName | None, segment: SegmentFileName | None) -> bool:
    if snapshot is not None:
        return snapshot.transition in (Transition.PARTIAL, Transition.DELETED)
    return segment is not None and segment.transition is Transition.DELETED


def _log_first(files: list[SeenFile]) -> list[SeenFile]:
    """Without its log, an index is deleted by any node that starts."""
    return sorted(files, key=lambda file: not file.name.endswith(SegmentPart.LOG.value))
