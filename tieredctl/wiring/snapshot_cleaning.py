"""`snapshot clean`: plans what retention no longer keeps of a stopped node's snapshots, and removes what was shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import (
    CLUSTER_METADATA_FOLDER,
    KraftSnapshotName,
    SegmentFileName,
    SegmentPart,
    Transition,
    parse_kraft_snapshot_name,
    parse_segment_file_name,
)
from tieredctl.formats.java_properties import read_properties
from tieredctl.kafka.local_logs import log_dir_owner
from tieredctl.kafka.node_folder import NodeFolder, opened_node_folder, stopped_node
from tieredctl.kafka.server_properties import SERVER_PROPERTIES
from tieredctl.kraft.replica import SnapshotId
from tieredctl.kraft.retention import (
    DEFAULT_RETENTION_BYTES,
    DEFAULT_RETENTION_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    KeptSegment,
    KeptSnapshot,
    RetentionLimits,
)
from tieredctl.model.local_file import SeenFile
from tieredctl.ops.snapshots.cleaning import Cleaning, CleaningOutcome, demand_receipts
from tieredctl.ops.snapshots.cleaning_plan import CleaningPlan, NodeFiles, plan_cleaning
from tieredctl.ops.snapshots.record_files import RecordFile, metadata_log_folder
from tieredctl.ops.snapshots.verification import demand_sound_node
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


_NODE_ID = "node.id"
_Stated = tuple[Path, Mapping[str, str]]
"""A file, and its settings."""


@dataclass(frozen=True, slots=True)
class NodeLimits:
    """Kafka's two settings, and for each of them who says so."""

    limits: RetentionLimits
    sources: Mapping[str, str]
    unknown: tuple[str, ...]
    """The settings that are Kafka's defaults here because no file of the node was found: its own may be others."""

    def demand_known(self) -> None:
        """Raises TieredctlError where a limit may be another than the node's."""
        for name in self.unknown:
            message = f"The node's {name} is not known: no {SERVER_PROPERTIES} with its {_NODE_ID} is in or next to it."
            hint = f"Give --server-properties, or --{name.replace('.', '-')}."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)


def node_limits(
    log_dir: Path,
    *,
    max_age_ms: int | None = None,
    max_bytes: int | None = None,
    server_properties: Path | None = None,
) -> NodeLimits:
    """The limits that are given, or else those of the node's `server.properties`, or else Kafka's defaults.

    Without `server_properties`, a file in or next to the log directory is the node's if it has the same `node.id` as
    the directory's `meta.properties`. Raises TieredctlError for a named file that cannot be read or is another node's,
    and for a value that is not a number.
    """
    file_settings = _own_file(log_dir) if server_properties is None else _named_file(server_properties, log_dir)
    file, settings = (None, {}) if file_settings is None else file_settings
    options = {RETENTION_MS: max_age_ms, RETENTION_BYTES: max_bytes}
    defaults = {RETENTION_MS: DEFAULT_RETENTION_MS, RETENTION_BYTES: DEFAULT_RETENTION_BYTES}
    values: dict[str, int] = {}
    sources: dict[str, str] = {}
    for name, default in defaults.items():
        option = options[name]
        if option is not None:
            values[name], sources[name] = option, f"--{name.replace('.', '-')}"
        elif name in settings:
            values[name], sources[name] = _number(name, settings[name], file), str(file)
        else:
            why = "no file of the node was found" if file is None else f"{file} has none"
            values[name], sources[name] = default, f"Kafka's default: {why}"
    unknown = tuple(name for name in defaults if file is None and options[name] is None)
    return NodeLimits(RetentionLimits(values[RETENTION_MS], values[RETENTION_BYTES]), sources, unknown)


def _own_file(log_dir: Path) -> _Stated | None:
    own = _node_id(log_dir)
    for folder in (log_dir, log_dir.resolve().parent):
        try:
            settings = read_properties((folder / SERVER_PROPERTIES).read_bytes())
        except (OSError, DecodeError):
            continue
        if own is not None and settings.get(_NODE_ID) == own:
            return folder / SERVER_PROPERTIES, settings
    return None


def _named_file(file: Path, log_dir: Path) -> _Stated:
    try:
        settings = read_properties(file.read_bytes())
    except (OSError, DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error.message
        hint = "Name the node's server.properties, as a user who may read it."
        raise TieredctlError(ErrorCode.USAGE, f"{file} cannot be read: {why}.", hint=hint) from None
    stated, own = settings.get(_NODE_ID), _node_id(log_dir)
    if own not in (None, stated):
        whose = "has no node.id" if stated is None else f"is of node {stated}"
        message = f"{file} {whose}, and {log_dir} is of node {own}."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Give the file of this node.")
    return file, settings


def _node_id(log_dir: Path) -> str | None:
    node_id = log_dir_owner(log_dir).node_id
    return None if node_id is None else str(node_id)


def _number(name: str, text: str, file: Path | None) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"{name} is {text!r} in {file}."
        raise TieredctlError(ErrorCode.USAGE, message, hint=f"Give --{name.replace('.', '-')}.") from None
