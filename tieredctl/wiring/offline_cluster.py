"""Opens a KRaft snapshot, alone or with the log after it, as a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import CLUSTER_METADATA_FOLDER, parse_kraft_snapshot_name
from tieredctl.formats.quorum_state import QUORUM_STATE_FILE, read_quorum_state
from tieredctl.kafka.local_logs import log_dir_owner
from tieredctl.kafka.metadata_log import MetadataLog, SnapshotFile, snapshot_records
from tieredctl.kafka.node_replay import NodeReplay, records_of_one_epoch
from tieredctl.kafka.snapshot_history import SnapshotHistory
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay
from tieredctl.kraft.replica import EpochStart, Replica, SnapshotId
from tieredctl.model.named_cluster import demand_named_cluster
from tieredctl.ops.cluster.offline_cluster import CLOCK_SKEW_MS, ImageCluster, MetadataLogBeside, OfflineCluster
from tieredctl.ops.snapshots.record_files import demand_metadata_log_file, metadata_log_folder


@dataclass(frozen=True, slots=True)
class OfflineClusterPlace:
    """A snapshot, a `__cluster_metadata-0`, or a log directory that has one."""

    path: Path

    @contextmanager
    def open(self) -> Iterator[ImageCluster]:
        """The cluster, open for what its metadata log can answer. Raises as `read` does."""
        yield ImageCluster(self.read())

    def read(self) -> OfflineCluster:
        """The cluster as of the snapshot; of a folder as of the latest one and the log after it.

        Raises TieredctlError where it is missing, cannot be read, is not whole, or is not what the log beside it says:
        half of it would make orphans, and so would an id that was changed; and `another-cluster` where it is of another
        cluster than the one that was named.
        """
        path = self.path
        with in_sentences(path):
            if path.exists() and not path.is_dir() and not path.is_file():
                raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: it is not a regular file.", hint="")
            cluster = _with_log(metadata_log_folder(path)) if path.is_dir() else _alone(path)
        demand_named_cluster(cluster.cluster_id)
        return cluster


def metadata_log_beside(log_dirs: Collection[Path], now_ms: int | None = None) -> MetadataLogBeside | None:
    """The metadata log in some log directories, held against the time now if that is given; of several the one that
    goes furthest. None where there is none, and one that cannot be read is said only where all are such."""
    read = [_read_beside(one / CLUSTER_METADATA_FOLDER) for one in log_dirs if (one / CLUSTER_METADATA_FOLDER).exists()]
    whole = [one for one in read if isinstance(one, OfflineCluster)]
    if not whole:
        return MetadataLogBeside(read[0]) if read else None
    latest = max(whole, key=lambda one: one.image.end_offset)
    return MetadataLogBeside(latest if now_ms is None else latest.by_the_clock(now_ms))


def _read_beside(folder: Path) -> OfflineCluster | str:
    try:
        return OfflineClusterPlace(folder).read()
    except TieredctlError as error:
        return error.message


@contextmanager
def in_sentences(path: Path) -> Iterator[None]:
    """What keeps these files from being read, as a TieredctlError."""
    try:
        yield
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {path}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{path} may not be read.") from None
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{path} cannot be read: {error.strerror}.") from None
    except DecodeError as error:
        message = f"{path} cannot be read as a KRaft snapshot: {error.message}."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=_HINT) from None


_HINT = "Give a complete `<offset>-<epoch>.checkpoint`, or the __cluster_metadata-0 that has it."


def _alone(path: Path) -> OfflineCluster:
    demand_metadata_log_file(path)
    name = parse_kraft_snapshot_name(path.name)
    size = path.stat().st_size
    end_offset, epoch = (0, 0) if name is None else (name.end_offset, name.epoch)
    file = SnapshotFile(epoch, end_offset, path, size)
    replay = MetadataReplay()
    replay.load_snapshot(snapshot_records(file) if name is None else records_of_one_epoch(file), end_offset)
    image = replay.image
    snapshot = None if name is None else SnapshotId(epoch, end_offset)
    folder = path.resolve().parent
    return OfflineCluster(
        *(path, image, image.topic_ids, image.as_of_ms, frozenset(), snapshot, size, 0),
        log_dir_owner(folder.parent).cluster_id,
        voters=list(image.voters or ()),
        is_confirmed=name is not None and _is_confirmed(MetadataLog.opened(folder), file),
    )


def _is_confirmed(log: MetadataLog, snapshot: SnapshotFile) -> bool:
    """Whether the log before a snapshot's end gives the same cluster; False where it does not reach back far enough.
    Raises DecodeError where it gives another one."""
    history = SnapshotHistory.of(log, snapshot.end_offset)
    for one in history.contradictions:
        if one.snapshot.path.name == snapshot.path.name:
            raise DecodeError(one.words, 0)
    return any(one.path.name == snapshot.path.name for one in history.confirmed)


def _with_log(folder: Path) -> OfflineCluster:
    log = MetadataLog.opened(folder)
    if not log.snapshots and not log.segments:
        hint = f"Give a node's log directory, or its {CLUSTER_METADATA_FOLDER}."
        raise TieredctlError(ErrorCode.NOT_A_LOG_DIR, f"{folder} has neither a snapshot nor a log.", hint=hint)
    node = NodeReplay(log)
    node.load_snapshot()
    replay, image = node.replay, node.replay.image
    committed_ms, committed, voters_before = image.as_of_ms, image.topic_ids, _voters(folder, image)
    node.load_log()
    topic_ids, voters = image.topic_ids, _voters(folder, image)
    if len(voters_before) == len(voters) == 1:  # nor may the removal of others be undone
        committed_ms, committed = image.as_of_ms, topic_ids
    if replay.clock_fell_ms > CLOCK_SKEW_MS:
        committed_ms = -1
    return OfflineCluster(
        folder,
        image,
        topic_ids,
        committed_ms,
        committed - topic_ids,
        node.snapshot,
        node.snapshot_bytes,
        node.log_bytes,
        log_dir_owner(folder.resolve().parent).cluster_id,
        voters=list(voters),
        in_transaction=replay.in_transaction,
        clock_error_ms=replay.clock_fell_ms,
        is_confirmed=not log.snapshots or _is_confirmed(log, log.snapshots[-1]),
    )


def _voters(folder: Path, image: ClusterImage) -> Collection[int]:
    """The ids of the quorum's voters; none where they are in no file."""
    if image.voters is not None:
        return image.voters
    with suppress(OSError, DecodeError):
        state = read_quorum_state((folder / QUORUM_STATE_FILE).read_bytes())
        return [voter["VoterId"] for voter in state.values.get("CurrentVoters") or ()]
    return ()


def read_replica(folder: Path) -> Replica:
    """The replica in a `__cluster_metadata-0`, as a node makes it of these files when it starts. Reads the whole log.

    Raises TieredctlError where that is damaged: where epochs begin is then unknown.
    """
    with in_sentences(folder):
        log = MetadataLog.opened(folder)
        epochs: list[EpochStart] = []
        end_offset = log.start_offset
        for batch in log.batches():
            epoch = batch.header.partition_leader_epoch
            if not epochs or epochs[-1].epoch < epoch:
                epochs.append(EpochStart(epoch, batch.header.base_offset))
            end_offset = batch.header.last_offset + 1
    snapshots = [SnapshotId(one.epoch, one.end_offset) for one in log.snapshots]
    return Replica(log.start_offset, end_offset, epochs, snapshots).as_started()
